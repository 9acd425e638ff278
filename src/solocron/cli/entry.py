"""Turn arguments into an exit code: every mistake of a user is one message on stderr, never a traceback."""

from __future__ import annotations

import io
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module

from solocron.cli import parser
from solocron.cli.exits import INTERRUPTED, OK
from solocron.cli.host import in_its_words, program
from solocron.errors import InvalidError, SolocronError, StoreError, StoreUnavailable, WaitTimeout

__all__ = ["main"]

Command = Callable[[Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    _write_what_cannot_be_encoded_as_escapes()
    try:
        args = parser.parse(given)
    except SystemExit as end:  # argparse has said what it had to say
        return end.code if isinstance(end.code, int) else OK
    try:
        code = _command(args.command)(args)
        sys.stdout.flush()
    except SolocronError as error:
        return _report(error, args)
    except BrokenPipeError:  # the reader of our output has closed it
        _let_go_of_stdout()
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _command(name: str) -> Command:
    """Return the function of a command, from the file of its name."""
    command: Command = import_module(parser.module_of(name)).execute
    return command


def _report(error: SolocronError, args: Namespace) -> int:
    from solocron.printable import clean

    text = str(error)
    if isinstance(error, StoreUnavailable):
        text = f"{text.rstrip('.')}. This command exits with {error.exit_code}; run it again when the store is back."
    print(f"solocron: {clean(in_its_words(text), lines=True)}", file=sys.stderr)
    step = _next_step(error, args)
    if step is not None:
        print(f"next: {step}", file=sys.stderr)
    return error.exit_code


def _next_step(error: SolocronError, args: Namespace) -> str | None:
    from solocron.cli.opening import same_store

    if isinstance(error, StoreError) and args.command != "doctor":
        return f"{program()} {shlex.join(['doctor', *same_store(args)])}"
    if isinstance(error, WaitTimeout):
        return f"{program()} {shlex.join(['show', args.run, *same_store(args)])}"
    if isinstance(error, InvalidError):
        return f"{program()} {args.command} --help"
    return None


def _write_what_cannot_be_encoded_as_escapes() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _let_go_of_stdout() -> None:
    """Point stdout at the null device: Python flushes it once more at exit, which would raise again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is not a file: nothing will be flushed into a pipe
        pass
    finally:
        os.close(nowhere)
