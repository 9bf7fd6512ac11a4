"""Draws the picture of the quickstart's page for the README; needs Chromium.

python docs/screenshot.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from rageval_spec.runner import Options, run

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "report.png"
QUESTION = "#q=q29&system=assistant"
CLAIM = 1
"""The claim whose evidence the picture shows."""
SIZE = {"width": 1180, "height": 660}


def main() -> None:
    """Evaluate the quickstart, open its page and draw it."""
    with tempfile.TemporaryDirectory() as folder:
        run(ROOT / "specs" / "quickstart.yaml", Options(output=Path(folder), no_store=True))
        page = Path(folder) / "report.html"
        draw(page, PICTURE)
        print(
            f"the page has {page.stat().st_size / 1000:.0f} KB, {PICTURE.name} {PICTURE.stat().st_size / 1000:.0f} KB"
        )


def draw(page: Path, picture: Path) -> None:
    """Draw a question of the page with the evidence for one of its claims."""
    from playwright.sync_api import sync_playwright

    unconfined = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=unconfined)
        opened = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
        opened.goto(f"{page.as_uri()}{QUESTION}")
        opened.locator(".claim").nth(CLAIM).hover()
        picture.parent.mkdir(exist_ok=True)
        opened.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main()
