"""The rules that hold for every test are themselves tested: a leak is found, a mark is set, a long test waits."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.distribution import ByFile

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A small project with our rules."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # The plug-ins of the environment take three quarters of a test process's time, and none of these needs them.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest("from tests.conftest import *\nimport tests.conftest\ntests.conftest.GRACE = 0.1")
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\nmarkers = ['long', 'may_leak', 'redis', 'postgres']")
    return pytester


def run(suite: pytest.Pytester, *args: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("-p", "no:cacheprovider", *args)


def test_what_a_test_leaves_behind_fails_it_unless_it_says_why(suite: pytest.Pytester) -> None:
    """All in one process: to start it takes longer than the tests."""
    suite.makepyfile("""
        import atexit, pytest, socket, subprocess, threading
        kept = []
        atexit.register(lambda: [one.kill() for one in kept if hasattr(one, "kill")])

        def test_leaves_a_thread():
            threading.Thread(target=threading.Event().wait, name='stray', daemon=True).start()

        def test_leaves_a_process():
            kept.append(subprocess.Popen(['sleep', '60']))

        def test_leaves_a_socket():
            kept.append(socket.socket())

        def test_ends_what_it_began():
            stop = threading.Event()
            thread = threading.Thread(target=stop.wait)
            thread.start()
            with socket.socket(), subprocess.Popen(["true"]):
                stop.set()
            cycle = [socket.socket()]
            cycle[0].close()

        @pytest.mark.may_leak("a body that cannot be stopped is the point")
        def test_leaks_and_says_why():
            threading.Thread(target=threading.Event().wait, daemon=True).start()
    """)
    result = run(suite)
    result.assert_outcomes(passed=5, errors=3)
    for name, left in (("thread", "thread stray"), ("process", "process *sleep 60"), ("socket", "open socket:*")):
        result.stdout.fnmatch_lines([f"*ERROR at teardown of test_leaves_a_{name} *", f"the test left behind: {left}"])


def test_a_long_test_waits_until_it_is_asked_for(suite: pytest.Pytester) -> None:
    suite.makepyfile("""
        import pytest

        @pytest.mark.long
        def test_long(): pass

        def test_short(): pass
    """)
    run(suite).assert_outcomes(passed=1, deselected=1)
    run(suite, "--long").assert_outcomes(passed=2)


def test_a_test_is_marked_with_the_servers_it_uses(suite: pytest.Pytester) -> None:
    """By the fixture that it takes, or by the name among its parameters."""
    suite.makepyfile("""
        import pytest

        @pytest.fixture
        def redis_server(): pass

        def test_takes_a_fixture(redis_server): pass

        @pytest.mark.parametrize("store", ["memory", "redis", "postgres"])
        def test_takes_a_name(store): pass
    """)
    run(suite, "-m", "redis").assert_outcomes(passed=2, deselected=2)


def test_the_tests_of_a_file_run_on_one_worker(suite: pytest.Pytester) -> None:
    suite.makepyfile("""
        import os, pathlib, pytest

        @pytest.mark.parametrize("number", range(6))
        def test_something(number):
            with pathlib.Path("workers").open("a") as file:
                print(os.environ["PYTEST_XDIST_WORKER"], file=file)
    """)
    suite.makepyfile(test_another="def test_another(): pass")
    run(suite, "-p", "xdist", "-n", "2").assert_outcomes(passed=7)
    assert len(set((suite.path / "workers").read_text().split())) == 1


def test_tests_of_real_processes_are_spread() -> None:
    scope_of = partial(ByFile._split_scope, None)
    assert scope_of("tests/unit/test_loop.py::TestIt::test_one[a::b]") == "tests/unit/test_loop.py"
    assert scope_of("tests/e2e/test_fork.py::test_one") == "tests/e2e/test_fork.py::test_one"
