"""The SQL family: one implementation of the contract, thin dialects for SQLite, PostgreSQL and MySQL/MariaDB."""
