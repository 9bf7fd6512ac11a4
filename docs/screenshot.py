"""Draws the pictures of the quickstart's pages for the README and for docs/review.md; needs Chromium.

python docs/screenshot.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.commands.review.forms import select
from rageval_spec.review.selection import WantedSelection
from rageval_spec.runner import Options, run

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
QUESTION = "q29"
CLAIM = 1
"""The claim whose evidence the picture of the report shows."""
ASKED = ("faithfulness=claims", "completeness=1..5", "relevance=1..5", "fluency=1..5")
"""What the review page asks."""
SIZE = {"width": 1180, "height": 660}
REVIEW_SIZE = {"width": 1180, "height": 780}


def main() -> None:
    """Evaluate the quickstart, open its report and its review page, and draw them."""
    from playwright.sync_api import sync_playwright

    unconfined = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        run(ROOT / "specs" / "quickstart.yaml", Options(output=Path(folder), no_store=True))
        select(folder, Path(folder) / "review.html", WantedSelection(), asked=ASKED)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=unconfined)
        IMAGES.mkdir(exist_ok=True)
        for draw, size in ((draw_report, SIZE), (draw_review, REVIEW_SIZE)):
            page = browser.new_page(viewport=size, color_scheme="light")  # type: ignore[arg-type]
            draw(page, Path(folder))
        browser.close()


def draw_report(page: Page, folder: Path) -> None:
    """Draw a question of the report with the evidence for one of its claims."""
    page.goto(f"{(folder / 'report.html').as_uri()}#q={QUESTION}&system=assistant")
    page.locator(".claim").nth(CLAIM).hover()
    save(page, "report.png")


def draw_review(page: Page, folder: Path) -> None:
    """Draw the same question on the review page, with its first claim judged."""
    page.goto((folder / "review.html").as_uri())
    page.get_by_label("Your name").fill("Ann")
    page.keyboard.press("Enter")
    page.wait_for_selector("#task-title")
    page.keyboard.press("l")
    page.keyboard.type(QUESTION)
    page.locator(".row").click()
    page.locator("#crumbs", has_text=QUESTION).wait_for()
    page.get_by_role("button", name="show all").click()
    page.keyboard.press("1")
    save(page, "review.png")


def save(page: Page, name: str) -> None:
    """Write what the page shows as a picture."""
    picture = IMAGES / name
    page.screenshot(path=picture)
    print(f"{name} has {picture.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
