"""Runs in Pods: a Job per attempt, whose Pod picks the run up. The cluster is a stand-in, the Pods are processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest

from solocron import InvalidError, Message, NotAccepted
from solocron.carriers.kubernetes import KubernetesCarrier
from solocron.testing.fleet import wait_until
from tests.e2e.carriers.kubernetes_api import UNSCHEDULABLE, Cluster
from tests.servers import processes

HERE = Path(__file__).parent
Start = Callable[[], "subprocess.Popen[bytes]"]
MESSAGE = Message(
    id="solocron-books-1", namespace="shop", job="Books:EU", run="Books:EU@1", attempt=1, key="k", slot="s", fence=1,
    timeout=60, memory=2**30, cpu=2,
    options={"node_selector": {"gpu": "a100"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]},
)  # fmt: skip


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    made = Cluster(tmp_path, {"shop": {"SOLOCRON_STORE": f"sqlite:///{tmp_path}/shop.db"}})
    monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)  # the client reads it, also for plain HTTP
    yield made
    made.close()


@pytest.fixture
def carrier(cluster: Cluster) -> Iterator[KubernetesCarrier]:
    made = KubernetesCarrier("shop:scheduler", image="shop:7")
    yield made
    made.close()


@pytest.fixture
def shop(
    request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    monkeypatch.setenv("SHOP_PICKUP", getattr(request, "param", "5m"))
    monkeypatch.setenv("SHOP_GRACE", "500ms")  # for a body that would wait forever
    monkeypatch.setenv("SHOP_STORE", f"sqlite:///{tmp_path}/shop.db")
    monkeypatch.setenv("SHOP_LEDGER", str(tmp_path / "ledger"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.delitem(sys.modules, "books", raising=False)  # other tests have programs of that name
    invalidate_caches()
    module = import_module("kubernetes_shop")
    yield module
    module.scheduler.stop("1s")
    for name in ("books", "kubernetes_shop"):
        sys.modules.pop(name, None)


def test_a_pod_carries_a_run_out_and_a_killed_one_is_taken_over(shop: Any, cluster: Cluster, tmp_path: Path) -> None:
    scheduler = shop.scheduler
    ledger = tmp_path / "ledger"

    def began() -> list[list[str]]:
        return [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []

    scheduler.start()
    wait_until(lambda: scheduler.jobs(), within=120, what="the job is registered")
    first = scheduler.trigger("books")
    wait_until(lambda: scheduler.get_run(first).status == "succeeded", within=200, what="a Pod ran it")
    assert scheduler.get_run(first).result == "closed"
    assert scheduler.get_run(first).output == "reading the books\n"
    assert scheduler.get_run(first).progress == {"done": 1, "total": 2, "note": None}
    assert "reading the books" in cluster.log(cluster.created[0]), "the log of the Pod has it too"
    second = scheduler.trigger("books", "wait")
    wait_until(lambda: any(line[0] == second for line in began()), within=120, what="the body began")
    pod = cluster.pods[cluster.created[-1]]
    processes.send(signal.SIGKILL, processes.tree(pod.pid))
    wait_until(lambda: scheduler.get_run(second).status == "succeeded", within=200, what="another Pod took over")
    assert [line[:2] for line in began()] == [[first, "1"], [second, "1"], [second, "2"]]
    assert [str(view.status) for view in scheduler.runs("books")] == ["succeeded", "lost", "succeeded"]
    assert len(cluster.created) == len(set(cluster.created)) == 3
    wait_until(lambda: all(one.poll() is not None for one in cluster.pods.values()), within=60, what="the Pods end")
    assert [cluster.pods[name].returncode for name in cluster.created] == [0, -9, 0]


def test_a_pod_that_is_evicted_records_the_end_and_the_next_one_goes_on(
    shop: Any, cluster: Cluster, tmp_path: Path
) -> None:
    scheduler = shop.scheduler
    scheduler.start()
    wait_until(lambda: scheduler.jobs(), within=120, what="the job is registered")
    run = scheduler.trigger("books", "wait")
    wait_until(lambda: (tmp_path / "ledger").exists(), within=120, what="the body began")
    name = cluster.created[0]
    cluster.pods[name].send_signal(signal.SIGTERM)
    wait_until(lambda: scheduler.get_run(run).status == "succeeded", within=200, what="the next Pod ran it")
    assert cluster.pods[name].wait() == 130
    assert str(scheduler.attempts(run)[0].status) == "cancelled", cluster.log(name)


@pytest.mark.parametrize("shop", ["500ms"], indirect=True)
def test_a_pod_that_never_starts_has_its_reason_in_the_run(shop: Any, cluster: Cluster) -> None:
    """The carrier is asked when the offer lapses, and the Job that waits is left as it is."""
    scheduler = shop.scheduler
    cluster.scheduled = False
    scheduler.start()
    wait_until(lambda: scheduler.jobs(), within=120, what="the job is registered")
    run = scheduler.trigger("books")
    says = "times: its Pod cannot be scheduled: Unschedulable: 0/3 nodes have a GPU"
    wait_until(lambda: str(scheduler.get_run(run).reason).endswith(says), within=120, what="the reason is there")
    assert scheduler.get_run(run).status == "offered"
    assert len(cluster.created) == 1


class TestInThePodOfACronJob:
    """`run-slot TARGET JOB` of a job that nodes hand over to Jobs: the Pod of the CronJob has what the job needs."""

    @pytest.fixture
    def start(self, shop: Any, tmp_path: Path) -> Iterator[Start]:
        started: list[subprocess.Popen[bytes]] = []

        def begin() -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "solocron", "run-slot", "kubernetes_shop", "books", "--log-level", "error"]
            with (tmp_path / f"pod{len(started)}.log").open("wb") as log:
                started.append(subprocess.Popen(command, cwd=HERE, stdout=log, stderr=log))
            return started[-1]

        assert begin().wait() == 0
        assert (tmp_path / "pod0.log").read_text() == "nothing was due\n"
        yield begin
        for process in started:
            process.kill()
            process.wait()

    def test_it_runs_there_and_a_killed_one_is_taken_over(
        self, shop: Any, cluster: Cluster, start: Start, tmp_path: Path
    ) -> None:
        run = shop.scheduler.trigger("books", "wait")
        pod = start()
        wait_until(lambda: (tmp_path / "ledger").exists(), within=120, what="the body began")
        processes.send(signal.SIGKILL, processes.tree(pod.pid))
        pod.wait()
        assert start().wait() == 0
        assert [str(one.status) for one in shop.scheduler.attempts(run)] == ["lost", "succeeded"]
        assert cluster.created == [], "it has no right to create one"

    def test_one_that_is_evicted_stops_its_body_and_records_it(
        self, shop: Any, cluster: Cluster, start: Start, tmp_path: Path
    ) -> None:
        run = shop.scheduler.trigger("books", "wait")
        pod = start()
        wait_until(lambda: (tmp_path / "ledger").exists(), within=120, what="the body began")
        pod.send_signal(signal.SIGTERM)
        assert pod.wait() == 130
        assert str(shop.scheduler.attempts(run)[0].status) == "cancelled"
        assert start().wait() == 0
        assert [str(one.status) for one in shop.scheduler.attempts(run)] == ["cancelled", "succeeded"]


def _waits(reason: str, message: str) -> dict[str, Any]:
    """What the API says of a Pod that has a machine, and a container that does not start."""
    container = {"name": "run", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    return {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{**container, "state": {"waiting": {"reason": reason, "message": message}}}],
    }


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (UNSCHEDULABLE, "its Pod cannot be scheduled: Unschedulable: 0/3 nodes have a GPU"),
        (_waits("ImagePullBackOff", "no such image"), "its Pod waits: ImagePullBackOff: no such image"),
        (_waits("ContainerCreating", ""), None),
        (
            None,
            "its Job has no Pod: a quota may be used up, or the Pod is refused; "
            "`kubectl describe job solocron-books-1` says it",
        ),
    ],
    ids=["unschedulable", "image", "begins", "quota"],
)
def test_the_carrier_says_why_a_pod_does_not_start(
    cluster: Cluster, carrier: KubernetesCarrier, status: Any, says: str | None
) -> None:
    cluster.scheduled = False
    carrier.publish(MESSAGE)
    cluster.pod_status = status
    assert carrier.look(MESSAGE.id) == says


def test_the_carrier_says_that_a_job_is_gone(cluster: Cluster, carrier: KubernetesCarrier) -> None:
    assert carrier.look("solocron-nothing") == "its Job has ended, or is gone"


def test_the_job_says_what_the_message_and_the_decorator_say(cluster: Cluster, carrier: KubernetesCarrier) -> None:
    cluster.scheduled = False
    carrier.publish(MESSAGE)
    job = cluster.jobs["solocron-books-1"]
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == ["run-slot", "shop:scheduler", "--run", "Books:EU@1", "--attempt", "1"]
    assert container["resources"] == {"limits": {"memory": "1073741824", "cpu": "2"}}
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"gpu": "a100"}, [{"key": "gpu", "operator": "Exists"}])
    assert pod["activeDeadlineSeconds"] == 120
    assert "activeDeadlineSeconds" not in job["spec"], "it would count while the Pod waits for a machine"
    assert job["metadata"]["labels"]["solocron.dev/job"] == "books-eu"
    assert job["metadata"]["annotations"]["solocron.dev/name"] == "Books:EU"


class TestPublish:
    def test_a_job_that_is_there_is_accepted(self, cluster: Cluster, carrier: KubernetesCarrier) -> None:
        cluster.scheduled = False
        carrier.publish(MESSAGE)
        carrier.publish(MESSAGE)
        assert cluster.created == ["solocron-books-1"]
        assert carrier.look("solocron-books-1") == ("its Pod cannot be scheduled: Unschedulable: 0/3 nodes have a GPU")
        assert carrier.look("solocron-other") == "its Job has ended, or is gone"

    def test_a_job_that_ended_without_a_pick_up_is_replaced(self, cluster: Cluster, carrier: KubernetesCarrier) -> None:
        carrier.publish(MESSAGE)  # the Pod ends at once: there is no module `shop`
        cluster.pods["solocron-books-1"].wait()
        with pytest.raises(NotAccepted, match="has ended without a pick-up, and is being deleted"):
            carrier.publish(MESSAGE)
        cluster.scheduled = False
        carrier.publish(MESSAGE)
        assert cluster.created == ["solocron-books-1"] * 2

    def test_a_withdrawn_job_is_gone_and_a_second_time_is_no_error(
        self, cluster: Cluster, carrier: KubernetesCarrier
    ) -> None:
        cluster.scheduled = False
        carrier.publish(MESSAGE)
        carrier.withdraw(MESSAGE.id)
        carrier.withdraw(MESSAGE.id)
        assert cluster.jobs == {}

    @pytest.mark.parametrize(
        ("status", "reason", "error", "said"),
        [
            (403, "Forbidden", NotAccepted, "Kubernetes refused the Job (Forbidden: the stand-in says Forbidden)"),
            (422, "Invalid", InvalidError, "cannot create this Job (Invalid: "),
        ],
    )
    def test_what_the_api_refuses(
        self,
        cluster: Cluster,
        carrier: KubernetesCarrier,
        status: int,
        reason: str,
        error: type[Exception],
        said: str,
    ) -> None:
        cluster.refusal = (status, reason)
        with pytest.raises(error) as refused:
            carrier.publish(MESSAGE)
        assert said in str(refused.value)

    def test_a_cluster_that_is_away_has_accepted_nothing(self, cluster: Cluster, carrier: KubernetesCarrier) -> None:
        told = cluster.kubeconfig.read_text()
        cluster.kubeconfig.write_text(re.sub(r"127.0.0.1:[0-9]+", "127.0.0.1:1", told))
        with pytest.raises(NotAccepted, match="no connection to the API of Kubernetes"):
            carrier.publish(MESSAGE)

    def test_without_a_cluster_nothing_is_accepted_and_it_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
        monkeypatch.setenv("HOME", str(tmp_path))
        with pytest.raises(NotAccepted, match="no cluster is configured here: "):
            KubernetesCarrier("shop:scheduler", image="shop:7").publish(MESSAGE)


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "said"),
        [({"gpus": 1}, "'gpus': ...} is not an option of a Pod"), ({"env": "A=b"}, "{'env': 'A=b'} is not a mapping")],
    )
    def test_options_that_a_pod_does_not_have(self, options: dict[str, Any], said: str) -> None:
        carrier = KubernetesCarrier("shop:scheduler", image="shop:7")
        with pytest.raises(InvalidError) as refused:
            carrier.check(options)
        assert said in str(refused.value)
        assert "Nothing was started." in str(refused.value)

    def test_an_image_that_is_no_text(self) -> None:
        with pytest.raises(InvalidError, match="image='' must be a string that is not empty; nothing was made"):
            KubernetesCarrier("shop:scheduler", image="")
