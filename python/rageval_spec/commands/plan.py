"""`rageval-spec plan`: the steps of an evaluation, what is stored, and what the rest would cost.

`plan --power` shows the smallest drop that the questions reveal, and how many questions `max_drop` needs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.dataclass import asdict, dataclass
from rageval_spec.errors import PASSED, UsageError
from rageval_spec.progress import ProgressDisplay
from rageval_spec.wording import count_noun, format_number, format_percent

if TYPE_CHECKING:
    from rageval_spec.commands.results_argument import NamedResults
    from rageval_spec.data.datasets import Design
    from rageval_spec.drawing.view import Block
    from rageval_spec.runner import Options
    from rageval_spec.spec.blocks.gates import GateNode
    from rageval_spec.spec.blocks.spec_node import Spec


@click.command(cls=OutputCommand)
@shared.spec_argument
@shared.selection_options
@shared.sweep_option
@shared.store_options
@shared.answer_options
@shared.shard_option
@click.option(
    "--power", is_flag=True, help="Show instead the smallest drop that the questions can show, for each metric."
)
@click.option(
    "--from", "sources", multiple=True, metavar="RESULTS",
    help="With --power: the results or label whose values tell the spread; twice for that of their differences.",
)  # fmt: skip
@click.option(
    "--sd", type=click.FloatRange(min=0), metavar="NUMBER",
    help="With --power: the standard deviation of the differences, if there are no earlier values.",
)  # fmt: skip
@shared.form_option
def plan(
    spec: Path,
    form: Any,
    shard: str | None,
    *,
    power: bool,
    sources: tuple[str, ...],
    sd: float | None,
    sweep: Sequence[str],
    **chosen: Any,
) -> int:
    """Show the steps of an evaluation, and what they would cost.

    It says which steps are stored, and what calls, tokens and cost the others take. The key of a step is a hash of
    everything its result depends on, so two plans can be compared with diff.

    \b
    rageval-spec plan spec.yaml
    rageval-spec plan spec.yaml --power --from main
    """
    from rageval_spec import runner
    from rageval_spec.pipeline.planning.question_shards import read_shard
    from rageval_spec.plugin.budget import WHOLE
    from rageval_spec.runner import Options
    from rageval_spec.sweep.combinations import Sweep, load_sweep

    options = Options(**shared.read_answer_options(chosen))
    if power:
        console.write(plan_power(spec, options, form, sources, sd))
        return PASSED
    if sources or sd is not None:
        raise UsageError("--from and --sd need --power")
    if shard and sweep:
        raise UsageError("a sweep cannot be sharded; leave out --shard or --sweep")
    with ProgressDisplay() as display:
        display.announce("read the input files")
        loaded = spec if shard else load_sweep(spec, options, sweep)
        specs = [*loaded.specs.values()] if isinstance(loaded, Sweep) else []
        part = WHOLE if shard is None else read_shard(shard)
        planned = runner.plan(specs[0] if isinstance(loaded, Sweep) else loaded, options, part, specs[1:])
    console.complain(planned.warnings)
    head = ""
    if isinstance(loaded, Sweep):
        rounds = loaded.list_rounds(options.limit)[0]
        head = f"{count_noun(len(loaded.specs), 'combination')}, with {' and '.join(map(str, rounds))} questions"
        head += ", if halving leaves none out\n" if len(rounds) > 1 else "\n"
    console.write_form(planned.to_json() if form == "json" else head + planned.render(), form)
    return PASSED


_HEADER = ("dataset", "system", "metric", "compared with", "questions", "sd", "alpha", "smallest drop",
           "max_drop needs")  # fmt: skip
_UNPAIRED = (
    "Rows compared with 'another evaluation' use the spread within one evaluation, as if a second one were unrelated. "
    "Paired values usually spread less. For the real spread, give two evaluations: --from A --from B"
)
_EQUAL = (
    "An sd of 0 does not show the spread: all differences are the same. Give evaluations that "
    "differ, or state a spread with --sd"
)
_DESIGN = (
    "Clusters and weights count: the variance of a mean is {} times that of independent questions (the design effect), "
    "which is part of the sd. Further questions are expected to come in like clusters."
)
_UNKNOWN_DESIGN = (
    "The stated sd does not include the spec's clusters and weights. If it is of single questions, multiply it by the "
    "square root of the design effect, which --from shows."
)


_Cell: TypeAlias = tuple[str, str, str]
"""A dataset, a system and a metric."""


class _Spread(NamedTuple):
    """How much the paired differences of one cell vary: their standard deviation, over so many queries.

    With clusters or weights, `sd` is that of as many independent questions that all count the same and give as wide an
    interval. `effect` is then the design effect: how many times larger the variance of the mean is. `base` is the mean
    of the baseline, of which a `max_drop` can be a share; None if it is not known.
    """

    dataset: str
    system: str
    metric: str
    baseline: str
    queries: int
    sd: float
    base: float | None = None
    effect: float | None = None


@dataclass(frozen=True)
class PowerRow:
    """What the questions can show of one cell.

    `smallest_drop` is None if the questions are too few for any. `max_drop` is an amount; it and
    `needed` are None if no gate has one, or if it is a share of a mean that is not known. `design_effect` is None
    without clusters and weights.
    """

    dataset: str
    system: str
    metric: str
    baseline: str
    queries: int
    sd: float
    alpha: float
    smallest_drop: float | None
    max_drop: float | None
    needed: int | None
    design_effect: float | None = None


def plan_power(
    path: Path, options: Options, form: Literal["text", "json"], sources: Sequence[str], sd: float | None
) -> str | bytes:
    """The table as text or JSON.

    The spread is that of the values of one or two earlier evaluations, by label or results folder (two: that of their
    differences; none: the last results), or the stated standard deviation of the paired differences.
    """
    from rageval_spec.commands.results_argument import open_results
    from rageval_spec.spec import load

    if sources and sd is not None:
        raise UsageError("use --from or --sd, not both")
    if len(sources) > 2:
        raise UsageError("--from takes one or two evaluations")
    spec = load(path, overrides=options.overrides)
    told = "the stated sd" if sd is not None else " and ".join(sources) or "the last results"
    opened = [] if sd is not None else [open_results(name) for name in sources] or [open_results()]
    spreads = [*(_measure(spec, opened) if sd is None else _state(spec, sd, options))]
    if not spreads:
        raise UsageError(f"{told} has no metric of this spec that can be compared; name another with --from")
    rows = [row for spread in spreads for row in _find_rows(spec, spread)]
    if form == "json":
        return _dump(rows)
    from rageval_spec.drawing.view import write_text

    return write_text(_draw(spec, rows, told))


def measure_power(spec: Spec, opened: NamedResults) -> list[PowerRow]:
    """What the questions of an earlier evaluation can show, as `plan_power` tells it."""
    return [row for spread in _measure(spec, [opened]) for row in _find_rows(spec, spread)]


def _measure(spec: Spec, opened: Sequence[NamedResults]) -> Iterator[_Spread]:
    """The spread of each cell, from the values of earlier evaluations: one, or two whose differences count."""
    cells, designs = _list_cells(opened[0], spec), _list_designs(opened[0], spec)
    if len(opened) == 2:
        base = _list_cells(opened[1], spec)
        for cell, values in cells.items():
            yield from _pair(cell, opened[1].name, values, base.get(cell, {}), designs)
        return
    for cell, values in cells.items():
        dataset, system, metric = cell
        named = dict.fromkeys(gate.baseline for gate in spec.gates if gate.metric == metric)
        baselines = [name for name in named if name is not None and name in spec.systems and name != system]
        for baseline in baselines:
            yield from _pair(cell, baseline, values, cells.get((dataset, baseline, metric), {}), designs)
        if not baselines and len(values) > 1:
            sd, mean, effect = _spread_out(values, designs.get(cell[0]))
            yield _Spread(*cell, "another evaluation", len(values), math.sqrt(2) * sd, mean, effect)


def _list_designs(opened: NamedResults, spec: Spec) -> dict[str, Design]:
    """The clusters and weights that the results have, of the datasets for which the spec wants them."""
    known = opened.evaluation.question_designs
    wanted = [name for name in spec.designs if name in opened.evaluation.datasets]
    lacking = next((name for name in wanted if name not in known), None)
    if lacking is not None:
        raise UsageError(
            f"{opened.name} knows no clusters or weights of '{lacking}', which this spec has; run the spec first, or "
            "name results that have them with --from"
        )
    return {name: known[name] for name in wanted}


def _spread_out(values: Mapping[str, float], design: Design | None) -> tuple[float, float, float | None]:
    """The standard deviation of values by query, their mean, and the design effect; see `_Spread`."""
    from rageval_spec.statistics.weighted_clusters import find_spread

    sd, (effective, mean) = find_spread(values)[0], find_spread(values, design)
    if math.isnan(effective):
        raise UsageError("all questions belong to one cluster, so nothing can be shown")
    return effective, mean, None if design is None else (effective / sd) ** 2 if sd else 1.0


def _pair(
    cell: _Cell, baseline: str, values: dict[str, float], base: dict[str, float], designs: Mapping[str, Design]
) -> Iterator[_Spread]:
    shared = [query for query in values if query in base]
    if len(shared) > 1:
        design = designs.get(cell[0])
        sd, _, effect = _spread_out({query: values[query] - base[query] for query in shared}, design)
        _, mean, _ = _spread_out({query: base[query] for query in shared}, design)
        yield _Spread(*cell, baseline, len(shared), sd, mean, effect)


def _list_cells(opened: NamedResults, spec: Spec) -> dict[_Cell, dict[str, float]]:
    """The scored values of each cell by query, for the metrics of the spec that are means."""
    evaluation = opened.evaluation
    metrics = {metric.name for metric in spec.metrics}
    means = {(a.dataset, a.system, a.metric) for a in evaluation.aggregates if a.statistic == "mean"}
    cells: dict[_Cell, dict[str, float]] = {}
    scored = evaluation.values.filter(status="scored")
    for *cell, query, value in scored.select("dataset", "system", "metric", "query_id", "value").iter_rows():
        if cell[2] in metrics and tuple(cell) in means:
            cells.setdefault((cell[0], cell[1], cell[2]), {})[query] = value
    return cells


def _state(spec: Spec, sd: float, options: Options) -> Iterator[_Spread]:
    """The same spread for every metric, with the number of questions that each dataset has."""
    from rageval_spec.pipeline.planning.question_selection import list_ids, queries_to_ask
    from rageval_spec.pipeline.planning.spec_plugins import build_parts

    for name, dataset in build_parts(spec).datasets.items():
        asked = list_ids(queries_to_ask(dataset.foresee(), options.limit).queries)
        for metric in spec.metrics:
            yield _Spread(name, "any", metric.name, "any", len(asked), sd)


def _find_rows(spec: Spec, spread: _Spread) -> Iterator[PowerRow]:
    """A row for each `max_drop` and `alpha` of the gates on a cell; one with the usual alpha if there is no gate."""
    from rageval_spec.data.outcomes import read_drop
    from rageval_spec.statistics.aggregation import ALPHA, compute_smallest_drop, count_queries

    asked: set[tuple[float, float | None]] = set()
    for gate in spec.gates:
        if _concerns(gate, spread, spec):
            drop = None
            if gate.max_drop is not None and not (read_drop(gate.max_drop).is_share and spread.base is None):
                drop = read_drop(gate.max_drop).resolve(spread.base or 0.0)
            asked.add((gate.alpha or ALPHA, drop))
    for alpha, drop in sorted(asked, key=lambda pair: (pair[0], pair[1] or 0)) or [(ALPHA, None)]:
        smallest = compute_smallest_drop(spread.sd, spread.queries, alpha)
        needed = None if drop is None else count_queries(spread.sd, drop, alpha)
        yield PowerRow(*spread[:-2], alpha, smallest, drop, needed, spread.effect)


def _concerns(gate: GateNode, spread: _Spread, spec: Spec) -> bool:
    return (
        gate.metric == spread.metric
        and gate.baseline is not None
        and gate.dataset in (None, spread.dataset)
        and (spread.system == "any" or gate.system in (None, spread.system))
        and (gate.baseline == spread.baseline or spread.baseline not in spec.systems)
    )


def _dump(rows: Sequence[PowerRow]) -> str:
    from rageval_spec.statistics.aggregation import POWER

    listed = [dict(pair for pair in asdict(row).items() if pair != ("design_effect", None)) for row in rows]
    return json.dumps({"version": 1, "power": POWER, "rows": listed}, indent=2, ensure_ascii=False) + "\n"


def _draw(spec: Spec, rows: Sequence[PowerRow], source: str) -> Iterator[Block]:
    from rageval_spec.drawing.view import Heading, Line, tabulate
    from rageval_spec.statistics.aggregation import POWER

    power = format_percent(POWER)
    yield Heading(f"{spec.name}: the smallest drop that can be shown ({power} power, paired test, {source})")
    yield tabulate(_HEADER, map(_list_power_cells, rows), (4, 5, 6, 7))
    if any(row.baseline == "another evaluation" for row in rows):
        yield Line(_UNPAIRED)
    if any(row.sd == 0 for row in rows):
        yield Line(_EQUAL)
    if effects := [row.design_effect for row in rows if row.design_effect is not None]:
        low, high = f"{min(effects):.1f}", f"{max(effects):.1f}"
        yield Line(_DESIGN.format(low if low == high else f"{low} to {high}"))
    elif spec.designs:
        yield Line(_UNKNOWN_DESIGN)


def _list_power_cells(row: PowerRow) -> tuple[str, ...]:
    smallest = "too few questions" if row.smallest_drop is None else format_number(row.smallest_drop)
    needs = "" if row.max_drop is None else "a max_drop above 0"
    if row.needed is not None:
        amount = float(f"{row.max_drop or 0:.4g}")  # that of a share of a mean has many digits
        needs = f"{amount:g}: {count_noun(row.needed, 'question')}"
    counts = (str(row.queries), format_number(row.sd), f"{row.alpha:g}")
    return (row.dataset, row.system, row.metric, row.baseline, *counts, smallest, needs)
