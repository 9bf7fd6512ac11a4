"""Opens review pages in Chromium, as a reader would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.review.page.rendering import render_page
from rageval_spec.review.tasks import ReviewSheet, to_payload
from tests.browser import Opened, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

NO_STORAGE = (
    "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } });"
)


def expect(locator: Locator) -> Any:
    """Waits for a condition; `wait_for_function` would need the policy to allow `eval`."""
    from playwright.sync_api import expect as wait

    return wait(locator)


def write_page(folder: Path, sheet: ReviewSheet) -> Path:
    path = folder / "review.html"
    path.write_bytes(render_page(to_payload(sheet)))
    return path


@contextmanager
def open_review(browser: Browser, path: Path, annotator: str | None = "Ann", **options: Any) -> Iterator[Opened]:
    """The page, at its first task if there is an annotator, which must do nothing forbidden."""
    with open_page(browser, path, **options) as opened:
        if annotator is not None:
            enter(opened, annotator)
        yield opened
        assert opened.seen == []
        assert [url for url in opened.requests if not url.startswith("blob:")] == [path.absolute().as_uri()]


def enter(opened: Opened, annotator: str) -> None:
    opened.page.get_by_label("Your name").fill(annotator)
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_selector("#task-title")


def press(opened: Opened, *keys: str) -> None:
    for key in keys:
        opened.page.keyboard.press(key)


def place(opened: Opened) -> str:
    """Where the reader is: `Task 1 of 6`."""
    return opened.page.locator("#crumbs .strong").inner_text()


def progress(opened: Opened) -> str:
    return opened.page.locator("#so-far").inner_text()


def expect_progress(opened: Opened, text: str) -> None:
    """Waits until the page says so; it is redrawn after what it says of a file."""
    expect(opened.page.locator("#so-far")).to_have_text(text)


def chosen(opened: Opened) -> list[str]:
    """The pressed buttons of the form, without their signs."""
    pressed = opened.page.locator('#panels .option[aria-pressed="true"]')
    return [text.split("\n")[-1] for text in pressed.evaluate_all("all => all.map((one) => one.dataset.name)")]
