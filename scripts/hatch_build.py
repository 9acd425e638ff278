"""Puts the shells' completion files into the wheel, made from the parser of the very code that is packed."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompletionHook(BuildHookInterface[Any]):
    """Needs only the standard library: neither the parser nor the files of the commands import a dependency."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        try:
            from solocron.cli import parser
            from solocron.cli.completion import FILES, script
        finally:
            del sys.path[0]
        self._folder = tempfile.TemporaryDirectory()
        for shell, place in FILES.items():
            file = Path(self._folder.name) / shell
            file.write_text(script(shell, parser.build()), encoding="utf-8")
            build_data["shared_data"][str(file)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()
