"""Names and labels of objects: Kubernetes allows letters, digits and `-` only, and few of them."""

from __future__ import annotations

import hashlib

from solocron.dispatch.carrier import short_name

__all__ = ["LABELS", "object_name"]

LABELS = {"app.kubernetes.io/managed-by": "solocron"}


def object_name(job: str, most: int = 52) -> str:
    """Return the name of a job's object. A name that had to be changed ends in a hash, so that no two are equal.

    52 characters are the bound of a CronJob, whose controller appends the time.
    """
    if short_name(job, most) == job:
        return job
    digest = hashlib.blake2b(job.encode(), digest_size=4).hexdigest()
    short = short_name(job, most - len(digest) - 1)
    return f"{short}-{digest}" if short else f"job-{digest}"
