"""Where a call is carried out: threads, an event loop, a process of its own."""
