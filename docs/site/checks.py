"""Finds what is broken in the built site: links, anchors, pictures, orphans, requests elsewhere, heavy pages.

lxml reads the HTML. The weight of a page is that of its file and of its styles, scripts and pictures; text counts as
gzip compresses it for the way, and the index of the search, which is fetched when a reader searches, is apart.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote, urlsplit

from lxml import etree, html

MOST_BYTES = 200_000
"""Of a page with all that it loads."""
HOME = "index.html"
_COMPRESSED = {".html", ".css", ".js", ".svg", ".json"}
_LOADED = "//link[@rel='stylesheet' or @rel='icon']/@href | //script/@src | //img/@src | //source/@src"
_APART = "404.html"
"""A page that a server sends by itself."""


class BuiltSite:
    """The files of a built site. Paths are relative to its folder."""

    def __init__(self, folder: Path) -> None:
        """Read every page once."""
        self.folder = folder
        found = sorted(folder.rglob("*.html"))
        self.pages = {str(path.relative_to(folder)): html.parse(str(path)) for path in found}

    def find_faults(self) -> Iterator[str]:
        """Each fault in a sentence that names its page."""
        reached = {HOME, _APART}
        for page, tree in self.pages.items():
            for link in map(str, tree.xpath("//a/@href")):
                target = self._resolve(page, link)
                if target is None:
                    continue
                if target != page and page != _APART:
                    reached.add(target)
                if fault := self._find_fault(target, unquote(urlsplit(link).fragment)):
                    yield f"{page}: the link '{link}' {fault}"
            yield from (f"{page}: {fault}" for fault in self._check_what_is_loaded(page, tree))
        yield from (f"{page}: no page links to it" for page in self.pages if page not in reached)

    def weigh_page(self, page: str) -> int:
        """The bytes of a page with all that it loads from the site."""
        targets = {self._resolve(page, address) for address in map(str, self.pages[page].xpath(_LOADED))}
        return self._weigh(page) + sum(map(self._weigh, targets - {None}))

    def _resolve(self, page: str, link: str) -> str | None:
        """The file to which a link leads; None if it leads elsewhere."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return None
        target = normpath(f"{page}/../{unquote(parts.path)}") if parts.path else page
        return normpath(f"{target}/{HOME}") if (self.folder / target).is_dir() else target

    def _find_fault(self, target: str, anchor: str) -> str | None:
        if not (self.folder / target).is_file():
            return "leads to nothing"
        is_known = not anchor or target not in self.pages or anchor in self._list_anchors(target)
        return None if is_known else f"has an anchor that {target} has not"

    @cache  # noqa: B019
    def _list_anchors(self, page: str) -> frozenset[str]:
        return frozenset(map(str, self.pages[page].xpath("//@id | //a/@name")))

    def _check_what_is_loaded(self, page: str, tree: etree._ElementTree) -> Iterator[str]:
        for image in tree.xpath("//img[not(normalize-space(@alt))]/@src"):
            yield f"the picture '{image}' has no text for those who cannot see it"
        for address in sorted({*map(str, tree.xpath(_LOADED))}):
            target = self._resolve(page, address)
            if target is None and not address.startswith("data:"):
                yield f"it loads {address} from elsewhere"
            elif target is not None and not (self.folder / target).is_file():
                yield f"'{address}' is not there"
            elif target is not None and target.endswith(".css") and (found := _find_foreign(self.folder / target)):
                yield f"{target} loads {found} from elsewhere"
        if (total := self.weigh_page(page)) > MOST_BYTES:
            yield f"{total:,} bytes with all that it loads, more than {MOST_BYTES:,}"
        if page != _APART and not tree.xpath("//h1"):
            yield "it has no title"

    @cache  # noqa: B019
    def _weigh(self, path: str) -> int:
        file = self.folder / path
        content = file.read_bytes() if file.is_file() else b""
        return len(gzip.compress(content, 6) if file.suffix in _COMPRESSED else content)


@cache
def _find_foreign(style: Path) -> str | None:
    found = re.search(r"(?:url\(|@import )['\"]?(https?://[^'\")]+)", style.read_text(encoding="utf-8"))
    return found[1] if found else None
