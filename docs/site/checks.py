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
_COMPRESSED = {".html", ".css", ".js", ".svg", ".json"}
_LOADED = ("//link[@rel='stylesheet' or @rel='icon']/@href", "//script/@src", "//img/@src", "//source/@src")
_APART = {"404.html"}
"""Pages that a server sends by itself."""
HOME = "index.html"


class BuiltSite:
    """The files of a built site. Paths are relative to its folder."""

    def __init__(self, folder: Path) -> None:
        """Read every page once."""
        self.folder = folder
        found = sorted(folder.rglob("*.html"))
        self.pages = {str(path.relative_to(folder)): html.parse(str(path)) for path in found}

    def find_faults(self) -> Iterator[str]:
        """Each fault in a sentence that names its page."""
        reached = {HOME}
        for page, tree in self.pages.items():
            for target in self._list_links(page, tree):
                if isinstance(target, Fault):
                    yield target.told
                elif page not in _APART:
                    reached.add(target)
            yield from self._check_what_is_loaded(page, tree)
        yield from (f"{page}: no page links to it" for page in self.pages if page not in reached | _APART)
        yield from self._check_parts()

    def _list_links(self, page: str, tree: etree._ElementTree) -> Iterator[str | Fault]:
        """The page that each link leads to from another page, or what is wrong with it."""
        for link in map(str, tree.xpath("//a/@href")):
            if urlsplit(link).scheme:
                continue
            target = self._resolve(page, link)
            anchor = unquote(urlsplit(link).fragment)
            if not (self.folder / target).is_file():
                yield Fault(f"{page}: the link '{link}' leads to nothing")
            elif anchor and target in self.pages and anchor not in self._anchors(target):
                yield Fault(f"{page}: the link '{link}' has an anchor that {target} has not")
            elif target != page:
                yield target

    def _resolve(self, page: str, link: str) -> str:
        path = unquote(urlsplit(link).path)
        target = normpath(f"{page}/../{path}") if path else page
        return f"{target}/{HOME}".removeprefix("./") if (self.folder / target).is_dir() else target

    @cache  # noqa: B019
    def _anchors(self, page: str) -> frozenset[str]:
        return frozenset(map(str, self.pages[page].xpath("//@id | //a/@name")))

    def _check_what_is_loaded(self, page: str, tree: etree._ElementTree) -> Iterator[str]:
        loaded = {str(one) for path in _LOADED for one in tree.xpath(path)}
        for image in tree.xpath("//img[not(normalize-space(@alt))]/@src"):
            yield f"{page}: the picture '{image}' has no text for those who cannot see it"
        total = self._weigh(page)
        for address in sorted(loaded):
            if urlsplit(address).netloc or urlsplit(address).scheme not in ("", "data"):
                yield f"{page}: it loads {address} from elsewhere"
            elif not address.startswith("data:"):
                target = self._resolve(page, address)
                if (self.folder / target).is_file():
                    total += self._weigh(target)
                else:
                    yield f"{page}: '{address}' is not there"
        if total > MOST_BYTES:
            yield f"{page}: {total:,} bytes with all that it loads, more than {MOST_BYTES:,}"
        styles = (self.folder / self._resolve(page, one) for one in loaded if urlsplit(one).path.endswith(".css"))
        for style in styles:
            if style.is_file() and (found := _find_foreign(style)):
                yield f"{page}: {style.name} loads {found} from elsewhere"

    @cache  # noqa: B019
    def _weigh(self, path: str) -> int:
        content = (self.folder / path).read_bytes()
        return len(gzip.compress(content, 6)) if Path(path).suffix in _COMPRESSED else len(content)

    def weigh_page(self, page: str) -> int:
        """The bytes of a page with all that it loads from the site."""
        loaded = {str(one) for path in _LOADED for one in self.pages[page].xpath(path)}
        return self._weigh(page) + sum(self._weigh(self._resolve(page, one)) for one in loaded)

    def _check_parts(self) -> Iterator[str]:
        """The home page leads to nothing but itself, its parts and files."""
        for page, tree in self.pages.items():
            if page not in _APART and not tree.xpath("//h1"):
                yield f"{page}: it has no title"


class Fault:
    """What is wrong with a link, in a sentence."""

    def __init__(self, told: str) -> None:
        """`told` names the page."""
        self.told = told


@cache
def _find_foreign(style: Path) -> str | None:
    found = re.search(r"(?:url\(|@import )['\"]?(https?://[^'\")]+)", style.read_text(encoding="utf-8"))
    return found[1] if found else None
