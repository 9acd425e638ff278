"""`solocron export`: print files for other tools: alert rules for Prometheus, a dashboard for Grafana."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace

from solocron.cli.exits import OK
from solocron.errors import InvalidError

__all__ = ["add_arguments", "execute"]

_NOTHING = "Nothing was printed."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="WHAT", choices=("alerts", "dashboard"), help="alerts or dashboard")
    parser.add_argument("--docs", metavar="URL", help="of alerts: where this documentation is kept, for their links")
    parser.add_argument("--datasource", metavar="UID", help="of dashboard: a Prometheus in Grafana (default: asked)")


def execute(args: Namespace) -> int:
    from solocron.telemetry.alert_rules import alert_rules
    from solocron.telemetry.dashboard import dashboard

    if args.what == "alerts":
        if args.datasource is not None:
            raise InvalidError(f"--datasource is for `export dashboard`. {_NOTHING}")
        if args.docs is not None and not re.fullmatch(r"https?://[^\s\"'#]+", args.docs):
            raise InvalidError(f"--docs {args.docs!r:.80} is not a URL such as https://docs.example.com. {_NOTHING}")
        print(alert_rules(args.docs), end="")
    else:
        if args.docs is not None:
            raise InvalidError(f"--docs is for `export alerts`. {_NOTHING}")
        if args.datasource is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", args.datasource):
            raise InvalidError(f"--datasource {args.datasource!r:.80} is not a uid as Grafana has them. {_NOTHING}")
        print(dashboard(args.datasource), end="")
    return OK
