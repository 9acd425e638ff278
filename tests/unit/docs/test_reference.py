"""The reference pages say what the code says: options and defaults, methods, views, events, errors, statuses, URLs."""

from __future__ import annotations

import ast
import inspect
import logging
import re
import tomllib
from dataclasses import fields
from typing import Any, get_type_hints

import pytest
from prometheus_client import CollectorRegistry

import solocron
from solocron import AsyncRun, AsyncScheduler, Run, Scheduler, cron
from solocron.calendars.views import CalendarView
from solocron.cli.exits import EXITS
from solocron.errors import RunStopped, SolocronError
from solocron.events import NAMES
from solocron.jobs.checks import PAYLOAD_DEPTH, PAYLOAD_LIMIT
from solocron.model.documents.run import Origin, Status
from solocron.model.policy import QUEUE_LIMIT, Backoff
from solocron.stores.sql.sqlite import SQLiteStore
from solocron.stores.url import _SCHEMES
from solocron.telemetry.fleet import FleetMetrics
from solocron.telemetry.log import _LEVELS
from solocron.telemetry.metrics import NodeMetrics
from solocron.views import (
    WAITING,
    AccountingView,
    AlarmsView,
    AlarmView,
    AuditPage,
    AuditView,
    BackfillView,
    HealthView,
    JobView,
    MessageView,
    NodeView,
    ResumeView,
    RunView,
    ScopedPauseView,
    SilenceView,
    SlotView,
    StatusView,
    SyncView,
    TimelineView,
    WhyView,
)
from tests.unit.docs.pages import DOCS, ROOT, WITHOUT_A_PAGE, table

REFERENCE = DOCS / "reference"
SOURCE = ROOT / "src" / "solocron"


def shown(value: Any) -> str:
    """A default as the pages write it."""
    return f'"{value}"' if isinstance(value, str) else repr(value).replace("'", '"')


def keyword_defaults(function: Any) -> dict[str, str]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name: shown(p.default) for p in parameters if p.default is not p.empty}


def test_the_options_of_the_decorators_and_their_defaults() -> None:
    page = {row[0]: row[1] for row in table(REFERENCE / "decorators.md", "Options")}
    assert page == keyword_defaults(cron)


def test_the_default_backoff_is_the_one_on_the_page() -> None:
    text = (REFERENCE / "decorators.md").read_text()
    written = re.search(r"### Backoff|## Backoff\n\n`Backoff\((.*?)\)`", text)
    assert written is not None
    assert eval(f"Backoff({written[1]})", {"Backoff": Backoff}) == Backoff()
    wanted = ", ".join(f"{name}={default}" for name, default in keyword_defaults(Backoff.__init__).items())
    assert written[1] == wanted


def test_the_options_of_the_scheduler_and_their_defaults() -> None:
    page = {row[0]: row[1] for row in table(REFERENCE / "scheduler.md", "Options")}
    assert page == keyword_defaults(Scheduler.__init__)


def written_methods(text: str) -> dict[str, str]:
    """`name(arguments)` in the first cell of a row."""
    return dict(re.findall(r"^\| `(\w+)(\([^`]*\))` \|", text, re.MULTILINE))


def without_types(function: Any) -> str:
    signature = inspect.signature(function)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def test_the_methods_of_the_scheduler_and_their_arguments() -> None:
    page = written_methods((REFERENCE / "scheduler.md").read_text())
    members = {name: value for part in reversed(Scheduler.__mro__) for name, value in vars(part).items()}
    public = {name: value for name, value in members.items() if not name.startswith("_")}
    assert page == {name: without_types(value) for name, value in public.items() if inspect.isfunction(value)}
    properties = {row[0] for row in table(REFERENCE / "scheduler.md", "Properties")}
    assert properties == {name for name, value in public.items() if isinstance(value, property)}


def test_everything_that_looks_or_asks_can_be_awaited() -> None:
    """The page says so of `aio`."""
    text = (REFERENCE / "scheduler.md").read_text()
    asking = set(written_methods(text[text.index("Looking and asking:") :])) - {"open"}
    awaited = {name for name in vars(AsyncScheduler) if not name.startswith("_")}
    assert asking | {"start", "stop", "tick", "run_now", "carry_out"} == awaited - WITHOUT_A_PAGE


@pytest.mark.parametrize(
    "view",
    [
        *(AlarmView, AlarmsView, MessageView, SilenceView, SyncView),
        *(AccountingView, AuditPage, AuditView, SlotView, TimelineView, WhyView),
        *(BackfillView, CalendarView, HealthView, RunView, JobView, NodeView, ResumeView, ScopedPauseView, StatusView),
    ],
)
def test_the_fields_of_a_view(view: Any) -> None:
    page = [row[0] for row in table(REFERENCE / "scheduler.md", view.__name__)]
    assert page == [field.name for field in fields(view)]


def test_the_facts_and_methods_of_a_run() -> None:
    facts = {row[0] for row in table(REFERENCE / "run.md", "Facts")}
    text = (REFERENCE / "run.md").read_text()
    wired = ("self", "stopped", "report", "effects")
    made = {name for name in inspect.signature(Run.__init__).parameters if name not in wired}
    for kind in (Run, AsyncRun):
        members = {name: value for name, value in inspect.getmembers(kind) if name[0] != "_"}
        properties = {name for name, value in members.items() if isinstance(value, property)}
        assert facts == made | properties
        methods = {name: value for name, value in members.items() if inspect.isfunction(value)}
        assert written_methods(text) == {name: without_types(value) for name, value in methods.items()}


def test_the_statuses_and_origins() -> None:
    page = [row[0] for row in table(REFERENCE / "statuses.md", "Of a run")]
    assert page == [str(status) for status in Status]
    assert f"`{WAITING}` is what" in (REFERENCE / "statuses.md").read_text()
    origins = {row[0] for row in table(REFERENCE / "statuses.md", "Origins")}
    assert origins == {str(origin) for origin in Origin}


def emitted() -> dict[str, list[str]]:
    """The facts of every event, read from the calls of `emit` in the package."""
    found: dict[str, list[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "emit"):
                continue
            if node.args and isinstance(node.args[0], ast.Constant):
                facts = found.setdefault(str(node.args[0].value), [])
                facts += [word.arg for word in node.keywords if word.arg and word.arg not in facts]
    return found


def test_the_events_their_sentences_levels_and_facts() -> None:
    page = {row[0]: row[1:] for row in table(REFERENCE / "events.md", "Names")}
    facts = emitted()
    assert list(page) == list(NAMES)
    assert facts.keys() == NAMES.keys(), "every event that is named is emitted, and the other way round"
    for name, (sentence, level, told) in page.items():
        assert sentence == NAMES[name].replace("`", ""), name
        wanted = logging.getLevelName(_LEVELS.get(name, logging.INFO)).lower()
        assert level == {"finished": "info or error", "message dropped": "warning, or debug"}.get(name, wanted), name
        assert sorted(told.split(", ")) == sorted(facts[name]), name


def test_the_fields_of_log_lines() -> None:
    page = {row[0] for row in table(REFERENCE / "logs.md", "Fields")}
    facts = {fact for told in emitted().values() for fact in told}
    assert page == facts - {"exception"} | {"event", "errors_not_logged"}


def errors() -> dict[str, type[SolocronError]]:
    named = {name: getattr(solocron, name) for name in solocron.__all__ if name not in WITHOUT_A_PAGE}
    return {n: value for n, value in named.items() if isinstance(value, type) and issubclass(value, SolocronError)}


def test_the_errors_their_exit_codes_statuses_and_sentences() -> None:
    page = {row[0]: row[1:] for row in table(REFERENCE / "errors.md", "Errors")}
    assert page == {name: [str(error.exit_code), str(error.status), error.__doc__] for name, error in errors().items()}


def test_what_stops_a_body_and_its_sentences() -> None:
    page = {row[0]: row[1] for row in table(REFERENCE / "errors.md", "What stops a body")}
    stops = [RunStopped, *RunStopped.__subclasses__()]
    assert page == {stop.__name__: (stop.__doc__ or "").partition("\n")[0].replace("`", "") for stop in stops}
    assert {stop.__name__ for stop in stops} <= set(solocron.__all__)


def test_the_tree_of_errors_is_the_one_in_the_code() -> None:
    page = (REFERENCE / "errors.md").read_text()
    lines = (solocron.errors.__doc__ or "").partition("\n\n")[2].strip().splitlines()
    tree = [line for line in lines if not any(name in line for name in WITHOUT_A_PAGE)]
    assert "\n".join(tree) in page


def test_the_exit_codes() -> None:
    page = {int(row[0]): row[1] for row in table(REFERENCE / "errors.md", "Exit codes")}
    assert page == {code: meaning.replace("`", "") for code, meaning in EXITS.items()}


def test_the_schemes_of_stores_and_their_extras() -> None:
    page = {row[0]: row[2] for row in table(REFERENCE / "stores.md", "Schemes")}
    assert page == {name: scheme.extra or "" for name, scheme in _SCHEMES.items()}


def test_the_extras_and_what_they_bring() -> None:
    page = {row[0]: row[1].split(", ") for row in table(REFERENCE / "extras.md", "Extras")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought = {
        name: [re.match(r"[\w-]+", package)[0] for package in packages]  # type: ignore[index]
        for name, packages in project.items()
        if name != "dev"
    }
    assert page == brought


def test_the_options_of_stores() -> None:
    from solocron.stores.sql.mysql import MySQLStore
    from solocron.stores.sql.postgres.store import _LIBPQ, _OURS

    page = {row[0]: row[1] for row in table(REFERENCE / "stores.md", "Options")}
    assert set(page["SQLite"].split(", ")) == SQLiteStore.options
    assert set(page["MySQL, MariaDB"].split(", ")) == MySQLStore.options
    ours, _, theirs = page["PostgreSQL"].partition(", and those of libpq such as ")
    assert tuple(ours.split(", ")) == _OURS
    assert set(theirs.split(", ")) <= _LIBPQ


def test_the_oldest_servers_that_are_taken() -> None:
    from solocron.stores.sql.mysql.store import OLDEST as MYSQL
    from solocron.stores.sql.postgres.store import OLDEST as POSTGRES

    page = {row[0]: re.sub(r"\[(.*?)\]\(.*?\)", r"\1", row[1]) for row in table(REFERENCE / "stores.md", "Schemes")}
    assert f"PostgreSQL {POSTGRES // 10000} or later" == page["postgresql"]
    assert f"MySQL {'.'.join(map(str, MYSQL['MySQL']))} or later" == page["mysql"]
    assert f"MariaDB {'.'.join(map(str, MYSQL['MariaDB']))} or later" == page["mariadb"]


def test_the_environment_variables() -> None:
    page = {row[0] for row in table(REFERENCE / "environment.md", "Environment variables")}
    settings = ("flask.py", "gunicorn.py")  # their SOLOCRON_ names are of Flask's config
    shipped = [file for file in SOURCE.rglob("*.py") if "testing" not in file.parts and file.name not in settings]
    used = {name for file in shipped for name in re.findall(r"\bSOLOCRON_[A-Z_]+\b", file.read_text())}
    assert page == used


def test_limits_that_the_pages_name() -> None:
    """A number in a text is as easily forgotten as a name."""
    text = "\n".join(page.read_text() for page in DOCS.rglob("*.md"))
    assert f"{PAYLOAD_LIMIT // 1024} kB" in text
    assert f"{PAYLOAD_DEPTH} levels" in text
    assert f"{QUEUE_LIMIT:,} runs were waiting" in text


def test_every_public_name_is_on_a_reference_page() -> None:
    text = "\n".join(page.read_text() for page in REFERENCE.glob("*.md"))
    public = set(solocron.__all__) - WITHOUT_A_PAGE - {"__version__"}
    missing = sorted(name for name in public if not re.search(rf"\b{name}\b", text))
    assert not missing, f"public, and on no page of docs/reference: {missing}"


def test_what_an_annotation_calls_a_view_is_documented() -> None:
    """Every view that a method of the scheduler returns has a table of its own."""
    text = (REFERENCE / "scheduler.md").read_text()
    answers = {
        str(get_type_hints(getattr(Scheduler, name)).get("return")) for name in ("get_job", "nodes", "runs", "status")
    }
    for view in {name for answer in answers for name in re.findall(r"\w+View", answer)}:
        assert f"### {view}" in text


def test_the_metrics_and_their_labels() -> None:
    """Families of the code against the tables of the page: names, types and labels."""
    page = REFERENCE / "metrics.md"
    registry = CollectorRegistry()
    made = NodeMetrics(registry, namespace=str, node=str, version="", zone_data="")
    instruments = [*vars(made._made).values(), *made._made.counted.values()]
    node = {
        f"{one._name}_total" if one._type == "counter" else one._name: (one._type, one._labelnames[2:])
        for one in instruments
        if not isinstance(one, dict)
    }
    assert {name: (kind, _labels(labels)) for name, kind, labels, _ in table(page, "Node metrics")} == node
    fleet = FleetMetrics(Scheduler("memory://metrics").open, str, clock=float)
    told = {name: (kind, _labels(labels)) for name, kind, labels, _ in table(page, "Fleet metrics")}
    assert told == {one.shown: (one.kind, one.labels[1:]) for one in fleet.families()}


def _labels(text: str) -> tuple[str, ...]:
    return tuple(text.split(", ")) if text else ()
