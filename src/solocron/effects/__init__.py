"""Effects that happen once: idempotency keys, durable steps, and fences that a target refuses when they are old."""
