"""One file for each kind of command; each command is a function from its arguments to its exit code."""
