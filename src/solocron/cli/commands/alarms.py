"""`solocron alarms`: list what is wrong and what was told of it; silence some of it, or lift a silence."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.alarm_rows import single
from solocron.cli.arguments import add_listing
from solocron.cli.auditing import audited_act
from solocron.cli.author import author_of
from solocron.cli.exits import OK
from solocron.cli.host import program
from solocron.cli.moments import later, utc
from solocron.cli.opening import opened
from solocron.errors import InvalidError

if TYPE_CHECKING:
    from solocron.client import Client
    from solocron.views import AlarmsView, MessageView

__all__ = ["add_arguments", "execute"]

_DELIVERIES = {
    "done": "",
    "refused": "; NO target accepted the message: look for `not delivered` in the log of that node",
    "doubtful": "; a target did not reply in time: it is not known whether the message arrived",
    "unknown": "; its node has not yet said whether the message arrived",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", metavar="silence|lift", nargs="?", choices=("silence", "lift"), help="what to do")
    parser.add_argument(
        "words",
        metavar="KIND|JOBS",
        nargs="?",
        help="a kind (late), jobs by a pattern ('billing-*'), or late:billing-*",
    )
    parser.add_argument(
        "--until", metavar="INSTANT", help="when a silence ends, or after a time such as 2h; it must end"
    )
    parser.add_argument("--note", metavar="WHY", help="why; kept on record, and shown with a silence")
    parser.add_argument("--by", metavar="WHO", help="who silences or lifts it (default: the user of this terminal)")
    add_listing(parser)


def execute(args: Namespace) -> int:
    _check(args)
    with opened(args) as client:
        if args.action == "silence":
            return _silence(args, client)
        if args.action == "lift":
            with audited_act(client, "lift", args.words, by=author_of(args), note=args.note):
                client.lift_silence(args.words)
            if args.json:
                return output.dump_views(client.open_alarms())
            output.say(f"{args.words} is no longer silenced: what is still wrong is told")
            return OK
        found = client.open_alarms()
    if args.json:
        return output.dump_views(found)
    _show(found)
    return OK


def _check(args: Namespace) -> None:
    """Refuse words that belong together and do not come together."""
    if args.action is None and (args.until or args.note or args.by):
        raise InvalidError("--until, --note and --by belong to `solocron alarms silence`; nothing was changed.")
    if args.action is not None and args.words is None:
        raise InvalidError(f"alarms {args.action}: say what, a kind or a pattern of jobs; nothing was changed.")
    if args.action == "silence" and args.until is None:
        raise InvalidError("alarms silence: say --until when, such as --until 2h; nothing was silenced.")
    if args.action == "lift" and args.until:
        raise InvalidError("alarms lift takes no --until: it ends the silence now; nothing was lifted.")


def _silence(args: Namespace, client: Client) -> int:
    until = later(args.until, "--until", client.store.clock())
    by = author_of(args)
    with audited_act(client, "silence", args.words, by=by, note=args.note):
        made = client.silence(args.words, until=until, note=args.note, by=by)
    if args.json:
        return output.dump_views(made)
    lift = f"{program()} alarms lift {shlex.quote(made.what)}"
    output.say(f"{made.what} is silenced until {utc(made.until)} UTC, or until `{lift}`")
    return OK


def _show(found: AlarmsView) -> None:
    if not found.alarms:
        output.say("no alarm is open")
    else:
        output.table(["ALARM", "STATE", "OF", "SINCE (UTC)", "WHY"], map(single, found.alarms))
    if found.messages:
        print()
        for message in found.messages:
            output.say(_told(message))
    if found.silences:
        print()
        rows = [(one.what, utc(one.until), one.by or "-", one.note or "") for one in found.silences]
        output.table(["SILENCED", "UNTIL (UTC)", "BY", "WHY"], rows)


def _told(message: MessageView) -> str:
    told = f"{message.kind} was told at {utc(message.raised_at)} UTC by {message.node}"
    return f"{told}{_DELIVERIES[message.delivery]}"
