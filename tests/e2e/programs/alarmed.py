"""A replica with many jobs that looks for alarms and posts them; its options are JSON in ALARMED."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from solocron import Scheduler
from solocron.clock import SECOND
from solocron.model.documents import alarm_causes
from solocron.testing.fleet.__main__ import note_events
from solocron.testing.fleet.leash import end_with_parent


def main() -> None:
    end_with_parent()
    options = json.loads(os.environ["ALARMED"])
    alarm_causes._REMEMBERED = options["remembered"] * SECOND
    scheduler = Scheduler(node=sys.argv[1], lease="2s")
    note_events(scheduler, Path(sys.argv[2]))
    for number in range(options["jobs"]):
        scheduler.every(options["period"], name=f"job-{number:03}", catch_up="skip")(lambda: None)
    scheduler.alarms(**options["alarms"])
    scheduler.run_forever("5s")


main()
