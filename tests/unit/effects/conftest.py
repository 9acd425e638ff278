"""The stores and crowds of the lock tests serve here too."""

from tests.unit.effects.locks.conftest import crowd, nothing_held, room, url  # noqa: F401
