"""Business calendars: their content, their revisions in a store (`saving`, `revisions`), and their views."""
