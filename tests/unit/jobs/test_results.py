"""What is kept of how a body ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from solocron.jobs.results import ERROR_LIMIT, RESULT_LIMIT, NotKept, error_text, result_text


@pytest.mark.parametrize("value", [0, "", "é", {"sent": 3}, [1, None, 2.5], "x" * (RESULT_LIMIT - 2), "\ud800"])
def test_small_json_is_kept_as_it_is(value: Any) -> None:
    text = result_text(value)
    assert isinstance(text, str)
    assert json.loads(text) == value


def test_what_is_not_kept_is_named() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value, kind in (({1, 2}, "set"), (float("nan"), "float"), (endless, "list"), (object(), "object")):
        assert result_text(value) == NotKept(f"its result ({kind}) is not JSON and was not kept")
    large = "x" * (RESULT_LIMIT - 1)
    assert result_text(large) == NotKept(f"its result is larger than {RESULT_LIMIT} characters and was not kept")


def test_of_a_long_error_the_end_is_kept_because_that_says_what_it_was() -> None:
    assert error_text(ValueError("short")) == "ValueError: short\n"
    assert error_text("x" * ERROR_LIMIT) == "x" * ERROR_LIMIT
    cut = error_text(ValueError("y" * ERROR_LIMIT + "the end"))
    assert cut.startswith("[cut]\nyyy")
    assert cut.endswith("the end\n")
    assert error_text(cut) == cut
