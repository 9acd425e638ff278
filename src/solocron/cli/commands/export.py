"""`solocron export`: print files for other tools: alert rules, a dashboard, manifests for Kubernetes."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping

from solocron.cli.exits import OK
from solocron.errors import InvalidError

__all__ = ["add_arguments", "execute"]

_NOTHING = "Nothing was printed."
_FLAGS: Mapping[str, tuple[str, ...]] = {
    "alerts": ("docs",),
    "dashboard": ("datasource",),
    "kubernetes": ("target", "image", "mode", "secret", "namespace"),
}
"""The arguments of each file."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="WHAT", choices=tuple(_FLAGS), help=", ".join(_FLAGS))
    parser.add_argument("target", metavar="TARGET", nargs="?", help="of kubernetes: module or module:scheduler")
    parser.add_argument("--docs", metavar="URL", help="of alerts: where this documentation is kept, for their links")
    parser.add_argument("--datasource", metavar="UID", help="of dashboard: a Prometheus in Grafana (default: asked)")
    parser.add_argument("--image", metavar="IMAGE", help="of kubernetes: the container image that has TARGET")
    parser.add_argument(
        "--mode", metavar="MODE", help="of kubernetes: jobs, tick or nodes (default: nodes, which run all the time)"
    )
    parser.add_argument(
        "--secret", metavar="NAME", help="of kubernetes: the Secret whose key SOLOCRON_STORE is the store's URL"
    )
    parser.add_argument("--namespace", metavar="NAME", help="of kubernetes: the namespace in the store")


def execute(args: Namespace) -> int:
    for what, flags in _FLAGS.items():
        given = next((flag for flag in flags if getattr(args, flag) is not None), None)
        if what != args.what and given is not None:
            raise InvalidError(f"{'TARGET' if given == 'target' else f'--{given}'} is for `export {what}`. {_NOTHING}")
    made: Mapping[str, Callable[[Namespace], str]] = {
        "alerts": _alerts,
        "dashboard": _dashboard,
        "kubernetes": _kubernetes,
    }
    print(made[args.what](args), end="")
    return OK


def _alerts(args: Namespace) -> str:
    from solocron.telemetry.alert_rules import alert_rules

    if args.docs is not None and not re.fullmatch(r"https?://[^\s\"'#]+", args.docs):
        raise InvalidError(f"--docs {args.docs!r:.80} is not a URL such as https://docs.example.com. {_NOTHING}")
    return alert_rules(args.docs)


def _dashboard(args: Namespace) -> str:
    from solocron.telemetry.dashboard import dashboard

    if args.datasource is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", args.datasource):
        raise InvalidError(f"--datasource {args.datasource!r:.80} is not a uid as Grafana has them. {_NOTHING}")
    return dashboard(args.datasource)


def _kubernetes(args: Namespace) -> str:
    from solocron.carriers.kubernetes import KubernetesCarrier
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import scheduler_of
    from solocron.kubernetes.manifests import MODES, ProgramInImage, manifests
    from solocron.kubernetes.pod import Image
    from solocron.kubernetes.yaml import dump_all
    from solocron.scheduler.hooks import core_of

    mode = args.mode or "nodes"
    if mode not in MODES:
        raise InvalidError(f"--mode {mode!r:.40} is none of {', '.join(MODES)}. {_NOTHING}")
    if args.target is None or args.image is None:
        raise InvalidError(f"give TARGET and --image, which has it. {_NOTHING}")
    core = core_of(scheduler_of(args.target, Overrides()))
    deployed = ProgramInImage(
        target=args.target,
        image=Image(name=args.image, secret=args.secret, namespace=args.namespace or core.store.namespace),
        jobs=list(core.registry.jobs.values()),
        late_for=core.settings.late_for,
        lease=core.settings.lease,
        grace=core.configuration.grace,
        job_carriers=[name for name, one in core.carriers.items() if isinstance(one.carrier, KubernetesCarrier)],
    )
    return dump_all(manifests(deployed, mode))
