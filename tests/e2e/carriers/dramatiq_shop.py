"""A program as users write it: the same module in nodes and in Dramatiq workers."""

from __future__ import annotations

import os

import dramatiq
from books import keep_books
from dramatiq.brokers.redis import RedisBroker

from solocron.carriers.dramatiq import DramatiqCarrier

broker = RedisBroker(url=os.environ["SHOP_BROKER"])
dramatiq.set_broker(broker)
scheduler = keep_books(DramatiqCarrier(broker, queue="cron"))
