"""Fills the generated regions of README.md and docs/exchange/README.md.

They are lists and counts of plugins, from what the plugins say of themselves, and the table of tools, from the first
table of each tool's page.

    python docs/readme.py --write    # after a plugin or a tool came, went, or describes itself in other words
    python docs/readme.py --check    # exit code 1 where a README says something else

A region begins with `<!-- generated: NAME -->` and ends with `<!-- /generated -->`; NAME is a key of `REGIONS`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from textwrap import fill

from rageval_spec import registry
from rageval_spec.commands.plugin_words import summarize

README = Path(__file__).parents[1] / "README.md"
EXCHANGE = Path(__file__).parent / "exchange" / "README.md"
WIDTH = 120
_TOOLS = "| tool | in | out |\n|---|---|---|\n"
_REGION = re.compile(r"(<!-- generated: ([^>]+?) -->)(.*?)(<!-- /generated -->)", re.DOTALL)


def count_metrics() -> str:
    """How many words `metrics:` knows."""
    return str(len(_list_words("metrics")))


def list_sections() -> str:
    """A paragraph with the words of each section."""
    can_answer = {word: registry.load("systems", word).can_answer for word in _list_words("systems")}
    lists = {
        "Datasets": _list_words("datasets"),
        "Systems that retrieve": [word for word, answers in can_answer.items() if not answers],
        "Systems that answer": [word for word, answers in can_answer.items() if answers],
        "Models": _list_words("models"),
        "Labels": _list_words("labels"),
        "Reports": _list_words("reports"),
        "Notifiers": _list_words("notifiers"),
    }
    text = " ".join(f"{title}: {_quote(words)}." for title, words in lists.items())
    return f"\n{fill(text, WIDTH, break_on_hyphens=False)}\n"


def tabulate_judges() -> str:
    """A row for each judge: its word, and what it does."""
    rows = [f"| `{word}` | {summarize('judges', word)} |" for word in _list_words("judges")]
    return "\n".join(["", "| judge | what it does |", "|---|---|", *rows, ""])


def tabulate_tools() -> str:
    """A row for each tool with a link to its page, from the table that each page begins with.

    Raises:
        ValueError: a page does not begin with that table.
    """
    rows: list[str] = []
    for page in sorted(EXCHANGE.parent.glob("*.md")):
        if page != EXCHANGE:
            _, begin, rest = page.read_text(encoding="utf-8").partition(f"\n\n{_TOOLS}")
            if not begin:
                raise ValueError(f"{page} does not begin with the table {_TOOLS.splitlines()[0]}")
            own = rest.partition("\n\n")[0].splitlines()
            rows += [re.sub(r"^\| (.+?) \(", rf"| [\1]({page.name}) (", row) for row in own]
    return "\n".join([f"\n{_TOOLS.rstrip()}", *rows, ""])


REGIONS: Mapping[str, Callable[[], str]] = {
    "count of metrics": count_metrics,
    "sections": list_sections,
    "judges": tabulate_judges,
    "tools": tabulate_tools,
}


def render(text: str) -> str:
    """The text with every generated region filled.

    Raises:
        KeyError: a region that nothing here fills.
    """
    return _REGION.sub(lambda found: f"{found[1]}{REGIONS[found[2]]()}{found[4]}", text)


def main(arguments: list[str]) -> int:
    """`--write` or `--check`, and a path (by default, both README.md of this repository)."""
    if not arguments or arguments[0] not in ("--write", "--check") or len(arguments) > 2:
        print("usage: python docs/readme.py --write|--check [FILE]", file=sys.stderr)
        return 2
    stale = False
    for path in map(Path, arguments[1:] or (README, EXCHANGE)):
        text = path.read_text(encoding="utf-8")
        filled = render(text)
        if arguments[0] == "--write":
            path.write_text(filled, encoding="utf-8")
        elif filled != text:
            print(f"the lists in {path} are out of date; run: python docs/readme.py --write", file=sys.stderr)
            stale = True
    return int(stale)


def _list_words(section: registry.Section) -> list[str]:
    return sorted(registry.builtin_words(section))


def _quote(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
