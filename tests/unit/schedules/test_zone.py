"""Zones come from the tzdata package, and our view of their clock changes is complete."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import _zoneinfo

import pytest

from solocron.errors import ScheduleError
from solocron.schedules import load_zone, zone_data_version
from solocron.schedules.zone import _PROBE, _open, zone_names
from tests.unit.schedules.oracle import distinct_zones, instants_that_show, moment, seconds


def test_every_name_in_the_data_loads():
    assert len(zone_names()) > 500
    for name in zone_names():
        assert load_zone(name).name == name


def test_the_version_is_that_of_the_package():
    assert re.fullmatch(r"20[0-9]{2}[a-z]{1,2}", zone_data_version())


def test_no_system_file_is_read(monkeypatch):
    """Zones of another age than the package's would make two machines disagree."""
    import zoneinfo

    monkeypatch.setattr(zoneinfo, "TZPATH", ("/nowhere",))
    load_zone.cache_clear()
    assert load_zone("Europe/Paris").offset(0) == 3600


def test_a_zone_is_loaded_once():
    assert load_zone("Europe/Paris") is load_zone("Europe/Paris")


@pytest.mark.parametrize(
    "bad", ["Paris", "EUROPE/PARIS", "Europe/Paris ", "", ".", "../zones", "zoneinfo/Europe/Paris", "\0"]
)
def test_what_is_not_in_the_data_is_refused(bad):
    with pytest.raises(ScheduleError, match="unknown time zone"):
        load_zone(bad)


def test_a_near_miss_is_answered_with_the_name():
    with pytest.raises(ScheduleError, match="did you mean 'America/New_York'"):
        load_zone("America/NewYork")


def table(name: str) -> list[int]:
    """The changes since 1970 that the zone's file lists, from zoneinfo's own table in its Python form."""
    offset = load_zone(name).offset
    listed = _zoneinfo.ZoneInfo.from_file(_open(f"zoneinfo/{name}"), key=name)._trans_utc
    return [at for at in listed if at > 0 and offset(at - 1) != offset(at)]


def test_no_zone_changes_twice_within_days():
    """So that probing at this distance misses none."""
    for name in distinct_zones():
        assert all(later - earlier > 2 * _PROBE for earlier, later in pairwise(table(name)))


def test_probing_finds_every_change_in_the_data():
    a, b = (seconds(datetime(year, 1, 1, tzinfo=UTC)) for year in (2020, 2030))
    for name in distinct_zones():
        listed = table(name)
        found = [change.at for change in load_zone(name).changes(a, b)]
        assert [at for at in found if at <= max(listed, default=0)] == [at for at in listed if a < at <= b]


@pytest.mark.parametrize("name", ["America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Monrovia"])
def test_a_reading_has_no_instant_in_a_gap_and_two_in_a_fold(name):
    zone = load_zone(name)
    for change in zone.changes(0, seconds(datetime(2030, 1, 1, tzinfo=UTC))):
        for off in range(-5400, 5401, 450):
            reading = change.at + change.before + off
            naive = moment(reading).replace(tzinfo=None)
            assert [moment(at) for at in zone.instants(reading)] == instants_that_show(naive, zone.info)
            if not zone.instants(reading):
                assert zone.gap_end(reading) == change.at


def test_offsets_may_have_seconds():
    """Monrovia was 44 minutes and 30 seconds behind until 1972."""
    assert load_zone("Africa/Monrovia").offset(0) == -timedelta(minutes=44, seconds=30).total_seconds()
