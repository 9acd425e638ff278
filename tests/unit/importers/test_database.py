"""Tables of the servers that Celery and APScheduler keep their schedules on are read, and only read."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import create_engine, text

from solocron.errors import InvalidError
from solocron.importers.apscheduler_store import read_job_store
from solocron.importers.database import table_reader
from solocron.importers.entry import ImportedJob


def fill(url: str) -> None:
    """Let the real APScheduler keep a job there."""
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from apscheduler.schedulers.background import BackgroundScheduler

    store = SQLAlchemyJobStore(url=url, tablename="beats")
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone="UTC")
    scheduler.start(paused=True)
    scheduler.add_job("builtins:print", "interval", id="poll", minutes=5, args=["x"])
    scheduler.shutdown()
    store.engine.dispose()


def check(url: str, with_driver: str) -> None:
    fill(with_driver)
    for given in (url, with_driver):
        (job,) = read_job_store(table_reader(given), name="beats")
        assert isinstance(job, ImportedJob)
        assert (job.name, job.handler, job.options["payload"]["args"]) == ("poll", "builtins:print", ["x"])
    with pytest.raises(InvalidError, match=r"apscheduler_jobs of .* cannot be read: .* Nothing was imported"):
        read_job_store(table_reader(url))
    engine = create_engine(with_driver)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM beats")).scalar() == 1
    engine.dispose()


def test_a_job_store_on_postgresql(postgres: Any) -> None:
    url = postgres.fresh_url()
    check(url, url.replace("postgresql://", "postgresql+psycopg://"))


def test_a_job_store_on_mariadb(mariadb: Any) -> None:
    url = mariadb.fresh_url()
    check(url, url.replace("mysql://", "mysql+pymysql://").replace("mariadb://", "mysql+pymysql://"))


def test_a_password_is_not_shown() -> None:
    with pytest.raises(InvalidError) as refused:
        table_reader("postgresql://ada:secret@127.0.0.1:1/x")("django_celery_beat_periodictask")
    assert "secret" not in str(refused.value)
    with pytest.raises(InvalidError) as refused:
        table_reader("oracle://ada:secret@127.0.0.1:1/x")
    assert "secret" not in str(refused.value)
