"""Run by Django's own test runner."""

from __future__ import annotations

import json
import time
from typing import Any
from unittest import mock

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.test import Client, SimpleTestCase, TestCase, TransactionTestCase, override_settings
from django.urls import path
from shop.urls import SECRET

from books.models import Order
from solocron import ConfigurationError, NotFoundError
from solocron.django import project, scheduler, trigger
from solocron.django.checks import check_database
from solocron.django.database import url_of
from solocron.django.testing import Triggered, run_now, triggered
from solocron.telemetry.messages import signature


class JobTest(TestCase):
    def test_a_job_runs_in_the_transaction_of_the_test(self) -> None:
        Order.objects.create(name="of the test")
        assert run_now("bill", order=17)[0] == 2
        assert Order.objects.filter(name="billed 17").exists()

    def test_what_it_has_written_is_rolled_back_with_the_test(self) -> None:
        assert not Order.objects.exists()

    def test_what_is_triggered_is_seen_before_the_commit(self) -> None:
        with triggered() as found:
            with transaction.atomic():
                trigger("bill", {"order": 1}, key="one")
            assert found == [Triggered("bill", {"order": 1}, "one")]
            with self.assertRaisesMessage(NotFoundError, "did you mean 'bill'?"):
                trigger("bil")

    def test_a_node_is_refused(self) -> None:
        with self.assertRaisesMessage(ConfigurationError, "testing.run_now(job) instead"):
            scheduler.start()


class TriggerTest(TransactionTestCase):
    databases = {"default", "other"}

    def waiting(self) -> list[str]:
        return [waits.run for waits in scheduler.get_job("bill").waits]

    def setUp(self) -> None:
        scheduler.tick()

    def test_on_another_database_it_is_made_after_the_commit(self) -> None:
        with transaction.atomic("other"):
            assert trigger("bill", key="after") is None
            before = scheduler.get_job("bill").waiting
        assert scheduler.get_job("bill").waiting == before + 1
        try:
            with transaction.atomic("other"):
                trigger("bill", key="never")
                raise RuntimeError
        except RuntimeError:
            pass
        assert scheduler.get_job("bill").waiting == before + 1

    def test_outside_of_a_transaction_it_is_made_at_once(self) -> None:
        run = trigger("bill", key="now")
        assert run in self.waiting()


class SettingTest(SimpleTestCase):
    databases = {"default"}

    def messages(self, **setting: Any) -> list[tuple[str, str]]:
        with override_settings(SOLOCRON=setting):
            return [(str(one.id), one.msg) for one in checks.run_checks(tags=["solocron"])]

    def test_a_good_setting_has_no_message(self) -> None:
        assert self.messages(STORE="default") == []

    def test_mistakes_are_told(self) -> None:
        for setting, id, said in (
            ({"STROE": "default"}, "E001", "the setting SOLOCRON has no 'STROE'; did you mean 'STORE'?"),
            ({"STORE": "defualt"}, "E001", "neither an alias of DATABASES nor a URL; did you mean 'default'?"),
            ({"MODULES": "jobs"}, "E001", "SOLOCRON['MODULES'] must be a list"),
            ({"CARRIERS": print}, "E001", "is not the path of a function"),
            ({"DASHBOARD": {"color": 1}}, "E001", "SOLOCRON['DASHBOARD'] must be a dict of"),
        ):
            ((found, message),) = self.messages(**setting)
            assert found == f"solocron.{id}", (found, message)
            assert said in message, message

    def test_a_database_that_is_no_store_is_told(self) -> None:
        with mock.patch.object(type(connections["default"]), "vendor", "oracle"):
            ((found, message),) = self.messages(STORE="default")
        assert found == "solocron.E002"
        assert "is a oracle database, which is not a store" in message

    def test_a_file_that_only_this_machine_has_is_warned_of_in_production(self) -> None:
        with (
            mock.patch("solocron.django.checks.in_tests", lambda: False),
            mock.patch("solocron.django.checks.url_of", lambda alias: "sqlite:////srv/db"),
        ):
            assert [id for id, _ in self.messages(STORE="default")] == ["solocron.W001"]
            with override_settings(DEBUG=True):
                assert self.messages(STORE="default") == []

    def test_a_django_that_is_too_old_is_one_sentence(self) -> None:
        with (
            mock.patch("django.VERSION", (4, 1, 13, "final", 0)),
            self.assertRaisesMessage(ImproperlyConfigured, "is too old for solocron.django: 4.2 or later is needed."),
        ):
            apps.get_app_config("solocron").ready()

    def test_modules_that_fail_are_told_and_no_job_can_be_used(self) -> None:
        for module, id in (
            ("broken", "E003"), ("unreachable", "E003"), ("twice", "E004"), ("unreadable", "E005"),
        ):  # fmt: skip
            with override_settings(SOLOCRON={"MODULES": ["jobs", module]}), self.assertLogs("solocron", "ERROR"):
                project.load_jobs()
                found = [one.id for one in checks.run_checks(tags=["solocron"])]
                assert found == [f"solocron.{id}"], found
                with self.assertRaisesMessage(ConfigurationError, f"books.{module}"):
                    scheduler.jobs()
            project.load_jobs()
        assert "bill" in scheduler.registry.jobs

    def test_another_setting_makes_another_scheduler(self) -> None:
        with override_settings(SOLOCRON={"NAMESPACE": "elsewhere", "POOLS": ["web"]}):
            assert project.current()._core.configuration.namespace == "elsewhere"
        assert project.current()._core.configuration.namespace == "default"

    def test_the_url_of_a_database(self) -> None:
        def url(vendor: str, **known: Any) -> str:
            connection = connections["default"]
            with (
                mock.patch.object(type(connection), "vendor", vendor),
                mock.patch.object(connection, "settings_dict", known),
                mock.patch("solocron.django.database.in_tests", lambda: False),
            ):
                return url_of("default")

        whole = {"NAME": "my db", "USER": "a@b", "PASSWORD": "p/w:#", "HOST": "db", "PORT": 6543}
        tls = {"sslmode": "verify-full", "pool": True, "options": "-c search_path=x"}
        assert url("postgresql", **whole, OPTIONS=tls) == (
            "postgresql://a%40b:p%2Fw%3A%23@db:6543/my%20db?sslmode=verify-full&options=-c%20search_path%3Dx"
        )
        assert url("postgresql", NAME="x", HOST="/run/pg") == "postgresql:///x?host=/run/pg"
        assert url("mysql", NAME="x", USER="u", OPTIONS={"ssl": {"ca": "/ca"}}) == "mysql://u@localhost/x?ssl_ca=/ca"
        assert url("mysql", NAME="x", HOST="/my.sock") == "mysql://localhost/x?unix_socket=/my.sock"
        assert url("sqlite", NAME="/srv/db file") == "sqlite:////srv/db%20file"
        for vendor, known in (("sqlite", {"NAME": ":memory:"}), ("mysql", {"OPTIONS": {"read_default_file": "x"}})):
            with self.assertRaises(ConfigurationError):
                url(vendor, **known)


class DatabaseTest(TransactionTestCase):
    def test_a_store_that_a_node_has_used_passes_the_check_of_databases(self) -> None:
        scheduler.tick()
        with mock.patch("solocron.django.checks.in_tests", lambda: False):
            assert check_database(databases=["default"]) == []

    @override_settings(DEBUG=True)
    def test_the_queries_of_a_run_are_forgotten_after_it_as_those_of_a_request(self) -> None:
        connection.force_debug_cursor = True
        try:
            Order.objects.count()
            run_now("bill", order=1)
            assert connection.queries == []
        finally:
            connection.force_debug_cursor = False


class CommandTest(TransactionTestCase):
    def test_it_can_be_called_from_code(self) -> None:
        call_command("solocron", "tick", "--json")
        with self.assertRaises(CommandError) as raised:
            call_command("solocron", "show", "nothing")
        assert raised.exception.returncode == 3


class ErrorTest(SimpleTestCase):
    @override_settings(SOLOCRON={"STORE": "redis://127.0.0.1:1/0"})
    def test_a_view_answers_503_while_the_store_is_away(self) -> None:
        answer = self.client.get("/bill")
        assert (answer.status_code, "cannot be reached" in answer.json()["detail"]) == (503, True)


class DashboardTest(TransactionTestCase):
    def setUp(self) -> None:
        scheduler.tick()
        User.objects.create_user("ana", is_staff=True)
        User.objects.create_user("bob")
        User.objects.create_superuser("root")

    def ask(self, user: str | None, path: str, method: str = "get", **headers: str) -> Any:
        self.client.logout()
        if user is not None:
            self.client.force_login(User.objects.get(username=user))
        more = {} if method == "get" else {"content_type": "application/json", "data": "{}"}
        return getattr(self.client, method)(f"/ops/solocron/{path}", headers=headers, **more)

    def test_staff_look_strangers_log_in_and_others_are_refused(self) -> None:
        page = self.ask("ana", "jobs", accept="text/html")
        assert page.status_code == 200
        assert b"bill" in page.content
        assert b'href="/ops/solocron/jobs/bill' in page.content, "links are below the path where it is mounted"
        stranger = self.ask(None, "jobs")
        assert (stranger.status_code, stranger["Location"]) == (302, "/admin/login/?next=/ops/solocron/jobs")
        with override_settings(LOGIN_URL="https://id.example/"):
            assert self.ask(None, "jobs")["Location"] == "https://id.example/?next=/ops/solocron/jobs"
        with override_settings(ROOT_URLCONF="books.elsewhere"):
            assert self.ask(None, "jobs")["Location"] == "/accounts/login/?next=/ops/solocron/jobs"
        assert self.ask("bob", "jobs").status_code == 403
        assert self.ask("bob", "api/v1/jobs").status_code == 403
        assert self.ask("ana", "login").status_code == 404
        assert self.ask("ana", "api/v1/jobs", host="evil.example").status_code == 400

    def test_superusers_act_from_pages_of_this_origin(self) -> None:
        here, elsewhere = {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "cross-site"}
        refused = self.ask("ana", "api/v1/jobs/bill/pause", "post", **here)
        assert (refused.status_code, refused.json()["detail"]) == (403, "The role of this user is too small for it.")
        assert self.ask("root", "api/v1/jobs/bill/pause", "post", **elsewhere).status_code == 403
        assert not scheduler.get_job("bill").paused
        done = self.ask("root", "api/v1/jobs/bill/pause", "post", **here)
        assert done.status_code == 200, done.content
        pause = scheduler.get_job("bill").paused
        assert pause is not None
        assert pause.by == "root"
        me = json.loads(self.ask("root", "api/v1/me").content)
        assert (me["name"], me["role"], me["via"]) == ("root", "operate", "host")
        scheduler.resume("bill")

    def test_a_page_of_another_origin_can_do_nothing_with_the_cookie_of_a_superuser(self) -> None:
        """The view is exempt from Django's token: what the service demands instead must be enough."""
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(User.objects.get(username="root"))
        assert browser.cookies["sessionid"].value
        json_kind, form_kind = "application/json", "application/x-www-form-urlencoded"
        requests = (
            ("api/v1/jobs/bill/pause", "{}", json_kind),
            ("api/v1/jobs/bill/pause", "{}", "text/plain"),
            ("api/v1/jobs/bill/trigger", "{}", json_kind),
            ("jobs/bill/pause", "note=gone", form_kind),
        )

        def post(path: str, data: str, kind: str, **headers: str) -> int:
            headers["host"] = "testserver"
            answer = browser.post(f"/ops/solocron/{path}", data, content_type=kind, headers=headers)
            return int(answer.status_code)

        for headers in (
            {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
            {"sec-fetch-site": "same-site", "origin": "http://sibling.testserver"},
            {"sec-fetch-site": "none"},
            {"origin": "https://evil.example"},
            {"origin": "https://testserver"},  # the same host by another scheme
            {"origin": "http://testserver:8080"},
            {"origin": "null"},  # a sandboxed frame
            {"referer": "http://testserver/ops/solocron/jobs/bill"},
            {},  # nothing says that it is a page of ours
        ):
            assert [post(*request, **headers) for request in requests] == [403] * 4, headers
        job = scheduler.get_job("bill")
        assert (job.paused, job.waiting) == (None, 0)
        for method in ("get", "head", "options", "put", "delete"):
            getattr(browser, method)("/ops/solocron/api/v1/jobs/bill/pause", headers={"sec-fetch-site": "cross-site"})
        assert scheduler.get_job("bill").paused is None
        shown = browser.get("/ops/solocron/jobs", headers={"accept": "text/html"})
        assert "frame-ancestors 'none'" in shown["Content-Security-Policy"], "nor can it frame a page for a click"
        assert post(*requests[0], origin="http://testserver") == 200, "no token of Django's is asked for"
        scheduler.resume("bill")

    def test_the_admin_has_a_link_for_those_who_may_look(self) -> None:
        link = b'href="/ops/solocron/"'
        self.client.force_login(User.objects.get(username="ana"))
        assert link in self.client.get("/admin/").content
        self.client.force_login(User.objects.get(username="root"))
        page = self.client.get("/admin/")
        assert page.content.count(link) >= 2, "on the index and in the sidebar"
        assert b"Solocron" not in self.client.get("/admin/auth/").content.split(b'id="content"')[1]
        for setting in ({"AUTHORIZE": "books.tests.nobody_looks"}, {"AUTHORIZE": "books.tests.wrong"}):
            with override_settings(SOLOCRON={"STORE": "default", **setting}):
                page = self.client.get("/admin/")
                assert page.status_code == 200
                assert link not in page.content
        with override_settings(ROOT_URLCONF="books.tests"):
            assert b"Solocron" not in self.client.get("/admin/").content, "the dashboard is not included there"

    def test_a_function_of_the_project_may_say_who_does_what(self) -> None:
        with override_settings(SOLOCRON={"STORE": "default", "AUTHORIZE": "books.tests.everybody_reads"}):
            assert self.ask("bob", "api/v1/jobs").status_code == 200


def everybody_reads(request: Any) -> str:
    return "read"


def nobody_looks(request: Any) -> str:
    return "none"


def wrong(request: Any) -> str:
    return "perhaps"


urlpatterns = [path("admin/", admin.site.urls)]


class TickTest(TransactionTestCase):
    def post(self, proof: str | None) -> Any:
        headers = {} if proof is None else {"Solocron-Signature": proof}
        client = Client(enforce_csrf_checks=True)
        return client.post("/tick", b"x", content_type="text/plain", headers=headers)

    def test_a_tick_needs_its_own_proof_and_no_token_of_djangos(self) -> None:
        scheduler.tick()
        run = scheduler.trigger("bill")
        now = int(time.time())
        for proof, status in (
            (None, 401),
            (signature("another secret of letters", now, b"x"), 403),
            (signature(SECRET, now - 600, b"x"), 403),
        ):
            refused = self.post(proof)
            assert refused.status_code == status, (proof, refused.content)
        assert scheduler.get_run(run).status == "waiting"
        done = self.post(signature(SECRET, now, b"x"))
        assert (done.status_code, done["Content-Type"], done["Cache-Control"]) == (200, "application/json", "no-store")
        assert [(one["run"], one["status"]) for one in done.json()["runs"]] == [(run, "succeeded")]
        assert Order.objects.count() == 1
        assert self.client.get("/tick").status_code == 405
