"""The swap family: stores that are a map of ordered keys with one atomic verb, `commit(checks, writes)`.

A document is one value and the index keys that follow from its header, a record of the log is one value and two index
keys, and "the session is live" is one more check. Everything that the contract asks of a store is written once above
that verb, in `SwapStore`; an adapter supplies a `KeyStore`.
"""

from __future__ import annotations

__all__: list[str] = []
