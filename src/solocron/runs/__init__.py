"""A run in the hands of its function: `Run` for plain functions, `AsyncRun` for coroutines."""
