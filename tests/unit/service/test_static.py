"""What the browser gets beside the pages: small, ours or listed with its licence and hash."""

from __future__ import annotations

import gzip
import re
from importlib import resources

from scripts import vendor
from solocron.service.pages.assets import static_files, static_hash
from solocron.service.pages.links import Links
from solocron.service.pages.render import render
from tests.unit.service import every_page as made

STATIC = resources.files("solocron.service") / "static"


def test_vendored_files_are_those_of_the_list(tmp_path):
    assert vendor.problems(vendor.FOLDER) == []
    for path in vendor.FOLDER.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "idiomorph.min.js").write_text("changed")
    (tmp_path / "new.js").write_text("")
    assert sorted(line.split(":")[0] for line in vendor.problems(tmp_path)) == ["idiomorph.min.js", "new.js"]


def test_style_and_script_are_small_and_ask_no_one_else():
    style, script = static_files()["style.css"].content, static_files()["app.js"].content
    assert len(script) <= 16_000
    assert len(gzip.compress(style)) <= 8_000
    vendored = (STATIC / "vendor" / "idiomorph.min.js").read_bytes()
    assert len(gzip.compress(script)) + len(gzip.compress(vendored)) <= 10_000
    for source in (style, script):
        assert not re.search(rb"https?://|@import|url\(", source)


def test_a_style_sheet_is_sent_without_its_comments():
    source, sent = (STATIC / "style.css").read_bytes(), static_files()["style.css"].content
    assert b"/*" in source
    assert b"/*" not in sent
    assert sent.count(b"{") == source.count(b"{")


def test_templates_escape_everything():
    for template in (resources.files("solocron.service") / "templates").iterdir():
        source = template.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape|Markup", re.sub(r"\{#.*?#\}", "", source, flags=re.DOTALL)), (
            template.name
        )


def test_only_files_with_a_type_are_served_and_the_pages_ask_for_no_others():
    assert set(static_files()) == {"app.js", "icon.svg", "style.css", "vendor/idiomorph.min.js"}
    page, reading = made.every_page()["overview"]
    source = render(page, made.frame(reading, links=Links("", static_hash())))
    asked = set(re.findall(rf'"/static/{static_hash()}/([^"]+)"', source))
    assert asked == set(static_files())
