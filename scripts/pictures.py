"""Takes the pictures of the README from a real demo: docs/pictures/overview-light.png and -dark.png.

Needs Chromium (`make servers`). The demo plays for half a minute with its dashboard; the pictures are taken when the
killed and the frozen replica have been taken over.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SIZE = {"width": 1280, "height": 900}
PAGE = "?tv=1&span=1m"


def main() -> int:
    path = shutil.which("chromium")
    if path is None:
        sys.exit("chromium is not installed: make servers")
    FOLDER.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "solocron", "demo", "--serve", "--seconds", "32"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        link = _wait_for(demo, r"(http://\S+open\?code=\S+)")
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
            cookies = _log_in(browser, link)
            _wait_for(demo, r"(refused: taken over)")
            for theme in ("light", "dark"):
                _take(browser, cookies, link.partition("open?")[0], theme)
            browser.close()
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait(60)
    return 0


def _wait_for(demo: subprocess.Popen[str], pattern: str) -> str:
    assert demo.stdout is not None
    for line in demo.stdout:
        found = re.search(pattern, line)
        if found:
            return found[1]
    sys.exit(f"the demo ended without {pattern}")


def _log_in(browser: Browser, link: str) -> Path:
    """Return a file with the cookie of a login."""
    context = browser.new_context()
    context.new_page().goto(link)
    kept = FOLDER / ".login.json"
    context.storage_state(path=kept)
    context.close()
    return kept


def _take(browser: Browser, cookies: Path, address: str, theme: str) -> None:
    context = browser.new_context(
        viewport={"width": SIZE["width"], "height": SIZE["height"]},
        color_scheme="dark" if theme == "dark" else "light",
        storage_state=cookies,
    )
    page = context.new_page()
    page.goto(address + PAGE)
    page.locator("#live", has_text="live").wait_for()
    if theme == "light":  # the frozen replica takes part again
        page.wait_for_timeout(6_000)
    page.screenshot(path=FOLDER / f"overview-{theme}.png", full_page=True)
    context.close()
    if theme == "dark":
        cookies.unlink()


if __name__ == "__main__":
    sys.exit(main())
