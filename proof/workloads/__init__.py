"""The load of a simulated world: jobs and their bodies, the bodies' ledger, clients, effects, changing calendars."""
