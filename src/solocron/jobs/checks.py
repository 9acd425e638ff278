"""Checks of single options and names, each with a message that says what to write instead. Nothing is registered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from solocron.duration import parse_duration, to_us
from solocron.errors import InvalidError
from solocron.jobs.options import PLACES, Span
from solocron.model.documents.permit import MOST
from solocron.model.documents.run import Shards
from solocron.model.policy import Backoff, whole
from solocron.model.routing import NODES
from solocron.model.transitions.shards import SHARDS
from solocron.size import format_size, parse_size

__all__ = [
    "NAME",
    "check_backoff",
    "check_choice",
    "check_hand_over",
    "check_isolation",
    "check_limit",
    "check_name",
    "check_names",
    "check_owner",
    "check_payload",
    "check_routing",
    "check_runbook",
    "check_shards",
    "check_span",
    "check_tags",
    "check_whole",
]

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
PAYLOAD_LIMIT = 64 * 1024
PAYLOAD_DEPTH = 32
SHARD_NAME = re.compile(r"[A-Za-z0-9_.-]{1,32}")
NAMED_SHARDS = 100
LIMIT = re.compile(r"([A-Za-z0-9_.-]{1,64}):([0-9]{1,4})")
TAG = re.compile(r"[A-Za-z0-9_.:/=-]{1,64}")
TAGS = 20
OWNER = 200
RUNBOOK = re.compile(r"https?://[^\s/]\S*")
RUNBOOK_LIMIT = 500
LEAST_MEMORY = 64 << 20
"""A Python process with its imports takes nearly half of it before it calls anything."""
MOST_CORES = 4_096
_NOTHING = "Nothing was registered."


def check_backoff(backoff: object) -> Backoff:
    """Return a backoff; a duration alone does not say how the waits grow."""
    if not isinstance(backoff, Backoff):
        raise InvalidError(f'backoff={backoff!r:.60} is not a Backoff; write backoff=Backoff(first="5s"). {_NOTHING}')
    return backoff


def check_name(name: object, what: str = "name") -> str:
    """Return a name that logs, keys and columns can carry."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidError(
            f"{what}={name!r:.150} cannot be used: 1 to 128 letters, digits and _ . : - only. Nothing was registered."
        )
    return name


def check_names(names: object, what: str, *, untouched: str) -> tuple[Any, ...]:
    """Return the members of an iterable; a string, whose members are its letters, is a mistake."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        hint = f"; did you mean ({names!r},)?" if isinstance(names, str) else "."
        kind = "string" if isinstance(names, str) else type(names).__name__
        article = "an" if kind[0] in "aeiou" else "a"
        raise InvalidError(f"{what} must be an iterable of names, not {article} {kind}{hint} {untouched}")
    return tuple(names)


def check_whole(what: str, value: object, least: int, most: int) -> None:
    """Refuse what is not a whole number in a range; `True` is not a number here."""
    if not whole(value) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidError(f"{what}={value!r}: give a whole number from {least} to {most}. Nothing was registered.")


def check_choice(what: str, value: object, known: tuple[str, ...]) -> None:
    """Refuse what is not among the known words."""
    if value not in known:
        choices = " or ".join(f'"{one}"' for one in known)
        raise InvalidError(f"{what}={value!r} is not known; choose {choices}. Nothing was registered.")


def check_span(what: str, value: Span | None) -> int | None:
    """Return a duration above zero in microseconds."""
    if value is None:
        return None
    us = to_us(parse_duration(value, what=what))
    if us <= 0:
        raise InvalidError(f"{what}={value!r}: give a time above zero. Nothing was registered.")
    return us


def check_shards(shards: object) -> Shards | None:
    """Return the number of shards, or their names."""
    if shards is None or (whole(shards) and isinstance(shards, int) and 1 <= shards <= SHARDS):
        return shards
    names = tuple(shards) if isinstance(shards, Iterable) and not isinstance(shards, str | bytes | Mapping) else ()
    good = all(isinstance(name, str) and SHARD_NAME.fullmatch(name) for name in names)
    if not good or not 1 <= len(names) <= NAMED_SHARDS or len(set(names)) < len(names):
        raise InvalidError(
            f"shards={shards!r:.150} cannot be used: give a whole number from 1 to {SHARDS}, or 1 to {NAMED_SHARDS} "
            "different names of up to 32 letters, digits and _ . - each. Nothing was registered."
        )
    return names


def check_routing(nodes: object, prefer: object, shards: object) -> None:
    """Check on how many nodes a slot runs, and which node goes first."""
    if nodes is not None and nodes != "all" and not (isinstance(nodes, int) and whole(nodes) and 1 <= nodes <= NODES):
        raise InvalidError(
            f'nodes={nodes!r:.80}: give a whole number from 1 to {NODES}, or "all". Nothing was registered.'
        )
    if prefer is not None and prefer != "last":
        raise InvalidError(
            f'prefer={prefer!r:.80} is not known; choose "last" or leave it out. Nothing was registered.'
        )
    if nodes is not None and (shards is not None or prefer is not None):
        other = "shards" if shards is not None else "prefer"
        raise InvalidError(f"nodes= and {other}= do not go together; choose one of them. Nothing was registered.")


def check_limit(limit: object) -> str | None:
    """Return a limit in its stored form: a name, and how many runs of all jobs that name it may run at once."""
    if limit is None:
        return None
    found = LIMIT.fullmatch(limit) if isinstance(limit, str) else None
    if found is None or not 1 <= int(found[2]) <= MOST:
        raise InvalidError(
            f"limit={limit!r:.150} cannot be used: give a name of up to 64 letters, digits and _ . - and a number from "
            f'1 to {MOST}, such as "db-heavy:2". Nothing was registered.'
        )
    return f"{found[1]}:{int(found[2])}"


def check_tags(tags: object) -> tuple[str, ...]:
    """Return the tags, sorted and each once."""
    found = set(check_names(tags, "tags", untouched="Nothing was registered."))
    for tag in found:
        if not isinstance(tag, str) or not TAG.fullmatch(tag):
            raise InvalidError(
                f"tags: {tag!r:.80} cannot be used: 1 to 64 letters, digits and _ . : / = - each. Nothing was "
                "registered."
            )
    if len(found) > TAGS:
        raise InvalidError(f"tags: {len(found)} are more than {TAGS}; keep those that people look for. {_NOTHING}")
    return tuple(sorted(found))


def check_owner(owner: object) -> str | None:
    """Return the owner: a short line of text."""
    if owner is None:
        return None
    if not isinstance(owner, str) or not owner.strip() or len(owner) > OWNER or not owner.isprintable():
        raise InvalidError(f"owner={owner!r:.80} cannot be used: 1 to {OWNER} printable characters. {_NOTHING}")
    return owner


def check_runbook(runbook: object) -> str | None:
    """Return the link to a runbook. Only http and https: a page shows it as a link that people follow."""
    if runbook is None:
        return None
    if not isinstance(runbook, str) or len(runbook) > RUNBOOK_LIMIT or not RUNBOOK.fullmatch(runbook):
        raise InvalidError(
            f"runbook={runbook!r:.80} is not a link; give one such as 'https://wiki.example.com/invoices', of at most "
            f"{RUNBOOK_LIMIT} characters. {_NOTHING}"
        )
    return runbook


def check_isolation(run_in: str, memory: int | str | None, cpu: int | None, on_lost: str) -> None:
    """Refuse what only a process of its own can enforce where there is none, and what such a process cannot do.

    Whether a carrier makes a process with limits for each run, it says itself, when the node starts.
    """
    for what, value in (("memory", memory), ("cpu", cpu)):
        if value is not None and run_in in PLACES and run_in != "process":
            raise InvalidError(f'{what}={value!r}: only run_in="process" can keep to it. Nothing was registered.')
    if memory is not None and parse_size(memory, what="memory") < LEAST_MEMORY:
        raise InvalidError(
            f"memory={memory!r} is less than a Python process needs for itself; give {format_size(LEAST_MEMORY)} or "
            "more. Nothing was registered."
        )
    if cpu is not None and (not whole(cpu) or not 1 <= cpu <= MOST_CORES):
        raise InvalidError(f"cpu={cpu!r}: give the number of cores that it may use, from 1 up. Nothing was registered.")
    if run_in == "process" and on_lost == "finish":
        raise InvalidError(
            'on_lost="finish": a process of its own always ends with its lease, which is what run_in="process" '
            'promises. Nothing was registered; leave on_lost at "cancel".'
        )


def check_hand_over(
    run_in: object, options: object, *, limit: object, nodes: object, prefer: object
) -> Mapping[str, Any] | None:
    """Return the options for the carrier that `run_in` names; None where it names a place on the node.

    What bounds or places runs among nodes says nothing of the workers behind a queue, so it is refused.
    """
    if run_in in PLACES:
        if options is not None:
            raise InvalidError(f"hand_over= is for a carrier, and run_in={run_in!r} names none. {_NOTHING}")
        return None
    if not isinstance(run_in, str) or not NAME.fullmatch(run_in):
        choices = " or ".join(f'"{one}"' for one in PLACES)
        raise InvalidError(
            f"run_in={run_in!r:.80} is not known; choose {choices}, or the name of a carrier. {_NOTHING}"
        )
    for what, given in (("limit", limit), ("nodes", nodes), ("prefer", prefer)):
        if given is not None:
            raise InvalidError(
                f"{what}= says which nodes run a job, and {run_in!r} takes it to workers of its own; bound the workers "
                f"of that queue instead. {_NOTHING}"
            )
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise InvalidError(f"hand_over={options!r:.80} is not a mapping of options for {run_in!r}. {_NOTHING}")
    checked: Mapping[str, Any] = check_payload(dict(options), whose=f"hand_over for {run_in!r}")
    return checked


def check_payload(payload: Any, *, whose: str) -> Any:
    """Return a payload as the store keeps it: JSON, bounded in size and depth."""
    try:
        text = json.dumps(payload, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:  # a string that is not UTF-8 is a ValueError too
        raise InvalidError(
            f"the payload of {whose} is not JSON ({error}); nothing was written. Pass plain JSON."
        ) from None
    if size > PAYLOAD_LIMIT:
        raise InvalidError(
            f"the payload of {whose} has {size} bytes, more than {PAYLOAD_LIMIT}; nothing was written. "
            "Keep the data elsewhere and pass its name."
        )
    if _depth(payload) > PAYLOAD_DEPTH:
        raise InvalidError(f"the payload of {whose} is nested deeper than {PAYLOAD_DEPTH}; nothing was written.")
    return json.loads(text)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max(map(_depth, value), default=0)
    return 0
