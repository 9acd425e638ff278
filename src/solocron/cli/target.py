"""Find the scheduler of TARGET: a module, `module:scheduler`, or a path to a file. The current folder is importable."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from logging import LogRecord, getLogger
from pathlib import Path
from types import ModuleType
from typing import Any

from solocron import surroundings
from solocron.cli.host import hosted
from solocron.cli.overrides import Overrides
from solocron.errors import ConfigurationError, InvalidError, SolocronError
from solocron.jobs.discovery import functions_of
from solocron.near import did_you_mean, nearest
from solocron.scheduler import Scheduler
from solocron.scheduler.hooks import core_of

__all__ = ["object_of", "prepare", "scheduler_of"]

log = getLogger("solocron")

_LONGEST = 300
_UNPREPARED = ("AppRegistryNotReady", "ImproperlyConfigured")
"""Errors of Django in a process that has not called `django.setup()`."""
_DJANGO = (
    "in a Django project each command is `python manage.py solocron ...`, without TARGET and with "
    '"solocron.django" in INSTALLED_APPS.'
)


def scheduler_of(target: str, overrides: Overrides) -> Scheduler:
    """Return the scheduler that TARGET names, or a new one for the jobs that its module declares.

    A module that starts its scheduler when it is imported is refused. It would be a node of its own, without the flags
    of the command; and an import that calls `run_forever()` ends only at SIGTERM, when the command would begin.
    """
    host = hosted()
    if host is not None:
        overrides.apply(host.scheduler, target)
        return host.scheduler
    surroundings.imports_target = True
    try:
        return _scheduler_of(target, overrides)
    finally:
        surroundings.imports_target = False


def prepare(scheduler: Scheduler) -> None:
    """Call the function of `Scheduler.setup`, in a process that is about to carry runs."""
    core = core_of(scheduler)
    if hosted() is not None:  # an application has prepared itself
        core.prepared_process = os.getpid()
        return
    try:
        core.prepare()
    except SolocronError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an error of a user's function is reported with its place
        assert core.setup is not None
        raise ConfigurationError(
            f"{_where(error)}setup {core.setup} failed: {error!r:.300}. Nothing was started."
        ) from None


def object_of(target: str, what: str) -> Any:
    """Return the object that `module:name` names; `what` it should be is for the message."""
    place, _, attribute = target.partition(":")
    if not attribute:
        raise InvalidError(f"{target!r:.80} names no object; write module:name for {what}. Nothing was imported.")
    value: Any = _load(place)
    for name in attribute.split("."):
        if not hasattr(value, name):
            raise InvalidError(f"{place} has no {attribute!r:.60} that could be {what}. Nothing was imported.")
        value = getattr(value, name)
    return value


def _scheduler_of(target: str, overrides: Overrides) -> Scheduler:
    place, _, attribute = target.partition(":")
    module = _load(place)
    found = _schedulers(module)
    if attribute:
        scheduler = _attribute(module, attribute, found)
    elif len(found) > 1:
        choice = " or ".join(f"{place}:{name}" for name in found)
        raise InvalidError(f"{place} holds {len(found)} schedulers; nothing was started. Say which: {choice}.")
    elif found:
        scheduler = next(iter(found.values()))
        scheduler.discover(*functions_of(module))  # jobs beside the scheduler are its own
    else:
        scheduler = overrides.make()
        _discover(scheduler, module)
        _must_have_jobs(scheduler, place)
        return scheduler
    if not scheduler.registry.jobs:
        _discover(scheduler, module)
    _must_have_jobs(scheduler, target)
    overrides.apply(scheduler, target)
    return scheduler


def _discover(scheduler: Scheduler, module: ModuleType) -> None:
    """Register the jobs of a module, without the warning of `discover` where there are none.

    `_must_have_jobs` says so of a module that has no handler either. One with handlers alone is in order: its jobs are
    data, as those of the module that `solocron import --handlers` writes.
    """
    log.addFilter(_of_jobs)
    try:
        scheduler.discover(module)
    finally:
        log.removeFilter(_of_jobs)


def _of_jobs(record: LogRecord) -> bool:
    return getattr(record, "event", None) != "no jobs"


def _must_have_jobs(scheduler: Scheduler, target: str) -> None:
    if not scheduler.registry.handlers:
        raise InvalidError(
            f"{target} declares no jobs, so nothing was started. Put @cron, @every or @at on a function in it, or call "
            "scheduler.discover(...) there."
        )


def _schedulers(module: ModuleType) -> dict[str, Scheduler]:
    """Return the schedulers at the top level of a module, each under its first name."""
    found: dict[str, Scheduler] = {}
    for name, value in vars(module).items():
        if isinstance(value, Scheduler) and all(value is not known for known in found.values()):
            found[name] = value
    return found


def _attribute(module: ModuleType, dotted: str, found: dict[str, Scheduler]) -> Scheduler:
    value: Any = module
    for name in dotted.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            close = nearest(dotted, found) or list(found)[:1]
            hint = f"did you mean {module.__name__}:{close[0]}?" if close else "it holds no scheduler."
            raise InvalidError(f"{module.__name__} has no {dotted!r:.80}; nothing was started; {hint}") from None
    if not isinstance(value, Scheduler):
        what = f"{module.__name__}:{dotted} is a {type(value).__name__}, not a Scheduler; nothing was started"
        raise InvalidError(f"{what}; {_DJANGO}" if module.__name__ == "solocron.django" else f"{what}.")
    return value


# --- importing -------------------------------------------------------------------------------------------------------


def _load(place: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    if place.endswith(".py") or os.sep in place:
        return _load_file(place)
    if not all(part.isidentifier() for part in place.split(".")):
        raise InvalidError(
            f"TARGET {place!r:.80} is neither a module's name nor a path to a .py file; nothing was started."
        )
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
            raise InvalidError(f"there is no module {place!r:.80} here or on the import path{_near(place)}") from None
        raise _refusal(place, error) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an error of a user's module is reported with its place
        raise _refusal(place, error) from None


def _load_file(place: str) -> ModuleType:
    """Import a file: as a module of its package, so that relative imports work, else under its own name."""
    path = Path(place).resolve()
    if not path.is_file():
        raise InvalidError(f"there is no file {place}; nothing was started.")
    folder, parts = path.parent, [] if path.stem == "__init__" else [path.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    name = ".".join(parts)
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    if known is not None or name in sys.stdlib_module_names:
        raise InvalidError(f"{place} has the name of another module, {name!r}; nothing was started. Rename the file.")
    try:
        if len(parts) > 1:
            return importlib.import_module(name)
        return _execute(name, path)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an error of a user's module is reported with its place
        raise _refusal(place, error) from None


def _execute(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidError("it is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _refusal(place: str, error: BaseException) -> InvalidError:
    """Return the error of an import, with the file and line in the user's code."""
    if type(error) in (InvalidError, ConfigurationError) and "nothing was started" in str(
        error
    ):  # an error of ours that is complete
        return InvalidError(f"{place} could not be imported: {_where(error)}{error}")
    if type(error).__name__ in _UNPREPARED and type(error).__module__.startswith("django."):
        return InvalidError(f"{place} could not be imported: {error} Nothing was started; {_DJANGO}")
    if isinstance(error, SystemExit):
        what = f"it ends the process when imported (exit {error.code}); put that below `if __name__ == '__main__':`"
    elif isinstance(error, SyntaxError):
        what = f"{error.msg}"
    else:
        what = f"{type(error).__name__}: {error}"
    return InvalidError(f"{place} could not be imported: {_where(error)}{_one_line(what)} Nothing was started.")


def _one_line(text: str) -> str:
    """Return the first line of an error as a sentence; a driver may put a page into one."""
    first = next(iter(text.splitlines()), "")
    return f"{first[:_LONGEST]}..." if len(first) > _LONGEST else f"{first.removesuffix('.')}."


def _where(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: "
    frames = traceback.extract_tb(error.__traceback__)
    package = str(Path(__file__).resolve().parent.parent)
    theirs = [f for f in frames if not f.filename.startswith((package, "<frozen", importlib.__path__[0]))]
    return f"{theirs[-1].filename}, line {theirs[-1].lineno}: " if theirs else ""


def _near(place: str) -> str:
    here = Path.cwd()
    names = [path.stem for path in here.glob("*.py")] + [path.parent.name for path in here.glob("*/__init__.py")]
    hint = did_you_mean(place, names)
    return f"; {hint} Nothing was started." if hint else "; nothing was started."
