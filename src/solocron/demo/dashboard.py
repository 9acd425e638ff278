"""`solocron demo --serve`: the dashboard of the demo's store, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from types import TracebackType

from solocron.errors import MissingExtra

__all__ = ["Dashboard"]

_PATIENCE = 10.0


class Dashboard:
    """Serves a store while it is entered; `link` logs in once, within a minute."""

    def __init__(self, store: str, namespace: str) -> None:
        self._command = [
            *(sys.executable, "-m", "solocron", "serve", "--open", "--port", "0", "--log-level", "error"),
            *("--store", store, "--namespace", namespace),
        ]
        self._process: subprocess.Popen[str] | None = None
        self.address = self.link = ""

    def __enter__(self) -> Dashboard:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        self.link = self._process.stdout.readline().strip()
        if not self.link:
            self._process.wait(_PATIENCE)
            raise MissingExtra('the dashboard could not be started; it needs: pip install "solocron[web]"')
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_PATIENCE)
        self._process.stdout.close()

    def wait(self) -> None:
        """Return when the reader has seen enough: at Ctrl-C."""
        assert self._process is not None
        try:
            self._process.wait()
        except KeyboardInterrupt:
            pass
