"""Writes each picture of docs/images as WebP, which the site shows: a third of the bytes of the PNG; needs Chromium.

    python docs/site/pictures.py

The name has the digest of the PNG, so the site never shows the WebP of an earlier picture.
"""

from __future__ import annotations

import base64
import os
import shutil
from hashlib import sha256
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "images"
_DRAW = """async (source) => {
  const image = new Image(); image.src = source; await image.decode();
  const canvas = document.createElement('canvas'); canvas.width = image.width; canvas.height = image.height;
  canvas.getContext('2d').drawImage(image, 0, 0); return canvas.toDataURL('image/webp', 0.8).split(',')[1]; }"""


def name_webp(picture: Path) -> Path:
    """Where the WebP of a PNG is."""
    return picture.with_name(f"{picture.stem}.{sha256(picture.read_bytes()).hexdigest()[:8]}.webp")


def main() -> None:
    """Draw each picture in Chromium, and remove what no picture has any more."""
    from playwright.sync_api import sync_playwright

    wanted = {name_webp(picture): picture for picture in sorted(IMAGES.glob("*.png"))}
    for stale in {*IMAGES.glob("*.webp")} - {*wanted}:
        stale.unlink()
    unconfined = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=unconfined)
        page = browser.new_page()
        for path, picture in wanted.items():
            drawn = base64.b64encode(picture.read_bytes()).decode()
            path.write_bytes(base64.b64decode(page.evaluate(_DRAW, f"data:image/png;base64,{drawn}")))
            print(f"{path.name}: {path.stat().st_size:,} bytes instead of {picture.stat().st_size:,}")


if __name__ == "__main__":
    main()
