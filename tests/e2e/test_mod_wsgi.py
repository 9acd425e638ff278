"""Nodes in the daemon processes of a private Apache, which has a Python of its own and reads the packages of ours."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from solocron import EmptyStore, Scheduler
from solocron.testing.fleet import wait_until
from tests.e2e.serving import PATIENCE, ROOT, Served, running

pytestmark = pytest.mark.long  # no part of what `make test` installs, and bound to the version of Debian's Python

MODULES = Path("/usr/lib/apache2/modules")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = sysconfig.get_path("purelib")
HINT = "apt-get install libapache2-mod-wsgi-py3"

CONF = """
ServerRoot {folder}
DefaultRuntimeDir {folder}
PidFile httpd.pid
ErrorLog error.log
LogLevel info
ServerName localhost
{account}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule wsgi_module {modules}/mod_wsgi.so
WSGISocketPrefix {folder}/wsgi
WSGIRestrictEmbedded On
WSGIDaemonProcess shop processes=2 threads=2 home={folder} python-path={path}
WSGIScriptAlias / {folder}/shop.wsgi process-group=shop {group}
<Directory {folder}>
Require all granted
</Directory>
"""

SHOP = """
import os
os.environ["SOLOCRON_STORE"] = {store!r}
from tests.e2e.programs.flask_app import extended_app, solo

@solo.every("200ms", name="beat", catch_up="all")
def beat(run):
    with open({ledger!r}, "a") as file:
        file.write(f"{{run.slot.timestamp()}} {{os.getpid()}}\\n")

application = extended_app()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder of the account under which Apache serves: it never does as root."""
    made = Path(tempfile.mkdtemp(prefix="solocron-apache-"))
    if os.geteuid() == 0:
        os.chown(made, pwd.getpwnam("nobody").pw_uid, -1)
    yield made
    shutil.rmtree(made)


@contextmanager
def apache(folder: Path, store: str, group: str) -> Iterator[Served]:
    program = shutil.which("apache2") or shutil.which("apache2", path="/usr/sbin")
    if program is None or not (MODULES / f"mod_wsgi.so-{VERSION}").exists():
        pytest.skip(f"there is no Apache with a mod_wsgi for Python {VERSION}: {HINT}")
    by_root = os.geteuid() == 0
    if by_root and not all(step.stat().st_mode & 0o001 for step in (ROOT, *ROOT.parents)):
        pytest.skip(f"Apache serves as nobody, who cannot read {ROOT}")
    values = {
        "folder": folder, "modules": MODULES, "group": group, "path": f"{ROOT}:{ROOT / 'src'}:{PACKAGES}",
        "account": "User nobody\nGroup nogroup" if by_root else "",
    }  # fmt: skip
    (folder / "httpd.conf").write_text(CONF.format(**values))
    (folder / "shop.wsgi").write_text(SHOP.format(store=store, ledger=str(folder / "ledger")))
    command = [program, "-f", str(folder / "httpd.conf"), "-DFOREGROUND", "-c", "Listen 127.0.0.1:{port}"]
    with running(command, folder) as server:
        yield server


@pytest.mark.parametrize(
    "group", ["application-group=%{GLOBAL}", ""], ids=["the first interpreter", "a sub-interpreter"]
)
def test_each_daemon_process_is_a_node_from_its_first_request_to_its_end(group: str, folder: Path) -> None:
    """A sub-interpreter of mod_wsgi 4.9 hangs at its end until Apache kills the process, without atexit: its sessions
    stayed until their leases were over."""
    store = f"sqlite:///{folder / 'jobs.db'}"
    look = Scheduler(store, enabled=False)

    def pids() -> set[int]:
        try:
            return {node.pid for node in look.nodes()}
        except EmptyStore:
            return set()

    with apache(folder, store, group) as server:

        def served() -> bool:
            return len(pids() | {int(server.ask("/")[1])}) == len(pids()) == 2

        wait_until(served, within=PATIENCE, what=lambda: (folder / "error.log").read_text())
        assert pids() <= set(server.children())
        assert look.wait(look.trigger("where"), "20s").result[1] == "shop"
        ledger = folder / "ledger"
        before = len(ledger.read_text().splitlines())
        wait_until(lambda: len(ledger.read_text().splitlines()) >= before + 6, within=PATIENCE, what="runs")
        assert server.stop() == 0
    slots = [line.split()[0] for line in ledger.read_text().splitlines()]
    assert len(set(slots)) == len(slots), "a slot ran twice"
    assert look.nodes() == [], "each process has drained"
    look.stop()
