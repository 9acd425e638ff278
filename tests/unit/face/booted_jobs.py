"""Jobs of a program that has to be prepared before it runs any of them, as Django has."""

from __future__ import annotations

from collections.abc import Iterator

from solocron import every, given
from tests.unit.face import boot

boot.require()


def get_db() -> Iterator[str]:
    yield "db in a child"


@every("1d", run_in="process")
def isolated(*, db: str = given(get_db)) -> str:
    return f"{boot.calls} call of boot, {db}"
