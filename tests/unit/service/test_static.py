"""What the browser gets beside the pages: small, ours or listed with its licence and hash."""

from __future__ import annotations

import gzip
import re
from importlib import resources

from scripts import vendor

STATIC = resources.files("solocron.service") / "static"


def test_vendored_files_are_those_of_the_list(tmp_path):
    assert vendor.problems(vendor.FOLDER) == []
    for path in vendor.FOLDER.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "idiomorph.min.js").write_text("changed")
    (tmp_path / "new.js").write_text("")
    assert sorted(line.split(":")[0] for line in vendor.problems(tmp_path)) == ["idiomorph.min.js", "new.js"]


def test_style_and_script_are_small_and_ask_no_one_else():
    style, script = (STATIC / "style.css").read_bytes(), (STATIC / "app.js").read_bytes()
    assert len(script) <= 16_000
    assert len(gzip.compress(style)) <= 8_000
    vendored = (STATIC / "vendor" / "idiomorph.min.js").read_bytes()
    assert len(gzip.compress(script)) + len(gzip.compress(vendored)) <= 10_000
    for source in (style, script):
        assert not re.search(rb"https?://|@import|url\(", source)


def test_templates_escape_everything():
    for template in (resources.files("solocron.service") / "templates").iterdir():
        source = template.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape|Markup", re.sub(r"\{#.*?#\}", "", source, flags=re.DOTALL)), (
            template.name
        )
