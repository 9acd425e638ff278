"""The plug-in, the manual clock and the cluster as users meet them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from solocron import InvalidError, Run, cron, every
from solocron.testing.clock import ManualClock

pytestmark = pytest.mark.filterwarnings("default")

PLUGIN = ("-p", "solocron.testing.plugin", "-p", "no:cacheprovider")
"""By its module, so that this copy is tested, whether or not it is installed."""


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test processes load no plug-in that the environment happens to have: it takes longer than the tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_the_fixtures_are_there_and_clean_up(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from datetime import timedelta
        from solocron import every

        @every("1m", name="job", retries=1)
        def job(run):
            pass

        def test_a_cluster(cluster):
            fleet = cluster(job, nodes=2, seed=3)
            fleet.run("30s")
            fleet.kill(0)
            fleet.run("2m")
            fleet.assert_ran("job", times=2)

        def test_two_clusters_have_nothing_in_common(cluster):
            one, other = cluster(job), cluster(job)
            one.run("61s")
            assert other.runs("job") == []

        def test_a_clock(manual_clock):
            scheduler = manual_clock.scheduler(job)
            assert scheduler.tick() == []
            manual_clock.advance("1m")
            (run,) = scheduler.tick()
            assert run.slot == manual_clock.now
        """
    )
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=3)


def test_a_broken_promise_is_told_as_a_story(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from solocron import every

        @every("1m", name="job")
        def job():
            pass

        def test_it(cluster):
            fleet = cluster(job)
            fleet.run("61s")
            fleet.assert_ran("job", times=2)
        """
    )
    seen = pytester.runpytest_subprocess(*PLUGIN)
    seen.assert_outcomes(failed=1)
    seen.stdout.fnmatch_lines(["*job did not run 2 times:*", "*slot 2026-01-01T00:01:00+00:00 attempt 1 on n*"])


def test_loading_the_plug_in_imports_nothing_of_solocron_but_itself() -> None:
    code = (
        "import sys, solocron.testing.plugin as p;"
        "print(sorted(m for m in sys.modules if m.startswith('solocron.') or m == 'greenlet'))"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert seen.stdout.strip() == "['solocron.testing', 'solocron.testing.plugin']"


# --- the clock -------------------------------------------------------------------------------------------------------


def test_time_passes_only_when_the_test_says_so() -> None:
    clock = ManualClock(datetime(2027, 1, 3, 12, tzinfo=UTC))

    @cron("0 9 * * MON-FRI", tz="Europe/Paris", name="report")
    def report(run: Run) -> str:
        return run.slot.isoformat()

    scheduler = clock.scheduler(report)
    assert scheduler.tick() == []
    assert clock.move_to(datetime(2027, 1, 4, 8, tzinfo=UTC)) == clock.now
    (view,) = scheduler.tick()
    assert view.result == "2027-01-04T09:00:00+01:00"
    assert scheduler.tick() == [], "time stands still, so nothing more is due"


def test_schedulers_of_one_clock_share_one_store() -> None:
    clock = ManualClock()

    @every("1m", name="job")
    def job() -> None:
        pass

    one, other = clock.scheduler(job), clock.scheduler(job)
    one.tick()
    clock.advance("61s")
    assert [len(one.tick()), len(other.tick())] == [1, 0]


def test_a_running_node_follows_the_clock() -> None:
    clock = ManualClock()

    @every("1h", name="job")
    def job() -> None:
        pass

    with clock.scheduler(job) as scheduler:
        clock.advance("1h")
        run = scheduler.trigger("job")  # wakes it as well
        assert scheduler.wait(run, "10s").status == "succeeded"


@pytest.mark.parametrize("moment", [datetime(2025, 12, 31, tzinfo=UTC), datetime(2026, 1, 2)])  # noqa: DTZ001
def test_it_goes_only_forward_and_only_with_a_zone(moment: datetime) -> None:
    clock = ManualClock()
    with pytest.raises(InvalidError):
        clock.move_to(moment)
    assert clock.now == datetime(2026, 1, 1, tzinfo=UTC)
