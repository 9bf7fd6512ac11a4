"""What `rageval-spec score` prints: the values of one run, in trec_eval's layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.dataclass import dataclass
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
class _RunScores:
    """The values of one run. `header`: whether to show the number of queries first; the others are the options."""

    results: Results
    per_query: bool
    tie_range: bool
    header: bool

    def to_json(self) -> str:
        """`{"measures": {name: value}, "ties": {name: [low, high]}, "queries": {query: {name: value}}}` as JSON."""
        content: dict[str, object] = {"measures": self.results.means}
        if self.tie_range:
            content["ties"] = self.results.tie_range
        if self.per_query:
            content["queries"] = self._list_queries()
        return dump_visible(content)

    def to_text(self) -> str:
        """One line per measure, in trec_eval's layout. The range over all orders of ties adds two columns."""
        counts = _find_named(self.results.means, COUNTS)

        def line(name: str, query: str, *values: float) -> str:
            numbers = "\t".join(f"{value:.0f}" if name in counts else f"{value:6.4f}" for value in values)
            return f"{name:<22}\t{query}\t{numbers}\n"

        lines = []
        if self.per_query:
            missing = set(self.results.missing_queries)  # trec_eval counts them in its means, but does not print them
            shown = {query: values for query, values in self._list_queries().items() if query not in missing}
            lines = [line(name, query, value) for query, values in shown.items() for name, value in values.items()]
        if self.header:
            lines.append(f"{'num_q':<22}\tall\t{len(self.results)}\n")
        ranges = self.results.tie_range if self.tie_range else {}
        return "".join(
            [*lines, *(line(name, "all", mean, *ranges.get(name, ())) for name, mean in self.results.means.items())]
        )

    def _list_queries(self) -> Mapping[str, Mapping[str, float]]:
        hidden = _find_named(self.results.means, LOGARITHMS)
        values = self.results.per_query()
        return {query: {name: row[name] for name in row if name not in hidden} for query, row in values.items()}


def _find_named(names: Mapping[str, float], words: frozenset[str]) -> frozenset[str]:
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
def score(
    qrels: Path, run_file: Path, measures: Sequence[str], form: str, *, per_query: bool, ties: str, complete: bool,
    **settings: Any,
) -> int:  # fmt: skip
    """Score one run as trec_eval does, in trec_eval's layout.

    MEASURES take the names of ir_measures, trec_eval or BEIR. The default is the list that trec_eval prints.

    \b
    rageval-spec score qrels.txt run.txt ndcg@10 map recall@100
    rageval-spec score qrels.tsv run.txt.gz P_5 recip_rank -q
    """
    from rageval_spec.api.rankings import evaluate_with

    shows_range = ties == "range"  # trec_eval's order, plus the range
    order: Any = "trec_eval" if shows_range else ties
    options = RankingOptions(ties=order, tie_range=shows_range, missing="zero" if complete else "skip", **settings)
    with ProgressDisplay() as display:
        display.announce(f"score {run_file.name}")
        results = evaluate_with(qrels, run_file, list(dict.fromkeys(measures)) or TREC_EVAL_MEASURES, options)
    if not len(results):
        raise NothingScoredError(f"no query of {run_file} is in {qrels}")
    scores = _RunScores(results, per_query, shows_range, header=not measures)
    console.write_form(scores.to_json() if form == "json" else scores.to_text(), form)
    return PASSED
