from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import Opened
from tests.review.page.opening import open_review

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def opened(browser: Browser, page: Path) -> Iterator[Opened]:
    """The page of a test file, with a name entered."""
    with open_review(browser, page) as made:
        yield made
