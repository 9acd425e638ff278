"""The lease of a session: trust in one's own (`trust`, `own`), holding it (`holder`), and burying those of others
(`liveness`)."""
