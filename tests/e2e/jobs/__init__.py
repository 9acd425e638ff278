"""Jobs that the fleets of the end-to-end tests run."""
