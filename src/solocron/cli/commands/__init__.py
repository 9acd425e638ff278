"""One file for each command, named like it.

Each has `add_arguments(parser)` and `execute(args)`, which returns the exit code. The files import at the top only what
the parser needs: help, completion and the build of the wheel load them without the package's dependencies.
"""
