"""Run by Django's own test runner."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

from django.contrib.auth.models import User
from django.core import checks
from django.core.management import CommandError, call_command
from django.db import connections, transaction
from django.test import SimpleTestCase, TestCase, TransactionTestCase, override_settings

from books.models import Order
from solocron import ConfigurationError, NotFoundError
from solocron.django import project, scheduler, trigger
from solocron.django.database import url_of
from solocron.django.testing import Triggered, run_now, triggered


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

    def test_modules_that_fail_are_told_and_no_job_can_be_used(self) -> None:
        for module, id in (("broken", "E003"), ("twice", "E004"), ("unreadable", "E005")):
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


class CommandTest(TransactionTestCase):
    def test_it_can_be_called_from_code(self) -> None:
        call_command("solocron", "tick", "--json")
        with self.assertRaises(CommandError) as raised:
            call_command("solocron", "show", "nothing")
        assert raised.exception.returncode == 3


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
        assert (stranger.status_code, stranger["Location"]) == (302, "/accounts/login/?next=/ops/solocron/jobs")
        assert self.ask("bob", "jobs").status_code == 403
        assert self.ask("bob", "api/v1/jobs").status_code == 403
        assert self.ask("ana", "login").status_code == 404
        assert self.ask("ana", "api/v1/jobs", host="evil.example").status_code == 400

    def test_superusers_act_from_pages_of_this_origin(self) -> None:
        here, elsewhere = {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "cross-site"}
        assert self.ask("ana", "api/v1/jobs/bill/pause", "post", **here).status_code == 403
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

    def test_a_function_of_the_project_may_say_who_does_what(self) -> None:
        with override_settings(SOLOCRON={"STORE": "default", "AUTHORIZE": "books.tests.everybody_reads"}):
            assert self.ask("bob", "api/v1/jobs").status_code == 200


def everybody_reads(request: Any) -> str:
    return "read"
