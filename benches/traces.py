"""Compare what `import` reads from the spans of real applications with what these applications asked, found and said.

    python -m benches.traces

The spans, and the rows that they should become, are in tests/exchange/golden_apps; tests/exchange/apps has the
applications. The output is the tables of traces.md. A value is wrong if another one is read, and missing if none is.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.exchange.golden_app import FOLDER, import_app, load_expected, match_rows

PARTS = {
    "question": ("question",),
    "answer": ("answer",),
    "contexts": ("contexts",),
    "tokens": ("input_tokens", "output_tokens", "cost"),
    "failed": ("failed",),
}
"""The columns of the table, each with the values that it counts."""


def judge(row: Mapping[str, Any] | None, wanted: Mapping[str, Any], names: Sequence[str]) -> str:
    """`right`, `wrong`, `missing`, or `not recorded` for what the application's spans cannot say."""
    names = [name for name in names if name in wanted]
    if not names:
        return "not recorded"
    if row is None:
        return "missing"
    different = [name for name in names if row[name] != wanted[name]]
    if not different:
        return "right"
    return "missing" if all(row[name] in (None, []) for name in different) else "wrong"


def measure(app: str, folder: Path) -> tuple[Counter[tuple[str, str]], int, int, int]:
    """The counts by part and verdict; how many rows are right in all parts, of how many; and how many are too many."""
    expected = load_expected(app)["rows"]
    try:
        rows = import_app(app, folder, os.environ.__setitem__)
    except AssertionError:
        rows = []
    counts: Counter[tuple[str, str]] = Counter()
    right = 0
    for row, wanted in match_rows(rows, expected):
        verdicts = {part: judge(row, wanted, names) for part, names in PARTS.items()}
        counts.update(verdicts.items())
        right += all(verdict in ("right", "not recorded") for verdict in verdicts.values())
    return counts, right, len(expected), max(0, len(rows) - len(expected))


def show(counts: Counter[tuple[str, str]], part: str) -> str:
    """`5`, `4, 1 wrong`, `3, 1 wrong, 1 missing`, or a dash for what is not recorded."""
    if counts[part, "not recorded"]:
        return "–"
    told = [f"{counts[part, verdict]} {verdict}" for verdict in ("wrong", "missing") if counts[part, verdict]]
    return ", ".join([str(counts[part, "right"]), *told])


def list_lines() -> Iterator[str]:
    """The table of applications, then the versions of their packages."""
    yield f"| application | rows right | {' | '.join(PARTS)} |"
    yield f"|---|---:|{'---|' * len(PARTS)}"
    total = Counter[str]()
    versions: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.json")):
        app = path.name.removesuffix(".json")
        with tempfile.TemporaryDirectory() as folder:
            counts, right, rows, extra = measure(app, Path(folder))
        total.update(right=right, rows=rows)
        more = f", {extra} too many" if extra else ""
        yield f"| {app} | {right} of {rows}{more} | {' | '.join(show(counts, part) for part in PARTS)} |"
        versions[app] = ", ".join(f"{name} {version}" for name, version in load_expected(app)["packages"].items())
    yield f"| all | {total['right']} of {total['rows']} |{' |' * len(PARTS)}"
    yield ""
    yield "| application | packages |"
    yield "|---|---|"
    for app, packages in versions.items():
        yield f"| {app} | {packages or 'written by hand'} |"


if __name__ == "__main__":
    print("\n".join(list_lines()))
