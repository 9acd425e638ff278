"""Examine a namespace: every line is OK, WARN or FAIL and says what to do. Repair what is safe to repair."""

from solocron.doctor.examine import Circumstances, empty, examine, failed, unreachable
from solocron.doctor.repair import repair

__all__ = ["Circumstances", "empty", "examine", "failed", "repair", "unreachable"]
