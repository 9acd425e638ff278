"""Published for tests: what users need to test their jobs, and store authors to test their stores.

Import the part you need; importing this package alone brings nothing along.
"""
