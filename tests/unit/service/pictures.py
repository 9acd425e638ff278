"""Pictures of every page, to look at: `python -m tests.unit.service.pictures FOLDER [--axe axe.min.js] [PAGE...]`.

Needs the package playwright and a Chromium (CHROMIUM names it). Pages are served with the content security policy of
the service. A report of the browser is printed, and so is a page that is wider than its window. With `--axe` the pages
are examined for accessibility instead of being drawn.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from solocron.service.pages.assets import static_files
from solocron.service.pages.render import render
from tests.unit.service.every_page import every_page, frame

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types solocron"
)
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Handler(BaseHTTPRequestHandler):
    """Serves the pages by name and the static files under any hash."""

    pages: dict[str, str] = {}  # noqa: RUF012 -- set once, before the server starts

    def do_GET(self) -> None:
        name = self.path.strip("/")
        page = self.pages.get(name)
        file = static_files().get(name.partition("static/")[2].partition("/")[2])
        if page is None and file is None:
            return self.send_error(404)
        content, kind = (page.encode(), "text/html; charset=utf-8") if page else (file.content, file.media_type)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        return self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served():
    """Serve every page on a free port of the loopback; yield the address."""
    Handler.pages = {name: render(page, frame(reading)) for name, (page, reading) in every_page().items()}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def main() -> int:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("pages", nargs="*")
    parser.add_argument("--axe", type=Path)
    parser.add_argument("--widths", default="1440,760,390")
    parser.add_argument("--themes", default="light,dark")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    found = []
    with served() as address, sync_playwright() as play:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for theme in args.themes.split(","):
            for width in map(int, args.widths.split(",")):
                size = {"width": width, "height": 900}
                context = browser.new_context(viewport=size, color_scheme=theme, bypass_csp=args.axe is not None)
                tab = context.new_page()
                tab.on("pageerror", lambda error: found.append(str(error)))
                # The stream of events is not served here.
                tab.on("console", lambda said: found.append(said.text) if "404" not in said.text else None)
                for name in args.pages or Handler.pages:
                    tab.goto(f"{address}/{name}")
                    where = f"{name} {width} {theme}"
                    if tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
                        found.append(f"{where}: wider than the window")
                    if args.axe:
                        tab.add_script_tag(path=args.axe)
                        told = tab.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
                        found.extend(f"{where}: {one['help']}: {one['nodes'][0]['html']}" for one in told["violations"])
                    else:
                        tab.screenshot(path=args.folder / f"{name}-{width}-{theme}.png", full_page=True)
                context.close()
        browser.close()
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
