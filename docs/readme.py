"""Fills the generated regions of README.md: lists and counts of plugins, from what the plugins say of themselves.

    python docs/readme.py --write    # after a plugin came, went, or describes itself in other words
    python docs/readme.py --check    # exit code 1 where README.md says something else

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
WIDTH = 120
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
    }
    text = " ".join(f"{title}: {_quote(words)}." for title, words in lists.items())
    return f"\n{fill(text, WIDTH, break_on_hyphens=False)}\n"


def tabulate_judges() -> str:
    """A row for each judge: its word, and what it does."""
    rows = [f"| `{word}` | {summarize('judges', word)} |" for word in _list_words("judges")]
    return "\n".join(["", "| judge | what it does |", "|---|---|", *rows, ""])


REGIONS: Mapping[str, Callable[[], str]] = {
    "count of metrics": count_metrics,
    "sections": list_sections,
    "judges": tabulate_judges,
}


def render(text: str) -> str:
    """The text with every generated region filled.

    Raises:
        KeyError: a region that nothing here fills.
    """
    return _REGION.sub(lambda found: f"{found[1]}{REGIONS[found[2]]()}{found[4]}", text)


def main(arguments: list[str]) -> int:
    """`--write` or `--check`, and a path (this repository's README.md by default)."""
    if not arguments or arguments[0] not in ("--write", "--check") or len(arguments) > 2:
        print("usage: python docs/readme.py --write|--check [FILE]", file=sys.stderr)
        return 2
    path = Path(arguments[1]) if len(arguments) == 2 else README
    text = path.read_text(encoding="utf-8")
    filled = render(text)
    if arguments[0] == "--write":
        path.write_text(filled, encoding="utf-8")
        return 0
    if filled != text:
        print(f"the lists in {path} are out of date; run: python docs/readme.py --write", file=sys.stderr)
    return int(filled != text)


def _list_words(section: registry.Section) -> list[str]:
    return sorted(registry.builtin_words(section))


def _quote(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
