"""Convert schedules of APScheduler, Celery beat and cron to declarations that fire at the same instants.

A schedule that cannot be expressed without firing at other instants is refused, with a reason. Neither APScheduler nor
Celery is imported: only the fields of their objects are read.
"""

from solocron.importers.apscheduler import from_apscheduler
from solocron.importers.celery import from_celery
from solocron.importers.converted import Converted
from solocron.importers.crontab import CrontabJob, from_crontab

__all__ = ["Converted", "CrontabJob", "from_apscheduler", "from_celery", "from_crontab"]
