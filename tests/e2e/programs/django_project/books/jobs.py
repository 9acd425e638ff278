"""Jobs on Django's ORM: on a thread, as a coroutine, and in a process of its own."""

from __future__ import annotations

import os

from books.models import Order
from solocron import AsyncRun, Run, allow, every


@every("1d", overlap=allow(8))
def bill(run: Run) -> list[object]:
    Order.objects.create(name=f"billed {(run.payload or {}).get('order')}")
    return [Order.objects.count(), os.getpid()]


@every("1d", overlap=allow(8))
async def count(run: AsyncRun) -> int:
    return await Order.objects.acount()


@every("1d", run_in="process")
def isolated() -> int:
    return Order.objects.count()
