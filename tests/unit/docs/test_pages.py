"""Pages hold together: links lead somewhere, every page can be reached, words are the glossary's, nothing is promised
that does not exist yet."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path

import pytest

from solocron import Run, Scheduler
from solocron.cli.parser import COMMANDS, parse
from tests.unit.docs.pages import DOCS, ROOT, WITHOUT_A_PAGE, blocks, commands, pages, table

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
OURS = [page for page in pages() if page.name not in ("command-line.md", "redis.md")]


def ident(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """The text without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Headings as links name them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", pages(), ids=ident)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.is_file(), f"{ident(page)} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{ident(page)} links to {target}"


def test_every_page_can_be_reached_from_the_index() -> None:
    seen: set[Path] = set()
    ahead = [DOCS / "index.md"]
    while ahead:
        page = ahead.pop()
        if page in seen or page.suffix != ".md" or not page.is_relative_to(DOCS):
            continue
        seen.add(page)
        links = (target.partition("#")[0] for target in LINK.findall(prose(page)) if "://" not in target)
        ahead += [(page.parent / link).resolve() for link in links if link]
    assert seen == set(DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", OURS, ids=ident)
def test_the_language_is_plain(page: Path) -> None:
    """No exclamation marks, no promises of exactly once without the record, no words that the glossary avoids."""
    text = prose(page)
    assert not re.search(r"\w!(\s|$)", text), "an exclamation mark"
    for sentence in re.split(r"(?<=[.:])\s", text):
        if "exactly once" in sentence.lower() or "exactly-once" in sentence.lower():
            assert "record" in sentence or "No scheduler" in sentence or sentence.startswith("- **Exactly-once"), (
                sentence
            )
    assert not re.search(r"\b(leverage|seamless|blazing|powerful|simply|easily)\b", text, re.IGNORECASE)


@pytest.mark.parametrize("page", pages(), ids=ident)
def test_nothing_is_documented_that_does_not_exist(page: Path) -> None:
    """Whatever a page calls on a run or a scheduler is there."""
    text = re.sub(r"\]\([^)]*\)", "]", page.read_text())  # without the targets of links, such as run.md
    made = set(inspect.signature(Run.__init__).parameters)
    for name in re.findall(r"(?<![\w./])run\.([a-z_]+)", text):
        assert hasattr(Run, name) or name in made, f"{ident(page)} speaks of run.{name}"
    for name in re.findall(r"(?<![\w./])scheduler\.([a-z_]+)", text):
        assert hasattr(Scheduler("memory://"), name), f"{ident(page)} speaks of scheduler.{name}"


@pytest.mark.parametrize("page", OURS, ids=ident)
def test_every_command_that_is_shown_exists(page: Path) -> None:
    spoken = re.findall(r"`solocron ([a-z]+)", prose(page))
    typed = [word for line in commands(page) for word in re.findall(r"\bsolocron ([a-z]+)", line)]
    for command in (*spoken, *typed):
        assert command in COMMANDS, f"{ident(page)} shows solocron {command}"


@pytest.mark.parametrize("page", OURS, ids=ident)
def test_every_command_line_can_be_parsed(page: Path) -> None:
    """With all its flags; placeholders in capitals are as good as names."""
    inline = [span for span in re.findall(r"`(solocron [^`]+)`", prose(page)) if " -" in span]
    typed = [line for line in commands(page) if line.startswith("solocron ")]
    for line in (*inline, *typed):
        words = shlex.split(re.split(r" (?:&|>|2>|\|)", line)[0])[1:]
        assert parse(words).command == words[0], line


def test_the_changelog_names_every_command_and_follows_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    told = {*re.findall(r"`(?:solocron )?([a-z-]+)`", text)}
    assert COMMANDS.keys() - WITHOUT_A_PAGE <= told


@pytest.mark.parametrize("page", pages(), ids=ident)
def test_every_fence_is_closed_and_named(page: Path) -> None:
    text = page.read_text()
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(blocks(page)), "a fence is not closed"
    if page in OURS:
        languages = {block.language for block in blocks(page)}
        assert languages <= {"python", "console", "text"}, languages


def test_the_glossary_has_every_word_once() -> None:
    words = [row[0] for row in table(DOCS / "glossary.md", "Glossary")]
    assert len(words) == len(set(words))
    needed = "job schedule slot tick cursor session pool trigger hold late missed run attempt outcome claim lease fence"
    assert set(f"{needed} renew lost takeover node drain catch-up overlap dispatcher store".split()) <= set(words)


def test_the_readme_shows_the_idea_on_one_screen() -> None:
    """One sentence, ten lines of code or so, how to see it, what one sees."""
    text = (ROOT / "README.md").read_text()
    first = blocks(ROOT / "README.md", "python")[0]
    assert first.line <= 5
    assert len([line for line in first.text.splitlines() if line]) <= 10
    screen = "\n".join(text.splitlines()[:60])
    for needed in ("make demo", "make test", "run twice  0"):
        assert needed in screen
