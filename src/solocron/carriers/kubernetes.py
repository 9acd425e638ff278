"""Runs in Pods: `scheduler.carrier("pods", KubernetesCarrier("shop.cron:scheduler", image="shop:7", secret="shop"))`.

Each attempt is a Job of its own, and its Pod picks the run up with `solocron run-slot`: the lease of the Pod is its
session in the store, and no process watches the API. The name of the Job is the id of the message, so a message that is
published again meets the Job that is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from solocron.carriers.parts import missing
from solocron.dispatch.carrier import Message, NotAccepted
from solocron.errors import InvalidError
from solocron.kubernetes.attempt import job_of_attempt
from solocron.kubernetes.pod import Image, check_pod_options
from solocron.scheduler.hooks import core_of

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["KubernetesCarrier"]

ANSWER_WITHIN = 10.0
"""Seconds for one call of the API; what takes longer is in doubt."""
_AWAY = ("ConnectError", "ConnectTimeout")
"""Errors of the HTTP client before anything was sent."""


class KubernetesCarrier:
    """Creates a Job per attempt.

    `target` is where the image has the scheduler, as `solocron run` takes it. `secret` is the Secret whose key
    SOLOCRON_STORE is the URL of the store. `template` is a Job whose fields are kept where the carrier sets none:
    volumes, further containers, `imagePullSecrets`.
    """

    follows = True
    keeps_limits = True

    def __init__(
        self,
        target: str,
        *,
        image: str,
        namespace: str | None = None,
        secret: str | None = None,
        command: tuple[str, ...] = ("solocron",),
        template: Mapping[str, Any] | None = None,
    ) -> None:
        for name, value in (("target", target), ("image", image)):
            if not isinstance(value, str) or not value.strip():
                raise InvalidError(
                    f"KubernetesCarrier: {name}={value!r:.80} must be a string that is not empty; nothing was made."
                )
        self._target = target
        self._image = Image(name=image, command=tuple(command), secret=secret)
        self._cluster_namespace = namespace
        self._template = template
        self._client: Any = None
        self._process = os.getpid()
        self._lease = 0.0

    def attach(self, namespace: str, scheduler: Scheduler) -> None:
        """Learn the namespace in the store and the lease."""
        self._image = replace(self._image, namespace=namespace)
        self._lease = core_of(scheduler).settings.lease

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse `hand_over` options that a Pod does not have."""
        check_pod_options(options, "Nothing was started.")

    def publish(self, message: Message) -> None:
        """Create the Job; return when the API has answered. A Job of that name which has not ended is accepted."""
        from lightkube import ApiError
        from lightkube.resources.batch_v1 import Job

        client = self._connected()
        manifest = job_of_attempt(message, self._image, self._target, lease=self._lease, template=self._template)
        try:
            client.create(Job.from_dict(manifest))
        except ApiError as error:
            self._refused(error, message, client)
        except Exception as error:
            if type(error).__name__ in _AWAY:
                raise NotAccepted(f"no connection to the API of Kubernetes: {error}") from error
            raise

    def _refused(self, error: Any, message: Message, client: Any) -> None:
        """Tell a Job that is there from one that cannot be; raises unless the message is accepted."""
        status = error.response.status_code
        said = f"{error.status.reason}: {error.status.message}"
        if status == 409:
            if self._is_over(message.id, client):
                self.withdraw(message.id)
                raise NotAccepted("a Job of that name has ended without a pick-up, and is being deleted") from error
            return
        if status in (400, 422):
            raise InvalidError(f"Kubernetes cannot create this Job ({said:.300}); look at hand_over.") from error
        if status < 500:
            raise NotAccepted(f"Kubernetes refused the Job ({said:.300})") from error
        raise error

    def _is_over(self, name: str, client: Any) -> bool:
        """Return whether the Job has ended: its Pod picks nothing up any more."""
        from lightkube import ApiError
        from lightkube.resources.batch_v1 import Job

        try:
            job = client.get(Job, name)
        except ApiError as error:
            if error.response.status_code == 404:
                return True
            raise
        conditions = (job.status.conditions or []) if job.status is not None else []
        return any(one.type in ("Complete", "Failed") and one.status == "True" for one in conditions)

    def look(self, id: str) -> str | None:
        """Return why the Pod of a message does not start, in one sentence; None if nothing is known."""
        from lightkube.resources.core_v1 import Pod

        client = self._connected()
        pods = list(client.list(Pod, labels={"job-name": id}))
        if not pods:
            return self._without_pod(id, client)
        for pod in pods:
            status = pod.status
            for one in (status.conditions or []) if status is not None else ():
                if one.type == "PodScheduled" and one.status == "False":
                    return f"its Pod cannot be scheduled: {one.reason}: {one.message}"[:300]
            for container in (status.containerStatuses or []) if status is not None else ():
                waiting = None if container.state is None else container.state.waiting
                if waiting is not None and waiting.reason not in (None, "ContainerCreating", "PodInitializing"):
                    return f"its Pod waits: {waiting.reason}: {waiting.message}"[:300]
        return None

    def _without_pod(self, name: str, client: Any) -> str:
        """Say what is known of a Job without a Pod. The reason is in its events, which the carrier may not read."""
        if self._is_over(name, client):
            return "its Job has ended, or is gone"
        return (
            f"its Job has no Pod: a quota may be used up, or the Pod is refused; `kubectl describe job {name}` says it"
        )

    def withdraw(self, id: str) -> None:
        """Delete the Job of a message with its Pod, as far as it is there."""
        from lightkube import ApiError
        from lightkube.resources.batch_v1 import Job
        from lightkube.types import CascadeType

        try:
            self._connected().delete(Job, id, cascade=CascadeType.BACKGROUND)
        except ApiError as error:
            if error.response.status_code != 404:
                raise

    def _connected(self) -> Any:
        """Return the client, made anew after a fork; the token of a service account is refreshed by it."""
        if self._client is None or self._process != os.getpid():
            try:
                from lightkube import Client, ConfigError
            except ImportError:
                raise missing("KubernetesCarrier", "kubernetes") from None
            try:
                self._client = Client(namespace=self._cluster_namespace, timeout=ANSWER_WITHIN)  # type: ignore[arg-type]
            except ConfigError as error:
                raise NotAccepted(f"no cluster is configured here: {error}") from error
            self._process = os.getpid()
        return self._client

    def close(self) -> None:
        """Close the connections; the next message opens others."""
        client, self._client = self._client, None
        if client is not None and self._process == os.getpid():
            client.close()
