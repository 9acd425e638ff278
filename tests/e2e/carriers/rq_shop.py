"""A program as users write it: the same module in nodes and in RQ workers."""

from __future__ import annotations

import os

import redis
from books import keep_books
from rq import Queue

from solocron.carriers.rq import RQCarrier

queue = Queue("cron", connection=redis.Redis.from_url(os.environ["SHOP_BROKER"]))
scheduler = keep_books(RQCarrier(queue, scheduler="rq_shop:scheduler"))
