"""The documents of a namespace, one file each: job, session, namespace, lock, key, steps, permit, calendar, request."""
