"""The only folder that knows a database."""
