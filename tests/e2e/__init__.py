"""Whole programs, as users run them: real processes, real files, real signals."""
