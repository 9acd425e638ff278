"""Redis and Valkey: documents as hashes, what is due as sorted sets, two scripts that fetch and commit in batches.

All keys of a namespace share one hash tag, `{solocron:<namespace>}`, so that a script may touch any of them and a
cluster keeps them on one node. How much a Redis can be trusted with depends on how it is set up: see `settings.py`.
"""

from __future__ import annotations

from solocron.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
