"""One child process, as the node that started it sees it: orders in, output, progress and the result out."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from solocron.dispatch.contract import Away, Elsewhere, RaisedElsewhere
from solocron.dispatch.process.output import Output
from solocron.dispatch.process.ward import Questions
from solocron.errors import Cancelled, LeaseLost, TimedOut
from solocron.jobs.results import NotKept
from solocron.size import format_size

__all__ = ["Child"]

_LOOK = 0.25
"""Seconds between two checks whether the session was renewed."""
_TELL = 0.2
"""Seconds between two reports of output and progress."""
_TAIL = 4 * 1024
"""Bytes of output shown while it still runs; everything kept is written at the end."""
_LINGER = 1.0
"""Seconds that a process whose body is over may take to end."""


class Child:
    """One child process from start to end, driven by one thread; other threads call only `interrupt` and `kill`."""

    def __init__(self, away: Away, order: dict[str, Any], *, patience: float) -> None:
        self._away = away
        self._patience = patience
        self._order = order
        self._outgoing = bytearray()
        self._until = float(order["until"])
        self._mutex = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._wake: int | None = None
        self._asked = threading.Event()
        self._killed = False
        self._kill_at: float | None = None
        self._told_stop = False
        self._output = Output()
        self._progress: dict[str, Any] | None = None
        self._reported: tuple[int, int] = (0, 0)
        self._report_at = 0.0
        self._incoming = b""
        self._answer: dict[str, Any] | None = None
        self._facts: dict[str, Any] = {}
        """Reports of the child's guard: `ended`, `memory`, `deadline`."""

    # --- from other threads --------------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Ask the body to stop; it is killed a moment later, or at once if its lease is lost."""
        self._asked.set()
        with self._mutex:
            if self._wake is not None:
                os.write(self._wake, b"!")

    def kill(self) -> None:
        """Kill the whole process group now."""
        with self._mutex:
            self._killed = True
            if self._process is not None and self._process.returncode is None:
                _kill_group(self._process.pid)

    # --- its own thread ------------------------------------------------------------------------------------------

    def carry_out(self, trace: str | None = None) -> Any:
        """Start the child, supervise it, and return what the body returned, or raise what it raised.

        `trace` is the trace that it continues; the span of its run began after the order was made.
        """
        self._outgoing += _line({**self._order, "trace": trace})
        wake, ring = os.pipe()
        control, self._control = os.pipe()
        self._report, report = os.pipe()
        self._questions = Questions(self._away.ward)
        try:
            with self._mutex:
                self._process = process = _start(control, report, self._questions.mouth.fileno())
                self._wake = ring
                if self._killed:
                    _kill_group(process.pid)
        finally:
            os.close(control)
            os.close(report)
            self._questions.mouth.close()
            if self._process is None:  # the machine cannot start another process: that is the outcome
                self._questions.close()
                for each in (wake, ring, self._control, self._report):
                    os.close(each)
        assert process.stdout is not None
        self._printed = process.stdout.fileno()
        try:
            self._look_after(process, wake)
        finally:
            # Before `wait`: until then no other process can have its number.
            _kill_group(process.pid)
            with self._mutex:
                self._wake = None
                process.wait()
            self._read_on()
            self._questions.close()
            process.stdout.close()
            for each in (wake, ring, self._control, self._report):
                os.close(each)
        self._tell(last=True)
        return self._outcome(process)

    def _look_after(self, process: subprocess.Popen[bytes], wake: int) -> None:
        with selectors.DefaultSelector() as ears:
            for each in (self._report, self._printed, self._control):
                os.set_blocking(each, False)
            for each in (wake, self._report, self._printed, self._questions.fileno()):
                ears.register(each, selectors.EVENT_READ)
            writing = False
            while True:
                self._keep_trusted()
                self._keep_stopped()
                if bool(self._outgoing) != writing:
                    writing = not writing
                    if writing:
                        ears.register(self._control, selectors.EVENT_WRITE)
                    else:
                        ears.unregister(self._control)
                for key, _ in ears.select(self._pause()):
                    if key.fd == wake:
                        os.read(wake, 64)
                    elif key.fd == self._control:
                        self._send()
                    elif key.fd == self._questions.fileno():
                        for question in self._questions.accept():
                            ears.register(question, selectors.EVENT_READ, data=question)
                    elif key.data is not None:
                        if self._questions.hear(key.data):
                            ears.unregister(key.data)
                            key.data.close()
                    elif not self._read(key.fd):
                        ears.unregister(key.fd)
                self._tell()
                if "ended" in self._facts or _is_over(process):
                    return
                if self._answer is not None and self._kill_at is None:
                    self._kill_at = time.monotonic() + _LINGER
                if self._kill_at is not None and time.monotonic() >= self._kill_at:
                    return

    def _pause(self) -> float:
        return _LOOK if self._kill_at is None else min(_LOOK, max(self._kill_at - time.monotonic(), 0.0))

    def _keep_trusted(self) -> None:
        until = self._away.trusted_until()
        if until != self._until:
            self._until = until
            self._outgoing += _line({"until": until})

    def _keep_stopped(self) -> None:
        """Pass a stop on. A lost lease ends the child at once; any other stop gives it a moment to notice."""
        stop = self._away.stopped() if self._asked.is_set() else None
        if stop is None:
            return
        if not self._told_stop:
            self._told_stop = True
            self._outgoing += _line({"stop": [stop.kind, stop.reason]})
            self._kill_at = time.monotonic() + self._patience
        if stop.kind == "lost":
            self._kill_at = time.monotonic()

    def _send(self) -> None:
        try:
            del self._outgoing[: os.write(self._control, self._outgoing)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._outgoing.clear()  # the child is gone; `_is_over` notices

    def _read(self, fd: int) -> bool:
        """Read what is available; False at the end of the pipe."""
        try:
            more = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        if fd == self._printed:
            self._output.add(more)
        else:
            self._incoming += more
            *lines, self._incoming = self._incoming.split(b"\n")
            for line in lines:
                self._hear(line)
        return bool(more)

    def _read_on(self) -> None:
        """Read the rest from the pipes of a process that has ended; one that escaped the group cannot keep us here."""
        for fd in (self._report, self._printed):
            os.set_blocking(fd, False)
            for _ in range(64):
                before = len(self._output), len(self._incoming), self._answer
                if not self._read(fd) or (len(self._output), len(self._incoming), self._answer) == before:
                    break

    def _hear(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except ValueError:  # cut off in the middle, by a kill
            return
        self._progress = said.pop("progress", self._progress)
        if "answer" in said:
            self._answer = said["answer"]
        else:
            self._facts |= said

    def _tell(self, *, last: bool = False) -> None:
        """Report what the body has printed and how far it is, at most once in `_TELL` seconds."""
        now, state = time.monotonic(), (len(self._output), id(self._progress))
        if state == self._reported and not last:
            return
        if now < self._report_at and not last:
            return
        self._report_at, self._reported = now + _TELL, state
        printed = self._output.text() if last else self._output.end(_TAIL)
        told = (self._progress or {}) | ({"output": printed} if printed else {})
        if told:
            self._away.report(told)

    # --- how it ended --------------------------------------------------------------------------------------------

    def _outcome(self, process: subprocess.Popen[bytes]) -> Any:
        if self._answer is not None:
            return _unpacked(self._answer)
        stop = self._away.stopped()
        if stop is not None:
            raise stop.error(f"{stop.reason}; its process was killed.")
        if "memory" in self._facts:
            assert self._away.memory is not None
            used, limit = format_size(self._facts["memory"]), format_size(self._away.memory)
            raise Elsewhere(f"used more than {limit}: it had {used} when it was killed")
        if "deadline" in self._facts:
            raise LeaseLost("its process ended itself when its lease was over.")
        if self._killed:
            raise Cancelled("its node ended, and its process was killed.")
        if "ended" in self._facts:
            raise Elsewhere(f"its process {_ending(self._facts['ended'])} before it had answered")
        raise Elsewhere(f"its process {_ending(process.returncode)} from outside or before it could begin")


_RAISES = {"cancelled": Cancelled, "lost": LeaseLost, "timed out": TimedOut, "raised": RaisedElsewhere}
"""What the answers of a child raise here."""


def _unpacked(answer: dict[str, Any]) -> Any:
    kind, what = answer["kind"], answer["what"]
    if kind == "value":
        return what
    if kind == "not kept":
        return NotKept(what)
    raise _RAISES.get(kind, Elsewhere)(what.rstrip())


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _line(said: dict[str, Any]) -> bytes:
    return json.dumps(said).encode() + b"\n"


def _start(control: int, report: int, questions: int) -> subprocess.Popen[bytes]:
    """Start the child in a session and group of its own, with the import path of this process."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return subprocess.Popen(
        [_python(), "-P", "-m", "solocron.dispatch.process", str(control), str(report), str(questions)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": path},
        pass_fds=(control, report, questions),
        start_new_session=True,
    )


def _python() -> str:
    """Return the interpreter. In a server that embeds one, such as uWSGI, `sys.executable` is the server itself."""
    if os.path.basename(sys.executable or "").lower().startswith(("python", "pypy")):
        return sys.executable
    names = (f"python{sys.version_info.major}.{sys.version_info.minor}", "python3", "python")
    places = [os.path.join(prefix, "bin", name) for prefix in (sys.exec_prefix, sys.base_exec_prefix) for name in names]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    raise RuntimeError(
        f"{sys.executable!r} is not a Python, and there is none in {sys.exec_prefix}/bin either; nothing was started. "
        "Install one of this version there, or run the scheduler in a process of its own."
    )


def _is_over(process: subprocess.Popen[bytes]) -> bool:
    """Return whether it has ended.

    If the system allows it, the child is not reaped, so that its process id stays its own until the group has been
    killed.
    """
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # gone already; macOS reports a zombie by the other error
