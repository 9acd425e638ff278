"""Fails if the package has two classes of one name, or if any code or page uses a word that was given up.

A class name that stands twice makes every search and every traceback ambiguous. A word that was given up had two
meanings, or no meaning to a reader who has not met it here; each is listed with the word to use instead.

Folders that are still to be cleaned are listed too. Take a folder from the list when it is clean; the check says which
ones are.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Fault = tuple[Path, int, str]
"""A file, a line, and what is wrong there."""

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "solocron"

PROSE = {
    r"whoever|whomever|somebody|nobody|anybody|everybody": "name the actor: the node, the caller, the sweeper",
    r"for ever": "write: forever",
    r"a blank|blanks": "write: a space",
    r"hand over a tuple|hand over an aware": "write: pass",
    r"answers with|answers the|answers its|answers how|answers which|answers what": "write: returns",
    r"is no (?:mistake|json|number|instant|expression|https)": "write: is not a",
}
"""Patterns of comments and strings, each with the reason or the word to use instead."""

NAMES = {
    "slice": "shard",
    "slices": "shards",
    "owe": "add a waiting run",
    "owed": "waiting run",
    "owes": "has waiting runs",
    "stretch": "waiting range",
    "stretches": "waiting ranges",
    "bell": "notification",
    "goodbye": "close session",
    "farewell": "close session",
    "flooded": "backlog",
    "calmed": "drained backlog",
    "courtesy": "affinity delay",
}
"""Words of identifiers, comments and messages that were given up, each with the one to use instead."""

STILL_IN_PROSE: set[str] = set()
STILL_IN_NAMES: set[str] = set()
STILL_IN_WORDS: set[str] = set()
"""Files whose comments and messages still have such a word."""

STILL_TWICE: set[str] = set()
"""Names of classes that are still to be told apart."""

_BUILT_IN = {"slice"}
"""Names of the language itself."""
_BEGINNINGS = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
"""Tokens behind which a statement begins: a string there is a docstring."""
_START, _END = r"(?:(?<![a-zA-Z])|(?<=[a-z])(?=[A-Z]))", r"(?![a-z])"
_ANY = re.compile(f"{_START}(?i:{'|'.join(NAMES)}){_END}|(?i:{'|'.join(PROSE)})")
"""Finds at least the files with a word that was given up: only these are read token by token."""
_CLASS = re.compile(r"^ *class (\w+)[(:]", re.MULTILINE)
_WORDS = {re.compile(rf"\b{word}\b", re.IGNORECASE): f"say {better}" for word, better in NAMES.items()}
_PROSE = {re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE): why for pattern, why in PROSE.items()}


def problems(package: Path) -> Iterator[str]:
    """Yield what is wrong in this package, one line each."""
    return _problems(list(word_problems(package)), classes(package))


def _problems(faults: list[Fault], known: dict[str, list[Path]]) -> Iterator[str]:
    for file, number, what in faults:
        if not _is_in(file, _exempt(what)):
            yield f"{file}:{number}: {what}"
    for name, places in sorted(known.items()):
        if len(places) > 1 and name not in STILL_TWICE:
            yield f"class {name} stands twice: {', '.join(map(str, places))}; give each thing a name of its own"


def word_problems(package: Path, *, data: bool = False) -> Iterator[Fault]:
    """Yield file, line and fault for each word that was given up, exempt folders included.

    With `data`, strings other than docstrings may hold any word: in tests they are names, programs and output.
    """
    yield from _script_problems(package)
    for file in sorted(package.rglob("*.py")):
        inside, source = file.relative_to(package), file.read_text(encoding="utf-8")
        if not _ANY.search(source):
            continue
        before = tokenize.NEWLINE
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            docstring = before in _BEGINNINGS
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                before = token.type
            if token.type == tokenize.STRING and data and not docstring:
                continue
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                for pattern, why in _PROSE.items():
                    for found in pattern.finditer(token.string):
                        line = token.start[0] + token.string.count("\n", 0, found.start())
                        yield inside, line, f"{found[0]!r}: {why}"
                if " " in token.string:  # a string of one word is a value, such as the name of an icon
                    for pattern, better in _WORDS.items():
                        for found in pattern.finditer(token.string):
                            line = token.start[0] + token.string.count("\n", 0, found.start())
                            yield inside, line, f"the word {found[0]!r}: {better}"
            elif token.type == tokenize.NAME and token.string not in _BUILT_IN:
                for word in _words(token.string):
                    if word in NAMES:
                        yield inside, token.start[0], f"the name {token.string!r}: say {NAMES[word]}"


def _script_problems(package: Path) -> Iterator[Fault]:
    """Yield the same for the comments of SQL and Lua."""
    for file in sorted([*package.rglob("*.sql"), *package.rglob("*.lua")]):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for pattern, better in _WORDS.items():
                if found := pattern.search(line.partition("--")[2]):
                    yield file.relative_to(package), number, f"the word {found[0]!r}: {better}"


def page_problems(root: Path) -> Iterator[Fault]:
    """Yield file, line and fault for each word that was given up in a page or an example."""
    pages = sorted(root.glob("*.md"))
    for folder in ("docs", "examples", "tests/fundamentals"):
        pages += [file for file in sorted((root / folder).rglob("*")) if file.suffix in (".md", ".py")]
    for page in pages:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for pattern, why in (_PROSE | _WORDS).items():
                if found := pattern.search(line):
                    yield page.relative_to(root), number, f"{found[0]!r}: {why}"


def classes(package: Path) -> dict[str, list[Path]]:
    """Return every class with the files that define one of that name."""
    found: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(package.rglob("*.py")):
        for name in _CLASS.findall(file.read_text(encoding="utf-8")):
            found[name].append(file.relative_to(package))
    return found


def _clean(faults: list[Fault], known: dict[str, list[Path]]) -> list[str]:
    """Return what can be taken from the lists of exceptions."""
    lists = {"STILL_IN_PROSE": STILL_IN_PROSE, "STILL_IN_NAMES": STILL_IN_NAMES, "STILL_IN_WORDS": STILL_IN_WORDS}
    done = [
        f"{title}: {one}"
        for title, places in lists.items()
        for one in places
        if not any(_exempt(what) is places and _is_in(file, {one}) for file, _, what in faults)
    ]
    return sorted(done + [f"STILL_TWICE: {name}" for name in STILL_TWICE if len(known.get(name, ())) < 2])


def _exempt(what: str) -> set[str]:
    """Return the list of exceptions that a fault belongs to."""
    if what.startswith("the name"):
        return STILL_IN_NAMES
    return STILL_IN_WORDS if what.startswith("the word") else STILL_IN_PROSE


def _is_in(file: Path, places: set[str]) -> bool:
    return any(file == Path(place) or Path(place) in file.parents for place in places)


def _words(name: str) -> list[str]:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")


def main() -> int:
    faults, known = list(word_problems(PACKAGE)), classes(PACKAGE)
    faults += [("proof" / file, number, what) for file, number, what in word_problems(ROOT / "proof")]
    for folder in ("tests", "bench", "scripts"):
        faults += [(folder / file, number, what) for file, number, what in word_problems(ROOT / folder, data=True)]
    faults += page_problems(ROOT)
    found = list(_problems(faults, known))
    for line in found:
        print(line, file=sys.stderr)
    for line in _clean(faults, known):
        print(f"check_words: clean, take it from {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
