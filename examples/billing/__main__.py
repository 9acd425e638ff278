"""Bill every customer once: `python -m examples.billing`. Kill it wherever you like and start it again.

The store, the books, the gateway and the mail live in the current folder, or in the one that is given.
"""

from __future__ import annotations

import sys
from pathlib import Path

from examples.billing.books import Books
from examples.billing.outside import Gateway, Mail
from solocron import Run, Scheduler


def make(folder: Path) -> Scheduler:
    books, gateway, mail = Books(folder), Gateway(folder), Mail(folder)
    # A short lease, so that a new start after a kill does not wait long.
    scheduler = Scheduler(f"sqlite:///{folder / 'jobs.db'}", lease="500ms")

    @scheduler.cron("0 6 1 * *", name="billing", retries=100)
    def billing(run: Run) -> int:
        invoices = run.step("invoices").call(books.make_invoices, run)
        for invoice in run.track(invoices):
            customer, cents = invoice["customer"], invoice["cents"]
            # The gateway knows the key: should we die before the step is saved, it charges no customer twice.
            headers = {"Idempotency-Key": f"{run.key}:{customer}"}
            receipt = run.step(f"charge {customer}").call(gateway.charge, customer, cents, headers=headers)
            # Mail knows no keys: should we die while sending, the sent folder is asked before anything is sent again.
            subject = f"receipt {receipt}"
            with run.once(
                f"mail:{run.key}:{customer}", check=lambda c=customer, s=subject: mail.was_sent(c, s)
            ) as claim:
                if claim:
                    mail.send(customer, subject)
        return len(invoices)

    return scheduler


def main(argv: list[str]) -> int:
    folder = Path(argv[0]) if argv else Path.cwd()
    scheduler = make(folder)
    scheduler.tick()  # registers the job, sweeps what a killed predecessor left, runs what is due
    run = scheduler.trigger("billing", key="this month")  # the same key twice is one run
    scheduler.tick()
    view = scheduler.get_run(run)
    print(f"{view.status}, attempt {view.attempt}")
    for customer, cents in Gateway(folder).charges():
        print(f"charged {customer:8} {cents / 100:6.2f}")
    for letter in Mail(folder).sent():
        print(f"mailed  {letter['to']:8} {letter['subject']}")
    scheduler.stop()
    return 0 if view.status == "succeeded" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
