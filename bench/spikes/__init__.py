"""Measurements of what was considered and not taken. No part of the benchmark, and no dependency of the project."""
