"""The relay that shifts the time of a member changes the date of a reply and nothing else, however it is cut."""

from __future__ import annotations

import pytest

from proof.chaos.date_relay import Shift

REPLY = b'HTTP/1.1 200 OK\r\nDate: Tue, 17 Nov 2026 23:59:58 GMT\r\nContent-Length: 8\r\n\r\n{"D": 1}'


@pytest.mark.parametrize("size", [1, 2, 7, 40, 1_000])
def test_dates_are_shifted_in_chunks_of_any_size(size: int) -> None:
    shift = Shift(5)
    sent = b"".join(shift.take((REPLY * 3)[at : at + size]) for at in range(0, 3 * len(REPLY), size))
    assert sent == REPLY.replace(b"Tue, 17 Nov 2026 23:59:58", b"Wed, 18 Nov 2026 00:00:03") * 3


def test_a_member_may_be_behind() -> None:
    assert b"23:59:53 GMT" in Shift(-5).take(REPLY)


def test_a_reply_without_a_date_is_sent_on_at_once() -> None:
    assert Shift(5).take(b'{"result": "D') == b'{"result": "'
    assert Shift(5).take(b'{"result": "Date"}\n') == b'{"result": "Date"}\n'
