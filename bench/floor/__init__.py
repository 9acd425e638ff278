"""The floor: a bare script that sends the statements of a whole life and does nothing else.

Claim, record and hold; then finish, close the record and let go; the documents are the store's own, read and written
as JSON. No engine, no threads, no policies: how far above it Solocron is, is what Solocron costs.
"""
