"""Job metadata: declarations on functions, and the registry that collects them. Importing it starts nothing."""
