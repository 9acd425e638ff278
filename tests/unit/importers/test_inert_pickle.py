"""A pickle is read as data: plain values and instants come back, everything else stays inert and nothing is called."""

from __future__ import annotations

import os
import pickle
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.errors import InvalidError
from solocron.importers.inert_pickle import Inert, read_inert

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(value=plain, protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_back_in_every_protocol(value: Any, protocol: int) -> None:
    assert read_inert(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_instants_durations_and_zones_come_back(protocol: int) -> None:
    value = {
        "there": datetime(2026, 11, 17, 9, tzinfo=ZoneInfo("Europe/Vienna")),
        "utc": datetime(2026, 11, 17, 9, 1, 2, 3, tzinfo=UTC),
        "every": timedelta(days=1, seconds=2, microseconds=3),
        "names": {"a", "b"},
    }
    assert read_inert(pickle.dumps(value, protocol)) == value


def test_an_object_keeps_its_arguments_and_its_state() -> None:
    made = read_inert(pickle.dumps(Path("x")))
    assert isinstance(made, Inert)
    assert (made.origin, made.args) == ("pathlib.PosixPath", ("x",))
    assert isinstance(read_inert(pickle.dumps(OrderedDict())), Inert)


class Bomb:
    """What loading would run."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call[0], self.call[1:]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_function_is_called(protocol: int, tmp_path: Path) -> None:
    target = tmp_path / "exploded"
    for bomb in (Bomb(os.system, f"touch {target}"), Bomb(os.mkdir, str(target)), Bomb(eval, f"open({target!r}, 'w')")):
        made = read_inert(pickle.dumps(bomb, protocol))
        assert isinstance(made, Inert)
        assert not target.exists()


@given(data=st.binary(max_size=200))
def test_damaged_data_is_refused_or_read_and_never_raises_anything_else(data: bytes) -> None:
    for given_data in (data, b"\x80\x04" + data, pickle.dumps({"a": [1, 2]})[: len(data) % 20] + data):
        try:
            read_inert(given_data)
        except InvalidError:
            pass
