"""The shared JSON reader and writer say what the standard library says."""

from __future__ import annotations

import json
from json import encoder
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.model._fast import json_text
from solocron.model._fast.json_text import read, write, write_ascii, write_rows, write_sorted
from solocron.model.documents.run import Status

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
SMALL = (",", ":")


@given(values)
def test_every_writer_writes_what_the_standard_library_writes(value: Any) -> None:
    assert write(value) == json.dumps(value, separators=SMALL, ensure_ascii=False)
    assert write_sorted(value) == json.dumps(value, separators=SMALL, ensure_ascii=False, sort_keys=True)
    assert write_ascii(value) == json.dumps(value, separators=SMALL)


@given(values)
def test_what_was_written_is_read(value: Any) -> None:
    assert read(write(value)) == json.loads(json.dumps(value))


@pytest.mark.parametrize("text", [' {"a": 1}', '{"a": 1}\n', "\t[]", "null ", "1.5"])
def test_white_space_around_a_text_is_read_too(text: str) -> None:
    assert read(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", " ", "nonsense", "{", '{"a":1}{', "[1,]", "\ufeff{}"])
def test_what_is_not_json_is_refused_as_the_standard_library_refuses_it(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        read(text)


@pytest.mark.parametrize("writer", [write, write_sorted, write_ascii])
def test_a_number_that_json_does_not_have_is_refused(writer: Any) -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            writer([value])


@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"ascii_only": True}])
def test_an_interpreter_without_the_accelerator_writes_the_same(
    options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    value = {"\u2602": ['"', 1, None, True, 1.5, Status.LOST, {"a": []}], "b": ()}
    fast = json_text._writer(**options)(value)
    monkeypatch.setattr(encoder, "c_make_encoder", None)
    assert json_text._writer(**options)(value) == fast


cells = st.one_of(st.none(), st.integers(), st.text(max_size=5), st.sampled_from(Status))


@given(st.lists(st.tuples(cells, cells, st.integers()), min_size=1, max_size=4))
def test_rows_are_objects_without_the_columns_that_are_empty_in_all_of_them(rows: list[tuple[Any, ...]]) -> None:
    names = ("a", "b", "c")
    text = write_rows(names, rows)
    kept = [n for n, column in zip(names, zip(*rows, strict=True), strict=True) if any(v is not None for v in column)]
    wanted = [{name: value for name, value in zip(names, row, strict=True) if name in kept} for row in rows]
    assert json.loads(text) == wanted
    assert text.isascii()
