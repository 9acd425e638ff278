"""What cannot be meant is refused when it is declared, in one sentence that names the field and says what to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.errors import ScheduleError
from solocron.schedules import Cron
from tests.properties import calm
from tests.unit.model.effort import effort


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("60 * * * *", "minute field '60' is out of range; minutes go from 0 to 59"),
        ("0 24 * * *", "hour field '24' is out of range; hours go from 0 to 23"),
        ("0 0 0 * *", "day of month field '0' is out of range"),
        ("0 0 32 * *", "day of month field '32' is out of range"),
        ("0 0 1 13 *", "month field '13' is out of range"),
        ("0 0 * * 8", "day of week field '8' is out of range"),
        ("60 0 0 * * *", "second field '60' is out of range; seconds go from 0 to 59"),
        ("0-60 * * * *", "minute field '0-60' is out of range"),
        ("*/0 * * * *", "minute field '*/0' has a step of 0"),
        ("*/0 * * * * *", "second field '*/0' has a step of 0"),
        ("0 9-17/0 * * *", "hour field '9-17/0' has a step of 0"),
        ("0 0 31 2 *", "day of month field '31', the month field '2' and the day of week field '*' never meet"),
        ("0 0 30 FEB ?", "never meet on any date"),
        ("0 0 31 4,6,9,11 *", "never meet on any date"),
        ("0 0 */30 2 MON#5", "never meet on any date"),
        ("0 0 15W * *", "nearest weekday, which is not supported; use LW"),
        ("0 0 L-3 * *", "counts days back from the last, which is not supported; use L"),
        ("0 0 L/2 * *", "has a step after L"),
        ("0 22-2 * * *", "hour field '22-2' runs backwards; write 22-23,0-2"),
        ("0 0 * NOV-FEB *", "runs backwards; write 11-12,1-2"),
        ("0 0 * * FRI-SUN", "runs backwards; write 5-7."),
        ("0 0 * * FRI-MON", "runs backwards; write 5-7,1."),
        ("0 0 * * SAT-TUE", "runs backwards; write 6-7,1-2."),
        ("0 0 1 1 * 2027", "looks like a year"),
        ("0 0 0 1 1 ? 2027", "a year field is not supported"),
        ("0 0 * * FRIL", "use 5L"),
        ("0 0 * * MON#6", "counts from #1 to #5"),
        ("0 0 * * MON#0", "counts from #1 to #5"),
        ("1,,2 * * * *", "minute field '1,,2' has an empty item"),
        ("0 0 * FOO *", "month field 'FOO' cannot be read; months go from 1 to 12 or JAN to DEC"),
        ("0 0 * * FUNDAY", "day of week field 'FUNDAY' cannot be read"),
        ("a * * * *", "minute field 'A' cannot be read"),
        ("1- * * * *", "minute field '1-' cannot be read"),
        ("-1 * * * *", "minute field '-1' cannot be read"),
        ("1/2/3 * * * *", "minute field '1/2/3' cannot be read"),
        ("? * * * *", "minute field '?': ? means 'any'"),
        ("0 0 ?/2 * *", "day of month field '?/2': ? means 'any'"),
        ("@reboot", "@reboot is not a time"),
        ("@every 5s", "write every('5s')"),
        ("@dayly", "known are @hourly, @daily"),
        ("", "it is empty"),
        (" \t ", "it is empty"),
        ("*", "1 field; give five"),
        ("* * * *", "4 fields; give five"),
        ("* * * * * * * *", "8 fields; give five"),
        ("٣ * * * *", "only ASCII"),
        ("\x00 * * * *", "cannot be read"),
        ("* " * 150, "300 characters are too long; at most 200"),
        (",".join(["1"] * 65) + " * * * *", "lists 65 items, at most 64"),
        (None, "None is not a cron expression"),
        (5, "5 is not a cron expression"),
        ("H * * * *", "minute field 'H': H needs a job's name"),
    ],
)
def test_each_mistake_has_its_sentence(expression, says):
    with pytest.raises(ScheduleError) as refused:
        Cron(expression)
    message = str(refused.value)
    assert says in message
    assert message.startswith("cron ")
    assert message.endswith(".")
    assert len(message) < 300


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("H(5-70) * * * *", "H takes a range that rises, within 0-59"),
        ("0 H(22-2) * * *", "H takes a range that rises, within 0-23"),
        ("H/61 * * * *", "the step must be from 1 to 60"),
        ("H/0 * * * *", "the step must be from 1 to 60"),
        ("H(0-9)/11 * * * *", "the step must be from 1 to 10"),
        ("H-5 * * * *", "H is written H, H(a-b), H/n or H(a-b)/n"),
        ("H(5) * * * *", "H is written H, H(a-b), H/n or H(a-b)/n"),
    ],
)
def test_each_mistake_with_h_has_its_sentence(expression, says):
    with pytest.raises(ScheduleError, match=r"^cron ") as refused:
        Cron(expression, seed="report")
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tz": "Europe/Pariss"}, "unknown time zone 'Europe/Pariss'; did you mean 'Europe/Paris'"),
        ({"tz": "europe/paris"}, "did you mean 'Europe/Paris'"),
        ({"tz": "../../../etc/passwd"}, "unknown time zone"),
        ({"tz": ""}, "give an IANA name such as 'Europe/Paris'"),
        ({"tz": "x" * 5000}, "unknown time zone"),
        ({"tz": None}, "tz=None names no zone"),
        ({"tz": ["UTC"]}, "names no zone"),
        ({"dst": {"gap": "ignore"}}, "dst gap cannot be 'ignore'; choose 'run-after' or 'skip'"),
        ({"dst": {"fold": "twice"}}, "dst fold cannot be 'twice'; choose 'first' or 'last' or 'both'"),
        ({"dst": {"spring": "skip"}}, "dst has no 'spring'; it takes 'gap' and 'fold'"),
        ({"dst": "skip"}, "dst='skip' is not a mapping"),
    ],
)
def test_zones_and_rules_are_checked_too(options, says):
    with pytest.raises(ScheduleError) as refused:
        Cron("0 9 * * *", **options)
    assert says in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("expression", ["30 2 * 3 SUN#2", "*/15 2 * 3 SUN#2"])
def test_a_time_that_the_clocks_always_skip_is_refused(expression):
    """On the second Sunday of March no clock in New York shows 02:30."""
    with pytest.raises(ScheduleError, match="it never fires: in America/New_York the clocks skip"):
        Cron(expression, tz="America/New_York", dst={"gap": "skip"})
    assert Cron("30 2 * 3 SUN#2", tz="America/New_York")


@calm(100)
@given(
    st.one_of(
        st.text(max_size=10_000),
        st.text(alphabet="0123456789*/-,?#LWHMONTUEJAN@() ", max_size=250),
        st.lists(st.text(alphabet="0123456789*/-,LWH#()", min_size=1, max_size=30), min_size=5, max_size=6).map(
            " ".join
        ),
    )
)
def test_any_text_is_read_or_refused_within_milliseconds(text):
    said: list[str] = []

    def read() -> None:
        try:
            said.append(repr(Cron(text, seed="job")))
        except ScheduleError as refused:
            said.append(str(refused))

    assert effort(read, 0.1) < 0.1
    assert len(said[0]) < 1_000


@pytest.mark.parametrize(
    "text", ["*" * 10_000, "1," * 5_000, "* " * 5_000, "1-" * 5_000, "H(" * 5_000, "*/" * 5_000, "9" * 10_000]
)
def test_ten_thousand_characters_end_within_milliseconds(text):
    def refuse() -> None:
        with pytest.raises(ScheduleError):
            Cron(text, seed="job")

    assert effort(refuse, 0.02) < 0.02


def test_the_longest_allowed_expressions_are_read_quickly():
    def read() -> None:
        Cron(",".join(map(str, range(60))) + " * * * *")
        Cron("0 " + ",".join(["*"] * 64) + " " + ",".join(["1-31/2"] * 8) + " * *")

    assert effort(read, 0.1) < 0.1
