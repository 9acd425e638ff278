"""`run`, `tick` and `run-slot` prepare their process as the scheduler asks, before anything is claimed."""

from __future__ import annotations

from tests.unit.cli.kit import Cli, Write

PROGRAM = """
    from pathlib import Path
    from solocron import Scheduler
    scheduler = Scheduler("memory://setup-{name}")
    scheduler.setup("shop_{name}:boot")

    @scheduler.every("1d")
    def job(): ...

    def boot():
        {body}
"""


def test_a_tick_calls_the_setup_of_its_scheduler(cli: Cli, write: Write) -> None:
    write("shop_set.py", PROGRAM.format(name="set", body='Path("prepared").touch()'))
    answer = cli("tick", "shop_set")
    assert answer.code == 0, answer.err
    assert write("other", "").parent.joinpath("prepared").exists()


def test_a_setup_that_fails_is_one_line_and_nothing_starts(cli: Cli, write: Write) -> None:
    write("shop_sad.py", PROGRAM.format(name="sad", body='raise OSError("no settings")'))
    for words in (("tick", "shop_sad"), ("run", "shop_sad"), ("run-slot", "shop_sad", "job")):
        answer = cli(*words)
        assert answer.code == 2
        assert "setup shop_sad:boot failed: OSError('no settings'). Nothing was started." in answer.err
        assert "shop_sad.py, line 11" in answer.err
        assert "Traceback" not in answer.err
