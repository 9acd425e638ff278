"""`python -m solocron.cli`: the command line without its script."""

import sys

from solocron.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
