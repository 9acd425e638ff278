"""A fleet of real processes, a ledger that their bodies write, and a judge that compares it with what was due.

    with Fleet(["myapp.jobs"], store=url, folder=folder, lease="3s") as fleet:
        fleet.start(5)
        judge = Judge(fleet)
        judge.open()
        fleet.kill(fleet.replicas[0])
        ...
        judge.close()
        assert judge.verdict().clean

Bodies take part with `with witness(run):`. The harness knows no store: a URL is all it needs.
"""

from solocron.testing.fleet.fleet import Fleet
from solocron.testing.fleet.judge import Judge
from solocron.testing.fleet.ledger import Ledger, Line, witness
from solocron.testing.fleet.replica import Incident, Replica
from solocron.testing.fleet.verdict import FleetVerdict
from solocron.testing.fleet.waiting import wait_until

__all__ = ["Fleet", "FleetVerdict", "Incident", "Judge", "Ledger", "Line", "Replica", "wait_until", "witness"]
