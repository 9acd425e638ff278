"""What a body prints is kept with its run, and still goes where it went before."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, subprocess, sys
from solocron.dispatch.contract import Away
from solocron.dispatch.printed import Printed

class Here:
    def submit(self, call):
        if call.begin():
            call.body()()
            call.end(None, None)

class Body:
    name = "body"
    def __init__(self, function): self.function = function
    def begin(self): return True
    def body(self): return self.function
    def end(self, value, error): print("end", flush=True)
    def away(self):
        nothing = lambda *_: None
        return Away(handler=None, run=None, zone="UTC", session="", scope="", memory=None, cpu=None, ward=None,
                    trusted_until=nothing, stopped=nothing, report=nothing, printed=kept.append)

def body():
    print("one")
    print("two", file=sys.stderr)
    sys.stdout.flush()
    subprocess.run([sys.executable, "-c", "print('three')"], check=True)
    %s

kept = []
print("before")
Printed(Here()).submit(Body(body))
print("after")
print(repr(kept), file=sys.stderr)
"""


def run(more: str = "pass") -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM % more], capture_output=True, text=True, check=True, timeout=100
    )  # fmt: skip
    return done.stdout, done.stderr


def test_both_streams_and_those_of_its_children_are_kept_and_passed_on() -> None:
    out, error = run()
    assert out == "before\none\nthree\nend\nafter\n"
    shown, kept = error.splitlines()
    assert shown == "two"
    (text,) = eval(kept)
    assert sorted(text.split()) == ["one", "three", "two"]


def test_the_first_and_the_last_of_much_are_kept() -> None:
    """The bound is that of a process of its own: 32 kB of each end."""
    out, error = run("print('x' * 200_000); print('last')")
    assert len(out) > 200_000
    (text,) = eval(error.splitlines()[-1])
    assert 64_000 < len(text) < 67_000
    assert "bytes left out" in text
    assert text.endswith("last\n")


@pytest.mark.may_leak("the process that the body leaves behind ends by itself")
def test_a_process_that_the_body_leaves_behind_does_not_keep_it_from_ending() -> None:
    out, error = run("global p; p = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)")
    assert "end" in out
    assert "one" in error.splitlines()[-1]
