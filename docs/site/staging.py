"""Copies pages of the repository to a folder, and leads their links to where the site has the same thing.

A page keeps its name without `docs/`; a `README.md` is the index of its folder. A link to any other file of the
repository, such as a spec, leads to a page that shows the file. A link to nothing is an error here, not on the site.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from dialects import PARSER, indent_lists

ROOT = Path(__file__).parents[2]
HOME = "docs/index.md"
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^()\s]+)(\))")
_CODE = re.compile(r"(?P<mark>`+)(?!`)(?:(?!\n\s*\n).)*?(?<!`)(?P=mark)(?!`)", re.DOTALL)
_FENCE = re.compile(r"^( *)(```+|~~~+)")
_LANGUAGES = {".yaml": "yaml", ".yml": "yaml", ".py": "python", ".json": "json", ".jsonl": "json", ".toml": "toml"}


class BrokenLinkError(Exception):
    """A page of the repository links to what is not there."""


@dataclass(frozen=True)
class Page:
    """A page of the site: where it is, relative to the root, and its Markdown. `source` is its file, if it has one."""

    path: str
    text: str
    source: str | None = None

    @property
    def title(self) -> str:
        """The first heading, as plain text."""
        found = re.search(r"^# (.+)$", self.text, re.MULTILINE)
        return found[1].replace("`", "") if found else PurePosixPath(self.path).stem

    @property
    def summary(self) -> str:
        """The first sentence, whose only markup is `code`; empty if the page has no text."""
        tokens = PARSER.parse(self.text)
        for before, token in pairwise(tokens):
            parts = token.children or [] if before.type == "paragraph_open" else []
            pieces = (f"`{one.content}`" if one.type == "code_inline" else one.content or " " for one in parts
                      if one.type in ("text", "code_inline", "softbreak"))  # fmt: skip
            if text := " ".join("".join(pieces).split()):
                return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0].rstrip(":")
        return ""


def place(source: str) -> str:
    """Where the site has a file of the repository: the page of a Markdown file, else the page that shows it."""
    if source in (HOME, "README.md"):
        return "index.md"
    if source.startswith("docs/images/"):
        picture = ROOT / source
        copy = picture.with_name(f"{picture.stem}.{sha256(picture.read_bytes()).hexdigest()[:8]}.webp")
        return f"images/{copy.name if copy.exists() else picture.name}"
    path = PurePosixPath(source.removeprefix("docs/"))
    if path.suffix != ".md":
        return f"files/{path}.md"
    return str(path.with_name("index.md") if path.name == "README.md" else path).lower()


def read_page(source: str) -> Page:
    """A Markdown file of the repository as a page, its links led to the places of the site."""
    text = (ROOT / source).read_text(encoding="utf-8")
    return Page(place(source), indent_lists(lead_links(text, source)), source)


def lead_links(text: str, source: str) -> str:
    """Markdown with every relative link led from `source` in the repository to its place on the site.

    Raises:
        BrokenLinkError: a link leads to what is not in the repository.
    """
    return _replace_outside_code(text, lambda part: _LINK.sub(lambda link: _lead(link, source), part))


def list_targets(pages: Iterable[Page]) -> list[str]:
    """The files of the repository that are no pages and to which pages link, sorted."""
    linked = {target for page in pages if page.source for target in _list_linked(page.source)}
    return sorted(target for target in linked if (ROOT / target).is_file() and not target.endswith((".md", ".png")))


def show_file(source: str) -> Page:
    """A page that shows a file of the repository."""
    text = (ROOT / source).read_text(encoding="utf-8")
    language = _LANGUAGES.get(Path(source).suffix, "text")
    return Page(place(source), f"# `{source}`\n\n~~~~{language}\n{text.rstrip()}\n~~~~\n", source)


def _list_linked(source: str) -> Iterator[str]:
    found: list[str] = []

    def note(part: str) -> str:
        found.extend(link[2] for link in _LINK.finditer(part))
        return part

    _replace_outside_code((ROOT / source).read_text(encoding="utf-8"), note)
    for link in found:
        if not re.match(r"[a-z]+:|#", link):
            yield normpath(f"{PurePosixPath(source).parent}/{link.partition('#')[0]}")


def _lead(link: re.Match[str], source: str) -> str:
    address, mark, anchor = link[2].partition("#")
    if re.match(r"[a-z]+:", address) or not address:
        return link[0]
    target = normpath(f"{PurePosixPath(source).parent}/{address}")
    if not (ROOT / target).exists():
        raise BrokenLinkError(f"{source} links to {link[2]}, but there is no {target}")
    staged = f"{target.removeprefix('docs/')}/index.md" if (ROOT / target).is_dir() else place(target)
    return f"{link[1]}{relpath(staged, PurePosixPath(place(source)).parent)}{mark}{anchor}{link[3]}"


def _replace_outside_code(text: str, replace: Callable[[str], str]) -> str:
    """Apply a function to what is neither in a fenced block nor in code."""
    done: list[str] = []
    prose: list[str] = []
    fence: str | None = None
    for line in text.splitlines(keepends=True):
        opening = _FENCE.match(line)
        if fence is None and opening is None:
            prose.append(line)
            continue
        if fence is None and opening is not None:
            done.append(_replace_outside_spans("".join(prose), replace))
            prose, fence = [], opening[2]
        elif fence is not None and opening is not None and opening[2].startswith(fence) and line.strip() == opening[2]:
            fence = None
        done.append(line)
    return "".join(done) + _replace_outside_spans("".join(prose), replace)


def _replace_outside_spans(text: str, replace: Callable[[str], str]) -> str:
    """Code is set aside first: the text of a link may have some."""
    hidden: list[str] = []

    def hide(found: re.Match[str]) -> str:
        hidden.append(found[0])
        return f"\0{len(hidden) - 1}\0"

    replaced = replace(_CODE.sub(hide, text))
    return re.sub("\0(\\d+)\0", lambda found: hidden[int(found[1])], replaced)
