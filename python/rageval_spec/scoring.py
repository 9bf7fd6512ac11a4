"""Scores one run as trec_eval does: what `rageval-spec score` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rageval_spec import kernels
from rageval_spec.errors import NothingScoredError
from rageval_spec.spec.nodes import TieRule

if TYPE_CHECKING:
    import numpy as np

    from rageval_spec.kernels import RankingValues

TREC_EVAL_MEASURES = (
    *("num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank"),
    *(f"iprec_at_recall_{tenths / 10:.2f}" for tenths in range(11)),
    *(f"P_{cutoff}" for cutoff in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
)
"""What trec_eval prints when no measure is asked for, less the run's tag."""
COUNTS = ("num_ret", "num_rel", "num_rel_ret")
NO_QUERY_VALUE = ("gm_map",)
"""Measures whose value of one query is a logarithm, which trec_eval does not print."""


@dataclass(frozen=True, slots=True)
class Settings:
    """trec_eval's options -q, -c, -l, -J and -M, and how ties are ordered ("range": over all orders)."""

    per_query: bool = False
    complete: bool = False
    relevance_level: int = 1
    judged_only: bool = False
    depth: int | None = None
    ties: TieRule | Literal["range"] = "trec_eval"


@dataclass(frozen=True)
class Scores:
    """The values of one run; `names` are the measures as they were asked for."""

    names: Sequence[str]
    ranked: RankingValues
    per_query: bool
    header: bool

    def to_text(self) -> str:
        """A line a measure in trec_eval's layout; the range over all orders of ties in two more columns."""
        lines = [line for query in self._queries() for line in self._lines(query)] if self.per_query else []
        if self.header:
            lines.append(f"{'num_q':<22}\tall\t{len(self.ranked.query_ids)}")
        return "".join(f"{line}\n" for line in [*lines, *self._lines(None)])

    def to_json(self) -> str:
        """`{"measures": {name: value}, "queries": {query: {name: value}}}`; with ties, `ties: {name: [low, high]}`."""
        content: dict[str, object] = {"measures": self._values(None, self.ranked.values)}
        low, high = self.ranked.low, self.ranked.high
        if low is not None and high is not None:
            lows, highs = self._values(None, low), self._values(None, high)
            content["ties"] = {name: [lows[name], highs[name]] for name in lows}
        if self.per_query:
            ids = self.ranked.query_ids
            content["queries"] = {ids[query]: self._values(query, self.ranked.values) for query in self._queries()}
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def _queries(self) -> range:
        return range(len(self.ranked.query_ids))

    def _lines(self, query: int | None) -> Iterator[str]:
        tables = [table for table in (self.ranked.values, self.ranked.low, self.ranked.high) if table is not None]
        columns = [self._values(query, table) for table in tables]
        place = "all" if query is None else self.ranked.query_ids[query]
        for name in columns[0]:
            numbers = "\t".join(_format(name, column[name]) for column in columns)
            yield f"{name:<22}\t{place}\t{numbers}"

    def _values(self, query: int | None, table: np.ndarray) -> Mapping[str, float]:
        values = {}
        for name in self.names:
            measure = kernels.parse_measure(name)
            row = table[self.ranked.measures.index(measure.text)]
            if query is None:
                values[name] = kernels.aggregate_measure(measure.text, row, self.ranked.missing)
            elif measure.name not in NO_QUERY_VALUE:
                values[name] = float(row[query])
        return values


def score_run(qrels: Path, run: Path, measures: Sequence[str], settings: Settings) -> Scores:
    """Score a run of trec_eval's format against judgements of its format or BEIR's.

    Args:
        measures: as in ir_measures, trec_eval or BEIR; trec_eval's own list where it is empty.

    Raises:
        UsageError: an unknown measure.
        DataError: a file that cannot be read, with `file:line`; a document twice for a query.
        NothingScoredError: no query of the run is in the qrels.
    """
    names = list(dict.fromkeys(measures)) or list(TREC_EVAL_MEASURES)
    asked = list(dict.fromkeys(kernels.parse_measure(name).text for name in names))
    evaluator = kernels.prepare_evaluator(
        asked,
        ties="trec_eval" if settings.ties == "range" else settings.ties,
        depth=settings.depth,
        judged_only=settings.judged_only,
        relevance_level=settings.relevance_level,
        missing="zero" if settings.complete else "skip",
        tie_range=settings.ties == "range",
    )
    ranked = kernels.ranking_values(evaluator, evaluator.evaluate_files(qrels, run))
    if not ranked.query_ids:
        raise NothingScoredError(f"no query of {run} is in {qrels}")
    return Scores(names, ranked, settings.per_query, header=not measures)


def _format(name: str, value: float) -> str:
    return f"{value:.0f}" if kernels.parse_measure(name).name in COUNTS else f"{value:6.4f}"
