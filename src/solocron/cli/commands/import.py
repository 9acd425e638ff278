"""`solocron import`: add the schedules of Celery beat, APScheduler or cron as jobs, and undo it."""

from __future__ import annotations

import itertools
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solocron.cli import output
from solocron.cli.arguments import add_listing, add_target
from solocron.cli.author import add_author, author_of
from solocron.cli.exits import FAILED, OK
from solocron.cli.host import hosted
from solocron.cli.opening import named_store, opened
from solocron.errors import EmptyStore, InvalidError, NotFoundError, StoreError

if TYPE_CHECKING:
    from solocron.client import Client
    from solocron.importers.adding import Undone
    from solocron.importers.entry import ImportedJob, RefusedEntry
    from solocron.stores.contract import Store

__all__ = ["add_arguments", "execute"]

_WOULD = "would be added"
SOURCES = ("django-celery-beat", "celery", "apscheduler-store", "crontab")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="?",
        help="settings module or database URL; module:app; database URL; file or -",
    )
    parser.add_argument("--from", dest="origin", choices=SOURCES, help="what SOURCE is")
    parser.add_argument("--dry-run", action="store_true", help="only report; nothing is written")
    if hosted() is None:
        parser.add_argument("--for", dest="target", metavar="TARGET", help="the program that has the handlers")
    else:
        add_target(parser)
    parser.add_argument("--handlers", metavar="FILE", help="write a module with the handlers to a new file")
    parser.add_argument("--tz", metavar="ZONE", help="the zone of the machine (crontab, celery without a zone)")
    parser.add_argument("--system", action="store_true", help="lines have a user, as in /etc/crontab (crontab)")
    parser.add_argument("--table", metavar="NAME", help="its table (apscheduler-store; default: apscheduler_jobs)")
    parser.add_argument("--receipt", metavar="FILE", help="list what was added there (default: a new file here)")
    parser.add_argument("--undo", metavar="RECEIPT", help="remove what an import added")
    add_author(parser, "imports them")
    add_listing(parser)


def execute(args: Namespace) -> int:
    if args.undo is not None:
        return _undo(args)
    if args.origin is None or args.source is None:
        raise InvalidError(f"import wants a SOURCE and --from, one of {', '.join(SOURCES)}. Nothing was imported.")
    _refuse_flags(args)
    from solocron.importers.adding import ImportResult
    from solocron.importers.entry import ImportedJob

    found = _checked(_read(args))
    if not found:
        raise NotFoundError(f"there is no schedule in {_shown(args.source)}. Nothing was imported.")
    jobs = [one for one in found if isinstance(one, ImportedJob)]
    rows: list[dict[str, Any]] = [_refusal(one) for one in found if not isinstance(one, ImportedJob)]
    if args.handlers is not None:
        _write_handlers(args, jobs)
    receipt = looked_at = None
    if args.dry_run:
        compared, looked_at = _compared(args, jobs)
        rows += compared
    elif jobs:
        receipt = args.receipt or _new_receipt()
        added = _add(args, jobs, Path(receipt))
        rows += added
        if not any(row["result"] == ImportResult.ADDED for row in added):
            Path(receipt).unlink()
            receipt = None
    if args.json:
        told = {"from": args.origin, "dry_run": args.dry_run, "receipt": receipt, "looked_at": looked_at, "jobs": rows}
        output.dump(told)
    else:
        _print(args, rows, receipt, looked_at)
    return FAILED if any(row["result"] == ImportResult.REFUSED for row in rows) else OK


def _shown(source: str) -> str:
    """Return SOURCE for a message: a URL without its password."""
    from solocron.stores.url import Secret

    return Secret(source).masked if "://" in source else source


def _refuse_flags(args: Namespace) -> None:
    """Refuse a flag that would be ignored: the caller expects something of it."""
    belongs = {"system": ("crontab",), "table": ("apscheduler-store",), "tz": ("crontab", "celery")}
    for flag, origins in belongs.items():
        if getattr(args, flag) not in (None, False) and args.origin not in origins:
            raise InvalidError(f"--{flag} goes with --from {' or '.join(origins)}. Nothing was imported.")
    if args.dry_run and args.receipt is not None:
        raise InvalidError("a dry run adds nothing, so --receipt does not go with it. Nothing was imported.")


def _new_receipt() -> str:
    """Return the name of a file that does not exist."""
    stem = f"solocron-import-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    return next(name for n in itertools.count(1) if not Path(name := f"{stem}{f'-{n}' * (n > 1)}.jsonl").exists())


# --- read ------------------------------------------------------------------------------------------------------------


def _read(args: Namespace) -> Sequence[ImportedJob | RefusedEntry]:
    if args.origin == "crontab":
        return _crontab(args)
    if args.origin == "celery":
        from solocron.cli.target import object_of
        from solocron.importers.celery_app import is_application, read_beat_schedule

        app = object_of(args.source, "a Celery application")
        if not is_application(app):
            what = f"{args.source} is a {type(app).__name__}, not a Celery application"
            raise InvalidError(f"{what}. Nothing was imported.")
        return read_beat_schedule(app, tz=args.tz)
    if args.origin == "apscheduler-store":
        from solocron.importers.apscheduler_store import read_job_store
        from solocron.importers.database import table_reader

        return read_job_store(table_reader(args.source), name=args.table or "apscheduler_jobs")
    return _django(args)


def _crontab(args: Namespace) -> Sequence[ImportedJob | RefusedEntry]:
    from solocron.importers.crontab import RefusedLine, read_crontab
    from solocron.importers.entry import RefusedEntry, from_crontab_job, named_once, reason
    from solocron.schedules import load_zone

    if args.tz is None:
        raise InvalidError("a crontab needs --tz, the zone of its machine, such as Europe/Paris. Nothing was imported.")
    load_zone(args.tz)
    try:
        text = sys.stdin.read() if args.source == "-" else Path(args.source).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidError(f"{args.source} cannot be read: {error.strerror}. Nothing was imported.") from None
    except UnicodeDecodeError:
        raise InvalidError(f"{args.source} is not a text file in UTF-8. Nothing was imported.") from None
    found = [
        RefusedEntry(f"line {line.line}", reason(line.error))
        if isinstance(line, RefusedLine)
        else from_crontab_job(line)
        for line in read_crontab(text, tz=args.tz, system=args.system)
    ]
    return list(named_once(found, number=True))


def _django(args: Namespace) -> Sequence[ImportedJob | RefusedEntry]:
    from solocron.importers.database import rows_of, table_reader
    from solocron.importers.django_tables import read_periodic_tasks

    if "://" in args.source:
        return read_periodic_tasks(table_reader(args.source))
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    os.environ["DJANGO_SETTINGS_MODULE"] = args.source
    try:
        import django
        from django.conf import settings
        from django.db import connection
        from django.utils import timezone

        django.setup()
        zone = UTC if settings.USE_TZ else timezone.get_default_timezone()
        with connection.cursor() as cursor:
            return read_periodic_tasks(lambda table: rows_of(cursor, table), zone=zone)
    except ModuleNotFoundError as error:
        raise InvalidError(f"{args.source}: there is no module {error.name!r} here. Nothing was imported.") from None
    except InvalidError:
        raise
    except Exception as error:  # noqa: BLE001 - settings are a user's code, and Django has errors of its own
        reason = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(".")
        raise InvalidError(f"the tables of {args.source} cannot be read: {reason}. Nothing was imported.") from None


def _checked(found: Sequence[ImportedJob | RefusedEntry]) -> list[ImportedJob | RefusedEntry]:
    """Refuse what `add` would refuse, before anything is added."""
    from solocron.importers.adding import check_job
    from solocron.importers.entry import ImportedJob, RefusedEntry, reason

    checked: list[ImportedJob | RefusedEntry] = []
    for one in found:
        if isinstance(one, ImportedJob):
            try:
                check_job(one)
            except InvalidError as error:
                checked.append(RefusedEntry(one.name, reason(error)))
                continue
        checked.append(one)
    return checked


# --- compare ---------------------------------------------------------------------------------------------------------


def _compared(args: Namespace, jobs: Sequence[ImportedJob]) -> tuple[list[dict[str, Any]], str | None]:
    """Return what would become of each job, and the store whose jobs it was compared with; None if there is none."""
    from solocron.importers.adding import there_already

    store: Store | None = None
    try:
        store = _store_of(args)
        store.open(read_only=True)
        url, found = store.url, [there_already(store, job) for job in jobs]
    except (EmptyStore, StoreError) as error:
        empty = "there is no store yet, so there are no names to compare with"
        output.note(empty if isinstance(error, EmptyStore) else f"what is there already is not known: {error}")
        return [_row(job, _WOULD) for job in jobs], None
    finally:
        if store is not None:
            store.close()
    rows = [
        _row(job, _WOULD) if there is None else _row(job, there.result, there.why)
        for job, there in zip(jobs, found, strict=True)
    ]
    return rows, url


def _store_of(args: Namespace) -> Store:
    """Return the store that would be written, not opened."""
    if args.target is None:
        return named_store(args)
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import scheduler_of
    from solocron.scheduler.hooks import core_of

    return core_of(scheduler_of(args.target, Overrides(store=args.store, namespace=args.namespace))).store


# --- write -----------------------------------------------------------------------------------------------------------


def _write_handlers(args: Namespace, jobs: Sequence[ImportedJob]) -> None:
    from solocron.importers.handler_source import handler_source

    source = handler_source(jobs, args.origin, app=args.source if args.origin == "celery" else None)
    try:
        with Path(args.handlers).open("x", encoding="utf-8") as file:
            file.write(source)
    except FileExistsError:
        raise InvalidError(f"{args.handlers} exists already, so it was not written. Nothing was imported.") from None
    except OSError as error:
        raise InvalidError(f"{args.handlers} cannot be written: {error.strerror}. Nothing was imported.") from None
    output.note(f"wrote {args.handlers}: {_after_handlers(args)}")


def _after_handlers(args: Namespace) -> str:
    """Return what to do with the module: nodes that run it find their jobs only after the import."""
    if args.dry_run and hosted() is None:
        return f"read it, and give it to the import that adds the jobs: --for {args.handlers}"
    return f"read it, and start it with `solocron run {args.handlers}`"


@contextmanager
def _client(args: Namespace) -> Iterator[Client]:
    if args.target is None:
        with opened(args) as client:
            yield client
        return
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import scheduler_of
    from solocron.scheduler.hooks import core_of

    core = core_of(scheduler_of(args.target, Overrides(store=args.store, namespace=args.namespace)))
    try:
        yield core.open()
    finally:
        core.store.close()


def _add(args: Namespace, jobs: Sequence[ImportedJob], receipt: Path) -> list[dict[str, Any]]:
    from solocron.importers.adding import add_jobs

    rows: list[dict[str, Any]] = []
    try:
        with _client(args) as client:
            for one in add_jobs(client, jobs, receipt, args.origin, by=author_of(args), note=args.note):
                rows.append(_row(one.job, one.result, one.why))
    except StoreError:
        if receipt.exists():
            output.note(f"{receipt} lists what was added before; to remove it: solocron import --undo {receipt}")
        raise
    return rows


def _undo(args: Namespace) -> int:
    from solocron.importers.adding import ImportResult, undo

    others = (args.origin, args.source, args.handlers, args.dry_run, args.tz, args.system, args.table, args.receipt)
    if any(others) or (args.target is not None and hosted() is None):
        raise InvalidError("--undo takes a receipt and nothing else but the store. Nothing was removed.")
    with opened(args) as client:
        found: list[Undone] = list(undo(client, Path(args.undo), by=author_of(args), note=args.note))
    if args.json:
        output.dump({"jobs": [{"job": one.job, "result": one.result, "why": one.why} for one in found]})
    else:
        for one in found:
            output.say(f"{one.job}: {one.result}" + (f", {one.why}" if one.why else ""))
        output.say(f"{sum(one.result == ImportResult.REMOVED for one in found)} of {len(found)} jobs removed")
    return FAILED if any(one.result == ImportResult.KEPT for one in found) else OK


# --- report ----------------------------------------------------------------------------------------------------------


def _row(job: ImportedJob, result: str, why: str = "") -> dict[str, Any]:
    from solocron.schedules import Bounded

    bounds = job.options.get("starts"), job.options.get("ends")
    return {
        "job": job.name,
        "handler": job.handler,
        "schedule": (job.schedule if bounds == (None, None) else Bounded(job.schedule, *bounds)).describe(),
        "paused": job.paused,
        "result": str(result),
        "notes": list(job.notes),
        "why": why,
    }


def _refusal(one: RefusedEntry) -> dict[str, Any]:
    from solocron.importers.adding import ImportResult

    blank: dict[str, Any] = {"handler": None, "schedule": None, "paused": False, "notes": []}
    return {"job": one.entry, **blank, "result": str(ImportResult.REFUSED), "why": one.why}


def _print(args: Namespace, rows: Sequence[dict[str, Any]], receipt: str | None, looked_at: str | None) -> None:
    from solocron.importers.adding import ImportResult

    taken = [row for row in rows if row["result"] != ImportResult.REFUSED]
    groups = {
        "as it is": [row for row in taken if not row["notes"]],
        "with a difference": [row for row in taken if row["notes"]],
        "not imported": [row for row in rows if row["result"] == ImportResult.REFUSED],
    }
    for title, members in groups.items():
        if not members:
            continue
        output.say(f"{title}: {len(members)}")
        for row in members:
            if row["why"]:
                output.tell_below(f"{row['job']}: {row['why']}", 2)
                continue
            paused = ", paused" if row["paused"] else ""
            there = "" if row["result"] in (ImportResult.ADDED, _WOULD) else f" ({row['result']})"
            output.tell_below(f"{row['job']}  {row['schedule']}{paused}, calls {row['handler']}{there}", 2)
            for note in row["notes"]:
                output.tell_below(note, 6)
    added = sum(row["result"] == ImportResult.ADDED for row in rows)
    if args.dry_run:
        output.tell(
            f"nothing was added; handlers to have: {', '.join(sorted({row['handler'] for row in taken})) or 'none'}"
        )
        if looked_at is not None:
            output.say(f"names were compared with those in {looked_at}")
    else:
        output.say(f"{added} {'job' if added == 1 else 'jobs'} added")
        if any(row["why"].startswith("no node has a handler ") for row in rows):
            output.note("missing handlers: `--dry-run --handlers FILE` writes a module that has them, for --for")
    if receipt is not None:
        output.say(f"to undo it: solocron import --undo {receipt}")
