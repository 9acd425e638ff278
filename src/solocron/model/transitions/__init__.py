"""Transitions of a job's document, one file for each verb: pure functions from a document to its `Change`."""
