"""Pure metadata: what was declared of a function, and the registry that collects it. Importing it starts nothing."""
