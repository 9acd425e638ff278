"""One shell, typed into command by command as a reader of the tutorial would; it ends with everything it started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.unit.docs.pages import ROOT

__all__ = ["Terminal"]

_DONE = "__done__"
PATIENCE = 60.0


class Terminal:
    """`type` returns what the command printed; a command that fails is an error unless it says so itself."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Terminal:
        tools = self._folder / ".bin"
        tools.mkdir(exist_ok=True)
        for name, program in {"solocron": "-m solocron.cli", "python": ""}.items():
            tool = tools / name
            tool.write_text(f'#!/bin/sh\nexec {sys.executable} {program} "$@"\n')
            tool.chmod(0o700)
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"}
        environment.pop("SOLOCRON_STORE", None)
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        return self

    def __exit__(self, *exc: object) -> None:
        shell = self._shell
        assert shell.stdin is not None
        assert shell.stdout is not None
        if exc[0] is not None:  # the nodes in the background would outlive a failed test
            os.killpg(shell.pid, signal.SIGKILL)
        else:
            shell.stdin.write(b"kill $(jobs -p) 2> /dev/null; wait\n")
        shell.stdin.close()
        shell.wait(PATIENCE)
        shell.stdout.close()

    def type(self, command: str) -> str:
        """Run one command to its end; one with `&` goes on in the background."""
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{command}\necho {_DONE} $?\n".encode())
        self._shell.stdin.flush()
        text = self._read_until_done(command)
        body, _, code = text.rpartition(_DONE)
        assert code.strip() == "0", f"$ {command}\n{body}exit {code.strip()}"
        return body

    def _read_until_done(self, command: str) -> str:
        assert self._shell.stdout is not None
        descriptor = self._shell.stdout.fileno()
        end, text = time.monotonic() + PATIENCE, ""
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while _DONE not in text or not text.endswith("\n"):
                left = end - time.monotonic()
                assert left > 0, f"$ {command}\nhas not ended within {PATIENCE:g} s; so far: {text}"
                if selector.select(left):
                    piece = os.read(descriptor, 65536)
                    assert piece, f"$ {command}\nended the shell: {text}"
                    text += piece.decode()
        return text
