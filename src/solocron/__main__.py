"""`python -m solocron`: the command line."""

import sys

from solocron.cli import main

sys.exit(main())
