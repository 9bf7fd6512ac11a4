"""Draws the pictures of the quickstart's pages for the README, docs/review.md and docs/view.md; needs Chromium.

    python docs/screenshot.py           # all pictures
    python docs/screenshot.py --webp    # only their copies for the site, which weigh half

The name of a copy has the digest of its PNG, so the site never shows an earlier picture.
"""

from __future__ import annotations

import base64
import os
import shutil
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.commands.review.forms import select
from rageval_spec.commands.view.command import list_addresses
from rageval_spec.endpoints.http_server import Server
from rageval_spec.history.evaluation_lookup import SearchPlaces
from rageval_spec.local_view.application import make_view_app
from rageval_spec.local_view.record_catalog import RecordCatalog
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
TOKEN = "t0ken"
GIVEN = "yynyyyynyynyyyyyynyy"
"""The labels in the picture of the view."""
SIZE = {"width": 1180, "height": 660}
REVIEW_SIZE = {"width": 1180, "height": 780}


_DRAW = """async (source) => {
  const image = new Image(); image.src = source; await image.decode();
  const canvas = document.createElement('canvas'); canvas.width = image.width; canvas.height = image.height;
  canvas.getContext('2d').drawImage(image, 0, 0); return canvas.toDataURL('image/webp', 0.8).split(',')[1]; }"""


def main(arguments: list[str]) -> None:
    """Evaluate the quickstart, open its report and its review page, and draw them."""
    from playwright.sync_api import sync_playwright

    unconfined = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=unconfined)
        IMAGES.mkdir(exist_ok=True)
        if arguments != ["--webp"]:
            run(ROOT / "specs" / "quickstart.yaml", Options(output=Path(folder), no_store=True))
            select(folder, Path(folder) / "review.html", WantedSelection(), asked=ASKED)
        drawn = ((draw_report, SIZE), (draw_review, REVIEW_SIZE), (draw_view, REVIEW_SIZE))
        for draw, size in drawn if arguments != ["--webp"] else ():
            page = browser.new_page(viewport=size, color_scheme="light")  # type: ignore[arg-type]
            draw(page, Path(folder))
        copy_as_webp(browser.new_page())
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


def draw_view(page: Page, folder: Path) -> None:
    """Draw the page on which answers are labelled, with some labels."""
    kept = folder / "kept"
    kept.mkdir()
    catalog = RecordCatalog(SearchPlaces(folder / "none", None, folder), [folder])
    (record,) = catalog.list_records()[0]
    server = Server(make_view_app(list_addresses(catalog, kept, folder / "labels.csv", None), TOKEN), "127.0.0.1", 0)
    try:
        page.goto(f"{server.url}/label/{record.id}?token={TOKEN}")
        page.wait_for_url(f"{server.url}/label/{record.id}")
        page.get_by_label("Your name").fill("Ann")
        page.keyboard.press("Enter")
        for key in GIVEN:
            page.wait_for_function("document.querySelector('#task-title') && !document.querySelector('.opinion')")
            for _ in range(page.locator(".panel").count()):
                page.keyboard.press(key)
            page.locator(".opinion").wait_for()
            page.keyboard.press("Enter")
        page.keyboard.press("k")
        page.locator(".opinion").wait_for()
        page.locator("#numbers", has_text=f"{len(GIVEN)} labels").wait_for()
        save(page, "view.png")
    finally:
        server.close()


def save(page: Page, name: str) -> None:
    """Write what the page shows as a picture."""
    picture = IMAGES / name
    page.screenshot(path=picture)
    print(f"{name} has {picture.stat().st_size / 1000:.0f} KB")


def copy_as_webp(page: Page) -> None:
    """Write each PNG as WebP, and remove the copies of earlier ones."""
    for copy in IMAGES.glob("*.webp"):
        copy.unlink()
    for picture in sorted(IMAGES.glob("*.png")):
        content = picture.read_bytes()
        drawn = page.evaluate(_DRAW, f"data:image/png;base64,{base64.b64encode(content).decode()}")
        copy = picture.with_name(f"{picture.stem}.{sha256(content).hexdigest()[:8]}.webp")
        copy.write_bytes(base64.b64decode(drawn))
        print(f"{copy.name} has {copy.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
