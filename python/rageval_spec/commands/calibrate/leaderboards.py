"""`calibrate --leaderboards`: reads two leaderboards, files or results, and shows how alike they order the systems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rageval_spec.calibration.leaderboards import compare_leaderboards, dump_agreements, render_agreements
from rageval_spec.commands.results_argument import is_results, open_results
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.libraries import pl
from rageval_spec.reading.leaderboards import Leaderboard, read_leaderboard


def calibrate_leaderboards(pairs: Iterable[tuple[str, str]], metrics: Sequence[str], form: str) -> bytes:
    """The agreement of each pair (the truth, and a judge's), as text or JSON. Each is a file, a folder or results."""
    parts = []
    for first, second in pairs:
        truth, judged = _open(first), _open(second)
        parts.append((truth.name, {judged.name: compare_leaderboards(truth, judged, metrics)}))
    if form == "json":
        return dump_agreements(parts)
    return b"\n".join(render_agreements(truth, found) for truth, found in parts)


def _open(name: str) -> Leaderboard:
    if Path(name).exists() and not is_results(name):
        return read_leaderboard(Path(name))
    opened = open_results(name)
    return _read_values(opened.name, opened.evaluation)


def _read_values(name: str, evaluation: Evaluation) -> Leaderboard:
    """The leaderboard of an evaluation; with several datasets, a topic is a query of one of them."""
    scored = evaluation.values.filter(pl.col("value").is_not_null())
    several = scored["dataset"].n_unique() > 1
    values: dict[str, dict[str, dict[str, float]]] = {}
    for dataset, system, metric, query, value in scored.select(
        "dataset", "system", "metric", "query_id", "value"
    ).iter_rows():
        topic = f"{dataset}/{query}" if several else query
        values.setdefault(metric, {}).setdefault(system, {})[topic] = value
    return Leaderboard(name, values, {})
