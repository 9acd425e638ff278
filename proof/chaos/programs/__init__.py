"""Programs of nodes other than the fleet's own."""
