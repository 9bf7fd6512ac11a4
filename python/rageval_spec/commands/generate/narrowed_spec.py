"""What `generate nuggets` and `generate qrels` share: options, a spec with only what they read, rankings, the plan."""

from __future__ import annotations

import json
from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.data import arithmetic
from rageval_spec.dataclass import replace
from rageval_spec.errors import BROKEN, PASSED, UsageError
from rageval_spec.libraries import pl
from rageval_spec.plugin.block_names import names_in
from rageval_spec.wording import list_names

if TYPE_CHECKING:
    from rageval_spec.data.findings import Estimate, Failed
    from rageval_spec.data.tables import Collection
    from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
    from rageval_spec.plugin.budget import Budget
    from rageval_spec.progress import ProgressDisplay
    from rageval_spec.spec.blocks.spec_node import Spec

cost_options = shared.together(
    click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Spend at most this."),
    click.option("--max-calls", type=click.IntRange(1), metavar="N", help="Make at most N calls."),
    click.option("--dry-run", is_flag=True, help="Only show what it would cost."),
    shared.store_options,
    click.option("--force", is_flag=True, help="Replace the file if it exists."),
    shared.form_option,
)  # fmt: skip
dataset_option = click.option(
    "--dataset", metavar="NAME", help="The dataset with the questions.  [default: the only one]"
)


def choose(spec: Spec, section: str, name: str | None, option: str) -> str:
    """The name of a block, by default the only one of its section. Raises `UsageError` if that names none."""
    known: list[str] = [*getattr(spec, section)]
    if section == "models":
        known = [one for one in known if spec.models[one].use == "chat"]
    if name is None and len(known) == 1:
        return known[0]
    has = f"the spec has {list_names(known)}" if known else f"the spec has no {section.removesuffix('s')} for it"
    if name is None:
        raise UsageError(f"{option} is missing; {has}")
    if name not in known:
        raise UsageError(f"{option} {name}: {has}")
    return name


def narrow(
    spec: Spec, dataset: str, systems: AnyCollection[str], judges: Mapping[str, Any], limits: Mapping[str, Any]
) -> Spec:
    """The spec with one dataset, these systems and judges, and what they name. Limits that are None stay the spec's."""
    from rageval_spec.pipeline.planning.spec_selection import find_needed

    chosen = {name: spec.systems[name] for name in systems}
    needed = find_needed((*chosen.values(), *judges.values()), spec)
    every = {**spec.sources, **spec.systems}
    given = {key: value for key, value in limits.items() if value is not None}
    return replace(
        spec, datasets={dataset: spec.datasets[dataset]}, systems=chosen, metrics=(), gates=(), reports=(), slices=(),
        sources={name: one for name, one in every.items() if name in needed["systems"] and name not in chosen},
        judges={**{name: one for name, one in spec.judges.items() if name in needed["judges"]}, **judges},
        labels={}, limits=spec.limits.model_copy(update=given),
    )  # fmt: skip


def rank_documents(spec: Spec, parts: SpecPlugins, collection: Collection, depth: int) -> dict[str, pl.DataFrame]:
    """The first documents that each system has for each query: `query_id, rank, doc_id, text`, ranks from 1.

    `text` is that of a context in a recorded answer, else null, and `doc_id` is null for a context without an id. Runs
    are made anew; vectors and scores of models come from the store. Raises `UsageError` for a system that would be
    asked for its answers.
    """
    from rageval_spec.pipeline.values.ranking_values import drops_self, retrieve

    schema = {"query_id": pl.String, "rank": pl.Int64, "doc_id": pl.String, "text": pl.String}
    runs, ranked = dict[str, pl.DataFrame](), dict[str, pl.DataFrame]()
    for name in chain(*parts.levels()):
        system = parts.system(name)
        if not system.answers_on(collection.name):
            sources = {one: runs[one] for one in names_in(system.node, "systems") if one in runs}
            run = runs[name] = retrieve(system, collection, sources).run
            if drops_self(spec.ranking, collection, run):
                run = run.filter(pl.col("query_id") != pl.col("doc_id"))
            first = run.group_by("query_id", maintain_order=True).head(depth)
            places = pl.int_range(1, pl.len() + 1).over("query_id")
            ranked[name] = first.select("query_id", "doc_id", rank=places, text=pl.lit(None, dtype=pl.String))
            continue
        if system.can_be_asked:
            raise UsageError(f"--system {name} is asked anew each time; name one with recorded answers, or one that "
                             "retrieves")  # fmt: skip
        answers = system.answer(collection).table.select("query_id", "context_ids", "contexts")
        rows = [
            (query_id, rank, *context)
            for query_id, ids, texts in answers.iter_rows()
            for rank, context in enumerate(zip_longest(ids or (), texts or ()), 1)
            if rank <= depth
        ]
        ranked[name] = pl.DataFrame(rows, schema, orient="row")
    return {name: one.select([*schema]) for name, one in ranked.items() if name in parts.systems}


def show_plan(
    display: ProgressDisplay, parts: SpecPlugins, estimate: Estimate, counts: Mapping[str, int], told: str, form: str,
    *, dry_run: bool, budget: Budget,
) -> bool:  # fmt: skip
    """Show what is to be asked and what it costs; `counts` go into JSON. True if nothing is to be asked now."""
    from rageval_spec.pipeline.cost_estimate import ExpectedCalls, add_up

    expected = ExpectedCalls(tuple(add_up(parts, estimate)))
    if dry_run and form == "json":
        console.write(json.dumps({**counts, "to_ask": expected.to_json()}, indent=2) + "\n")
        return True
    lines = [told, *expected.render().splitlines()]
    if budget.max_cost is not None and arithmetic.exceeds(expected.cost or 0, budget.max_cost):
        lines.append(f"this is more than {budget.max_cost:g} USD: it will stop there, and another run continues")
    if dry_run:
        console.write("".join(f"{line}\n" for line in lines))
    else:
        for line in lines:
            display.tell(line)
    return dry_run


def conclude(output: Path, content: bytes, failed: Iterable[Failed], told: str, budget: Budget) -> int:
    """Write the file, unless a limit stopped the calls or there is no content. Returns the exit code."""
    from rageval_spec.runner import write_report

    missing = [*failed]
    if unfinished := next((one.reason for one in missing if one.is_unfinished), None):
        console.tell(f"{console.PROGRAM}: {told}: {unfinished}; run the same command again to continue")
    elif content:
        console.tell(f"wrote {write_report(output, content)}")
    if budget.calls:
        console.tell(budget.describe())
    return BROKEN if missing or not content else PASSED
