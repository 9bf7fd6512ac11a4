"""Draws pages of the built site as a reader sees them, searches it, and runs axe over them; needs Chromium.

    python docs/site/look.py FOLDER

Pictures go to the folder: phone (390 px) and desktop, dark and light. Exit code 1 if axe finds a fault, a page asks for
anything elsewhere, or the search finds nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Request

SITE = Path(__file__).parents[2] / "build" / "site" / "html"
PAGES = {
    "home": "index.html",
    "howto": "gates.html",
    "reference": "reference/metrics/faithfulness.html",
    "table": "reference/metrics/index.html",
    "command": "reference/commands/run.html",
    "python": "reference/python/rageval_spec.html",
    "diagnostics": "reference/diagnostics.html",
    "decision": "decisions/models.html",
    "part": "reference.html",
}
SIZES = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 860}}
SCHEMES: tuple[Literal["dark", "light"], ...] = ("light", "dark")


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """The address at which a folder is served."""
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    unconfined = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=unconfined)
        yield browser
        browser.close()


def _note(asked: list[str], request: Request) -> None:
    asked.append(request.url)


def look(address: str, browser: Browser, output: Path, pages: dict[str, str]) -> Iterator[str]:
    """Draw each page in both sizes and schemes; yield what is wrong."""
    from axe_playwright_python.sync_playwright import Axe

    for size, viewport in SIZES.items():
        for scheme in SCHEMES:
            page = browser.new_page(viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
            asked: list[str] = []
            page.on("request", partial(_note, asked))
            for name, path in pages.items():
                page.goto(f"{address}/{path}", wait_until="networkidle")
                page.screenshot(path=output / f"{name}-{size}-{scheme}.png")
                for fault in Axe().run(page).response["violations"]:
                    where = ", ".join(str(node["target"][0]) for node in fault["nodes"][:3])
                    yield f"{path} ({size}, {scheme}): {fault['id']} ({fault['impact']}): {fault['help']}: {where}"
                if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                    yield f"{path} ({size}): it scrolls sideways"
            yield from (f"a page asks for {one}" for one in asked if not one.startswith((address, "data:", "blob:")))
            page.close()


def search(address: str, browser: Browser, output: Path, words: str) -> Iterator[str]:
    """Search as a reader does, and draw what comes."""
    page = browser.new_page(viewport=SIZES["desktop"])  # type: ignore[arg-type]
    page.goto(f"{address}/index.html", wait_until="networkidle")
    page.keyboard.press("/")
    page.wait_for_timeout(500)
    page.keyboard.type(words, delay=20)
    page.wait_for_timeout(1500)
    page.screenshot(path=output / "search.png")
    if page.get_by_text(words).count() < 2:
        yield f"the search for '{words}' finds nothing"
    page.close()


def main(folder: str) -> int:
    """Look at the sample of pages."""
    output = Path(folder)
    output.mkdir(parents=True, exist_ok=True)
    pages = {name: path for name, path in PAGES.items() if (SITE / path).exists()}
    with serve(SITE) as address, open_browser() as browser:
        faults = [*look(address, browser, output, pages), *search(address, browser, output, "faithfulness")]
    print(*faults, sep="\n")
    print(f"{len(pages)} pages, {len(faults)} faults; pictures in {output}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
