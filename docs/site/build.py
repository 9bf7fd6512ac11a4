"""Builds the documentation as static files in build/site/html, and checks them; needs no network.

    python docs/site/build.py

Pages of the repository and the reference, which comes from the code, go to build/site/pages; Zensical makes HTML of
them. Each page also lies beside its HTML as Markdown, and llms.txt lists all. Exit code 1 if anything is broken.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from posixpath import relpath
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))

from checks import BuiltSite
from dialects import find_differences
from markdown_text import escape, join
from program_reference import write_command_pages, write_process_page, write_python_pages, write_schema_pages
from spec_reference import write_diagnostics_page, write_spec_page, write_word_pages
from staging import HOME, ROOT, BrokenLinkError, Page, list_targets, read_page, show_file

HERE = Path(__file__).parent
OUTPUT = ROOT / "build" / "site"
GENERATED: Mapping[str, Callable[[], Sequence[Page]]] = {
    "spec": lambda: [write_spec_page()],
    "diagnostics": lambda: [write_diagnostics_page()],
    "words": lambda: [*write_word_pages()],
    "examples": lambda: [show_file(f"specs/{path.name}") for path in sorted((ROOT / "specs").glob("*.yaml"))],
    "commands": lambda: [*write_command_pages()],
    "python": lambda: [*write_python_pages()],
    "schemas": lambda: [*write_schema_pages()],
    "process": lambda: [write_process_page()],
}
Nav = list[Any]
Parts = dict[str, dict[str, list[Page]]]


class UnplacedPageError(Exception):
    """A page that no part has, or that two parts have."""


def main() -> int:
    """Build and check; what is broken goes to standard error."""
    try:
        site = build(OUTPUT)
    except (BrokenLinkError, UnplacedPageError, subprocess.CalledProcessError) as error:
        print(error, getattr(error, "stdout", None) or "", file=sys.stderr, sep="\n")
        return 1
    faults = [*site.find_faults(), *find_differences(OUTPUT / "pages", OUTPUT / "html")]
    print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
    heaviest = max(site.pages, key=site.weigh_page)
    print(f"{len(site.pages)} pages in {(OUTPUT / 'html').relative_to(ROOT)}, {len(faults)} faults; "
          f"the heaviest is {heaviest} with {site.weigh_page(heaviest):,} bytes")  # fmt: skip
    return int(bool(faults))


def build(output: Path) -> BuiltSite:
    """Write the pages, make HTML of them in `output`, and read it.

    Raises:
        BrokenLinkError: a page links to what is not in the repository.
        UnplacedPageError: a page has no part, or two.
        CalledProcessError: Zensical found a fault.
    """
    shutil.rmtree(output, ignore_errors=True)
    parts = read_parts()
    pages = [read_home(parts), *(page for groups in parts.values() for group in groups.values() for page in group)]
    pages += [Page(place_part(part), write_part(part, groups)) for part, groups in parts.items()]
    for page in pages:
        write(output / "pages" / page.path, page.text)
    write_llms(output / "pages" / "llms.txt", parts)
    shutil.copytree(ROOT / "docs" / "images", output / "pages" / "images")
    shutil.copytree(ROOT / "schemas", output / "pages" / "schemas")
    for name in ("site.css", "site.js"):
        shutil.copy(HERE / name, output / "pages" / name)
    nav = [{"Home": "index.md"}, *({part: list_nav(part, groups)} for part, groups in parts.items())]
    settings = (HERE / "zensical.toml").read_text(encoding="utf-8")
    write(output / "zensical.toml", settings.replace("nav = []", f"nav = {write_toml(nav)}"))
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    subprocess.run(command, cwd=output, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for page in pages:
        shutil.copy(output / "pages" / page.path, output / "html" / page.path)
    return BuiltSite(output / "html")


def read_parts() -> Parts:
    """The pages of each group of each part, each page once.

    A name of a file comes before a pattern, wherever it stands.
    """
    plan: dict[str, dict[str, list[Any]]] = yaml.safe_load((HERE / "nav.yaml").read_text(encoding="utf-8"))
    entries = [entry for groups in plan.values() for group in groups.values() for entry in group]
    taken = [entry for entry in entries if isinstance(entry, str) and "*" not in entry]
    if twice := {one for one in taken if taken.count(one) > 1}:
        raise UnplacedPageError(f"nav.yaml has {', '.join(sorted(twice))} twice")
    parts: Parts = {}
    for part, groups in plan.items():
        parts[part] = {
            name: [page for entry in group for page in _read(entry, taken)] for name, group in groups.items()
        }
    placed = {page.source for groups in parts.values() for group in groups.values() for page in group} | {HOME}
    if missing := {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")} - placed:
        raise UnplacedPageError(f"docs/site/nav.yaml has no place for {', '.join(sorted(missing))}")
    _add_linked_files(parts)
    return parts


def _read(entry: Any, taken: list[str]) -> Iterator[Page]:
    if isinstance(entry, dict):
        yield from GENERATED[entry["generated"]]() if entry["generated"] in GENERATED else ()
        return
    found = [entry] if "*" not in entry else sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(entry))
    for path in found:
        if path == entry or (path not in taken and path != HOME):
            taken.append(path)
            yield read_page(path)


def _add_linked_files(parts: Parts) -> None:
    """Pages that show the files to which other pages link, at the end of the reference."""
    pages = [page for groups in parts.values() for group in groups.values() for page in group]
    shown = {page.source for page in pages}
    files = [show_file(target) for target in list_targets(pages) if target not in shown]
    parts["Reference"]["Files of the repository"] = files


def read_home(parts: Parts) -> Page:
    """The home page, with the list of the parts in place of its comment."""
    page = read_page(HOME)
    listed = "\n".join(f"- [**{part}**]({place_part(part)}): {PROMISES[part]}" for part in parts)
    return Page(page.path, page.text.replace("<!-- parts -->", listed), page.source)


PROMISES = {
    "Tutorials": "from an empty folder to a result, one step after another.",
    "How-to guides": "one task on each page.",
    "Reference": "every word, key, command and message, made from the code.",
    "Explanation": "how the numbers come about, why things are as they are, and what was measured.",
}


def place_part(part: str) -> str:
    """The page that lists a part."""
    return f"{part.lower().replace(' ', '-')}.md"


def write_part(part: str, groups: Mapping[str, Sequence[Page]]) -> str:
    """The page of a part: its groups, and each page with its first sentence."""
    text = [f"# {part}", PROMISES[part][0].upper() + PROMISES[part][1:]]
    for name, pages in groups.items():
        shown = [one for one in pages if not _is_inner(one)]
        lines = (f"- [{escape(one.title)}]({one.path}): {escape(one.summary)}".removesuffix(": ") for one in shown)
        text += [f"## {name}", "\n".join(lines)] if pages else []
    return join(text)


def _is_inner(page: Page) -> bool:
    """Whether a page is one word, which its section lists."""
    return page.path.startswith("reference/") and page.path.count("/") == 2 and not page.path.endswith("/index.md") \
        and page.path.split("/")[1] not in ("python", "schemas")  # fmt: skip


def list_nav(part: str, groups: Mapping[str, Sequence[Page]]) -> Nav:
    """Zensical's `nav` of a part: groups, and in them pages and folders that have an index."""
    nav: Nav = [place_part(part)]
    for name, pages in groups.items():
        listed: dict[str, Any] = {}
        for page in pages:
            folder = str(PurePosixPath(page.path).parent)
            if page.path.startswith("reference/") and page.path.endswith("/index.md"):
                listed[folder] = {page.title: [page.path]}
            elif folder in listed:
                next(iter(listed[folder].values())).append({page.title: page.path})
            else:
                listed[page.path] = {page.title: page.path}
        entries = [*listed.values()]
        nav += [entries[0] if [*map(list, entries)] == [[name]] else {name: entries}] if entries else []
    return nav


def write_toml(value: Any) -> str:
    """A nested list as TOML writes it in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {write_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def write_llms(path: Path, parts: Parts) -> None:
    """llms.txt: what the product is, and each page as Markdown with its first sentence, by part."""
    home = read_page(HOME)
    text = [f"# {home.title}", f"> {home.summary}"]
    for part, groups in parts.items():
        pages = [page for group in groups.values() for page in group]
        listed = (f"- [{one.title}]({relpath(one.path, '.')}): {one.summary}".rstrip(": ") for one in pages)
        text += [f"## {part}", "\n".join(listed)]
    write(path, join(text))


def write(path: Path, text: str) -> None:
    """Write a file and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
