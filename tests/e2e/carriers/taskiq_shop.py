"""A program as users write it: the same module in nodes and in taskiq workers."""

from __future__ import annotations

import os

from books import keep_books
from taskiq_redis import ListQueueBroker

from solocron.carriers.taskiq import TaskiqCarrier

broker = ListQueueBroker(os.environ["SHOP_BROKER"], queue_name="cron", socket_timeout=None)
scheduler = keep_books(TaskiqCarrier(broker))
