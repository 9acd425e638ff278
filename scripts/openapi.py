"""Writes docs/reference/openapi.json, the description of the HTTP API, from the table of routes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from solocron.service.routes import ROUTES
from solocron.service.schema import openapi

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "openapi.json"


def text() -> str:
    """Return the description as the file has it."""
    return json.dumps(openapi(ROUTES), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    PAGE.write_text(text(), encoding="utf-8")
    print(f"{PAGE.name}: {len(ROUTES)} routes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
