"""Convert the lines of a crontab: fields, `%`, settings such as MAILTO; `@reboot` is refused.

A crontab belongs to one machine and runs shell commands there. A line becomes a job whose function runs the same
command with the same input, on the node that claims the slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from solocron.errors import InvalidError, ScheduleError
from solocron.importers.converted import Converted
from solocron.schedules import Cron

__all__ = ["CrontabJob", "RefusedLine", "from_crontab", "read_crontab"]

_SETTING = re.compile(r"""\s*(?P<name>["']?[A-Za-z_][A-Za-z0-9_]*["']?)\s*=\s*(?P<value>.*?)\s*""")
_OURS = ("MAILTO", "MAILFROM", "CRON_TZ", "RANDOM_DELAY")
"""Settings for cron itself; the others are the environment of the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrontabJob:
    """One line: its schedule, its shell command, and the standard input of the command."""

    line: int
    converted: Converted
    command: str
    stdin: str | None
    environment: Mapping[str, str]
    user: str | None

    @property
    def notes(self) -> tuple[str, ...]:
        return self.converted.notes

    @property
    def argv(self) -> list[str]:
        """The arguments with which cron starts it, by the shell that SHELL names."""
        return [self.environment.get("SHELL", "/bin/sh"), "-c", self.command]

    def source(self, name: str) -> str:
        """Return the source of a function of that name with its declaration; it needs `os`, `subprocess` and `cron`."""
        added = {key: value for key, value in self.environment.items() if key != "SHELL"}
        options = ["check=True"]
        if self.stdin is not None:
            options.append(f"input={self.stdin!r}, text=True")
        if added:
            options.append(f"env={{**os.environ, **{added!r}}}")
        return (
            f"{self.converted.decorator()}\n"
            f"def {name}() -> None:\n"
            f"    subprocess.run({self.argv!r}, {', '.join(options)})\n"
        )


def from_crontab(text: str, *, tz: str, system: bool = False) -> list[CrontabJob]:
    """Convert a crontab. `tz` is the zone of its machine; with `system` lines have a user, as in /etc/crontab.

    One line that cannot be converted refuses the whole, so that none is forgotten.
    """
    found: list[CrontabJob] = []
    for line in read_crontab(text, tz=tz, system=system):
        if isinstance(line, RefusedLine):
            raise type(line.error)(f"line {line.line}: {line.error} Nothing was converted.") from None
        found.append(line)
    return found


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A line that has no counterpart, and why."""

    line: int
    text: str
    error: InvalidError | ScheduleError


def read_crontab(text: str, *, tz: str, system: bool = False) -> Iterator[CrontabJob | RefusedLine]:
    """Yield each line with a command, converted or refused."""
    settings: dict[str, str] = {}
    for number, line in _lines(text):
        setting = _SETTING.fullmatch(line)
        if setting is not None:
            settings[setting["name"].strip("\"'")] = _unquoted(setting["value"])
            continue
        try:
            yield _job(number, line, dict(settings), tz, system)
        except (InvalidError, ScheduleError) as refused:
            yield RefusedLine(number, line, refused)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.lstrip(" \t")
        if stripped and not stripped.startswith("#"):  # a comment is a line of its own, never the end of one
            yield number, stripped


def _job(number: int, line: str, settings: dict[str, str], tz: str, system: bool) -> CrontabJob:
    size = 1 if line.startswith("@") else 5
    words = line.split(None, size + system)
    if len(words) <= size + system:
        raise InvalidError(f"{line!r:.60} has too few fields: {size} for the time{', a user' * system} and a command.")
    fields, user, command = words[:size], words[size] if system else None, words[-1]
    if any("~" in field for field in fields):
        raise InvalidError("~ is a random value of cronie's; write H, which is stable for each job.")
    expression = " ".join(fields)
    command, stdin = _percent(command)
    if not command.strip():
        raise InvalidError("there is no command.")
    notes = []
    if settings.get("MAILTO"):
        notes.append(f"MAILTO={settings['MAILTO']}: output is not mailed; scheduler.on('finished') hears of failures.")
    if "CRON_TZ" in settings:
        tz = settings["CRON_TZ"]
        notes.append(f"CRON_TZ={tz} was taken as the zone: cronie does so, Debian's cron does not.")
    if settings.get("RANDOM_DELAY"):
        notes.append("RANDOM_DELAY was random for each boot; use spread=, one offset per job.")
    if user is not None:
        notes.append(f"it ran as {user}; now it runs as the user of the node.")
    return CrontabJob(
        line=number,
        converted=Converted(schedule=Cron(expression, tz=tz), notes=tuple(notes)),
        command=command,
        stdin=stdin,
        environment={name: value for name, value in settings.items() if name not in _OURS},
        user=user,
    )


def _percent(text: str) -> tuple[str, str | None]:
    r"""The command and its input: the first bare % ends the command, further ones end lines, `\%` is a percent sign.

    Cron ends the input with a newline if it has none; an empty one stays empty.
    """
    pieces = [piece.replace("\\%", "%") for piece in re.findall(r"(?:^|%)((?:\\.|[^%])*)", text)]
    if len(pieces) == 1:
        return pieces[0], None
    stdin = "\n".join(pieces[1:])
    return pieces[0], stdin if not stdin or stdin.endswith("\n") else stdin + "\n"


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
