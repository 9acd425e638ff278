"""Look ahead: what the fleet will do, and what a deployment would change. Everything here only reads."""

from solocron.preview.plan import Plan, make_plan
from solocron.preview.planned_job import PlannedJob, planned_jobs

__all__ = ["Plan", "PlannedJob", "make_plan", "planned_jobs"]
