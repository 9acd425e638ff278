"""From the schedules of APScheduler, Celery beat and cron to declarations that fire at the same instants.

What cannot be said here without changing when something runs is refused, with a reason. Neither APScheduler nor
Celery is imported: their objects are read, their fields understood.
"""

from solocron.importers.apscheduler import from_apscheduler
from solocron.importers.celery import from_celery
from solocron.importers.converted import Converted
from solocron.importers.crontab import CrontabJob, from_crontab

__all__ = ["Converted", "CrontabJob", "from_apscheduler", "from_celery", "from_crontab"]
