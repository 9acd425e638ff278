"""Where a call is carried out: threads, an event loop."""
