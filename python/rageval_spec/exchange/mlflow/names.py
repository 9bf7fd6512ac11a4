"""The names of metrics that MLflow accepts: letters, digits, spaces and `_ - . : /`, and nothing like a path."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 200
"""Characters of a metric's name; MLflow accepts 250, and endings such as `/low` follow."""
_REFUSED = re.compile(r"[^\w\-. :/]")
_CUTOFF = re.compile(r"@(?=\d)")


def name_metrics(metrics: Iterable[str]) -> dict[str, str]:
    """MLflow's name of each metric: `ndcg@10` becomes `ndcg_at_10`. Different metrics have different names."""
    named: dict[str, str] = {}
    taken: set[str] = set()
    ordered = list(dict.fromkeys(metrics))
    # Names that need no change keep theirs, whatever else there is.
    for metric in sorted(ordered, key=lambda metric: _simplify(metric) != metric):
        short = name = _simplify(metric)
        number = 2
        while name in taken:
            name = f"{short}_{number}"
            number += 1
        taken.add(name)
        named[metric] = name
    return {metric: named[metric] for metric in ordered}


def _simplify(metric: str) -> str:
    text = _REFUSED.sub("_", _CUTOFF.sub("_at_", metric))
    parts = [part.strip(" ") for part in text.split("/")]
    kept = [part if part.strip(".") else "_" * len(part) for part in parts if part]
    return "/".join(kept)[:LONGEST].strip("/ ") or "metric"
