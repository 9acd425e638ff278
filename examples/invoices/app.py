"""The application: tenants are added over HTTP, and each gets invoices on a schedule of its own.

python -m examples.invoices
"""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from sqlalchemy import select
from sqlalchemy.orm import Session

from examples.invoices.books import URL, Invoice, Receipt, engine, get_db, invoices, receipts
from solocron import Run, Scheduler, SolocronError, given

scheduler = Scheduler(URL, lease="3s")


@scheduler.register
def invoice(run: Run, *, db: Session = given(get_db)) -> str:
    """Write the invoice in the transaction that also proves the fence: a node that lost its lease writes nothing."""
    tenant = str(run.payload["tenant"])
    run.guard(db)
    db.add(Invoice(tenant=tenant, slot=run.slot.isoformat(), key=run.key))
    return tenant


@scheduler.every("1s", overlap="skip")
def send_receipts(run: Run, *, db: Session = given(get_db)) -> int:
    """Send a receipt for each invoice, once: what is claimed and what is sent commit together."""
    run.guard(db)
    waiting = {one.id: one for one in db.scalars(select(Invoice))}
    mine = run.claim_items(db, "receipts", list(waiting))
    db.add_all(Receipt(key=waiting[number].key) for number in mine)
    return len(mine)


app = FastAPI(lifespan=scheduler.lifespan)
app.mount("/solocron", scheduler.asgi())  # pass auth= to let your users in


@app.exception_handler(SolocronError)
def refuse(request: Request, error: SolocronError) -> JSONResponse:
    """Answer with the status that the error asks for."""
    return JSONResponse({"detail": str(error)}, status_code=error.status)


@app.put("/tenants/{tenant}")
def add_tenant(tenant: str, every: str = "* * * * * *") -> dict[str, Any]:
    """Add a tenant, or change its schedule."""
    job = scheduler.add(f"invoice:{tenant}", "invoice", every, payload={"tenant": tenant}, retries=3)
    return {"job": job.name, "next": job.next}


@app.get("/books")
def books(db: Session = Depends(get_db)) -> dict[str, Any]:
    """Show what was written, and by which node each run was carried out."""
    return {"invoices": invoices(db), "receipts": receipts(db), "nodes": [node.node for node in scheduler.nodes()]}


engine()  # fail early where the database is away
