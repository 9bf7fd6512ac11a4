"""A real Chromium for tests of pages; tests that need it are skipped where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def start_browser() -> Iterator[Browser]:
    """Chromium without a window; skips the test if there is no Chromium, or no playwright."""
    executable = next(filter(None, map(shutil.which, _NAMES)), None)
    if executable is None:
        pytest.skip("no Chromium: install it with: apt-get install --no-install-recommends chromium fonts-dejavu-core")
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: install the dependency group 'dev'")
    unconfined = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=unconfined)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Opened:
    """A page that is open, and what it did: messages on the console, faults and dialogs, and its requests."""

    page: Page
    seen: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def open_page(browser: Browser, path: Path, address: str = "", **options: Any) -> Iterator[Opened]:
    """A page from its file, offline, when it has drawn itself."""
    context = browser.new_context(**{"offline": True, "viewport": {"width": 1280, "height": 800}, **options})
    try:
        opened = Opened(context.new_page())
        page = opened.page
        page.set_default_timeout(10_000)
        page.on("console", lambda message: opened.seen.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: opened.seen.append(f"error: {error}"))
        page.on("dialog", lambda dialog: opened.seen.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: opened.requests.append(request.url))
        page.goto(path.absolute().as_uri() + address)
        page.wait_for_selector("body[data-ready]")
        yield opened
    finally:
        context.close()
