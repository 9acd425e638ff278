"""Invoices per tenant as data, receipts once: FastAPI, SQLAlchemy and PostgreSQL. See README.md."""
