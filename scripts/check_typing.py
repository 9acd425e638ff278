"""Compares the lines that mypy and pyright report in tests/typing/wrong.py with those that are marked there.

An option that a checker no longer refuses would go unnoticed otherwise: the samples that are right cannot show it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WRONG = Path("tests/typing/wrong.py")
BINARIES = Path(sys.executable).parent


def marked(text: str) -> set[int]:
    """Return the lines that must be reported."""
    return {number for number, line in enumerate(text.splitlines(), 1) if line.endswith("  # wrong")}


def found_by_mypy(file: Path) -> set[int]:
    done = subprocess.run(
        [BINARIES / "mypy", "--no-error-summary", file], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = re.findall(rf"^{re.escape(str(file))}:(\d+): error:", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1):
        raise SystemExit(f"mypy failed:\n{done.stdout}{done.stderr}")
    return {int(number) for number in found}


def found_by_pyright(file: Path) -> set[int]:
    done = subprocess.run(
        [BINARIES / "basedpyright", "--outputjson", file], cwd=ROOT, capture_output=True, text=True, check=False
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"basedpyright failed:\n{done.stdout}{done.stderr}") from None
    return {one["range"]["start"]["line"] + 1 for one in answer["generalDiagnostics"] if one["severity"] == "error"}


def differences(expected: set[int], found: set[int]) -> list[str]:
    """Return a sentence for each line on which a checker and the marks differ."""
    missing = [f"line {number} is wrong and was not reported" for number in sorted(expected - found)]
    return missing + [f"line {number} was reported and is not marked" for number in sorted(found - expected)]


def main() -> int:
    expected = marked((ROOT / WRONG).read_text())
    wrong = [
        f"{WRONG}: {name}: {sentence}"
        for name, find in (("mypy", found_by_mypy), ("pyright", found_by_pyright))
        for sentence in differences(expected, find(WRONG))
    ]
    print("\n".join(wrong) or f"Both type checkers report the {len(expected)} mistakes of {WRONG}.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
