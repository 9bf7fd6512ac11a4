"""What `rageval-spec score` prints: the values of one run, in trec_eval's layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.diagnostics import dump_visible
from rageval_spec.errors import PASSED, NothingScoredError
from rageval_spec.kernels import RankingOptions, parse_measure
from rageval_spec.progress import ProgressDisplay

if TYPE_CHECKING:
    from rageval_spec.api.rankings import Results


TREC_EVAL_MEASURES = (
    *("num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank"),
    *(f"iprec_at_recall_{tenths / 10:.2f}" for tenths in range(11)),
    *(f"P_{cutoff}" for cutoff in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
)
"""What trec_eval prints by default, after the run's tag and the number of queries."""
COUNTS = frozenset({"num_ret", "num_rel", "num_rel_ret"})
LOGARITHMS = frozenset({"gm_map"})
"""Measures whose value per query is a logarithm. trec_eval does not print it, as it means little to a reader."""


@dataclass(frozen=True)
class RunScores:
    """The values of one run.

    Attributes:
        per_query: whether to show the values of each query (trec_eval's -q).
        tie_range: whether to show the lowest and highest value over all orders of ties.
        header: whether to show the number of queries first.
    """

    results: Results
    per_query: bool
    tie_range: bool
    header: bool

    def to_text(self) -> str:
        """One line per measure, in trec_eval's layout. The range over all orders of ties adds two columns."""
        return "".join(f"{line}\n" for line in self._lines())

    def to_json(self) -> str:
        """`{"measures": {name: value}, "ties": {name: [low, high]}, "queries": {query: {name: value}}}` as JSON."""
        content: dict[str, object] = {"measures": self.results.means}
        if self.tie_range:
            content["ties"] = self.results.tie_range
        if self.per_query:
            content["queries"] = self._per_query()
        return dump_visible(content)

    def _lines(self) -> Iterator[str]:
        if self.per_query:
            missing = set(self.results.missing_queries)  # trec_eval counts them in its means, but does not print them
            for query, values in self._per_query().items():
                if query not in missing:
                    yield from (self._line(name, query, value) for name, value in values.items())
        if self.header:
            yield f"{'num_q':<22}\tall\t{len(self.results)}"
        ranges = self.results.tie_range if self.tie_range else {}
        for name, mean in self.results.means.items():
            yield self._line(name, "all", mean, *ranges.get(name, ()))

    def _line(self, name: str, query: str, *values: float) -> str:
        numbers = "\t".join(f"{value:.0f}" if name in self._counts else f"{value:6.4f}" for value in values)
        return f"{name:<22}\t{query}\t{numbers}"

    def _per_query(self) -> Mapping[str, Mapping[str, float]]:
        hidden = _named(self.results.means, LOGARITHMS)
        values = self.results.per_query()
        return {query: {name: row[name] for name in row if name not in hidden} for query, row in values.items()}

    @cached_property
    def _counts(self) -> frozenset[str]:
        return _named(self.results.means, COUNTS)


def read_options(*, ties: str, complete: bool, **settings: Any) -> RankingOptions:
    """Turn the command's options into ranking options; `ties="range"` means trec_eval's order, plus the range."""
    return RankingOptions(
        ties="trec_eval" if ties == "range" else ties,  # type: ignore[arg-type]  # checked there
        tie_range=ties == "range",
        missing="zero" if complete else "skip",
        **settings,
    )


def score_run(
    qrels: Path, run: Path, measures: Sequence[str], options: RankingOptions, *, per_query: bool = False
) -> RunScores:
    """Score a run in trec_eval's format against judgements in trec_eval's or BEIR's format.

    Args:
        qrels: the judgements.
        run: the run.
        measures: names of ir_measures, trec_eval or BEIR; trec_eval's own list if empty.
        options: how rankings are read, including trec_eval's options -c, -l, -J and -M.
        per_query: whether to show the values of each query (-q).

    Raises:
        UsageError: a measure is unknown.
        DataError: a file cannot be read (the message gives `file:line`), or lists a document twice for a query.
        NothingScoredError: no query of the run is in the qrels.
    """
    from rageval_spec.api.rankings import evaluate_with

    results = evaluate_with(qrels, run, list(dict.fromkeys(measures)) or TREC_EVAL_MEASURES, options)
    if not len(results):
        raise NothingScoredError(f"no query of {run} is in {qrels}")
    return RunScores(results, per_query, options.tie_range, header=not measures)


def _named(names: Mapping[str, float], words: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in names if parse_measure(name).name in words)


@click.command(cls=OutputCommand)
@click.argument("qrels", type=click.Path(path_type=Path))
@click.argument("run_file", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("measures", metavar="[MEASURE]...", nargs=-1)
@click.option("-q", "--per-query", is_flag=True, help="Print the values of each query too.")
@click.option(
    "-c", "--complete", is_flag=True, help="Count queries that are missing from the run as 0 instead of skipping them."
)
@click.option(
    "-l", "--level", "relevance_level", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
    help="The lowest relevance that counts as relevant.",
)  # fmt: skip
@click.option("-J", "--judged-only", is_flag=True, help="Remove unjudged documents from the rankings before scoring.")
@click.option(
    "-M", "--depth", type=click.IntRange(min=1), metavar="N", help="Score only the first N documents of each ranking."
)
@click.option(
    "--ties", type=click.Choice(["trec_eval", "trec_eval_2023", "input", "float64", "ranx", "range"]),
    default="trec_eval", show_default=True,
    help="How to order documents with equal scores. trec_eval: like its tag v9.0.8 (commit d95ca64, 2020), with "
    "scores as float32; trec_eval_2023: like its tag trec_eval-9.0.8 (2023), with scores as float64; range: like "
    "trec_eval, plus the lowest and highest value over all orders.",
)  # fmt: skip
@click.option(
    "--duplicates", type=click.Choice(["error", "first"]), default="error", show_default=True,
    help="What to do if a query lists a document twice: stop with an error, or keep its first row.",
)  # fmt: skip
@shared.form_option
def score(qrels: Path, run_file: Path, measures: Sequence[str], form: str, per_query: bool, **settings: Any) -> int:
    """Score one run as trec_eval does, in trec_eval's layout.

    MEASURES take the names of ir_measures, trec_eval or BEIR. The default is the list that trec_eval prints.

    \b
    rageval-spec score qrels.txt run.txt ndcg@10 map recall@100
    rageval-spec score qrels.tsv run.txt.gz P_5 recip_rank -q
    """
    options = read_options(**settings)
    with ProgressDisplay() as display:
        display.announce(f"score {run_file.name}")
        scores = score_run(qrels, run_file, measures, options, per_query=per_query)
    console.write_form(scores.to_json() if form == "json" else scores.to_text(), form)
    return PASSED
