"""`python -m solocron.demo`: the same as `solocron demo`."""

from __future__ import annotations

import argparse
import sys

from solocron import demo
from solocron.errors import SolocronError

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="solocron demo", description=demo.__doc__)
    demo.add_arguments(parser)
    try:
        sys.exit(demo.main(parser.parse_args()))
    except SolocronError as error:
        sys.stderr.write(f"solocron demo: {error}\n")
        sys.exit(error.exit_code)
