"""What `generate nuggets` and `generate qrels` share: options, a spec with only what they read, rankings, the plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec import signals
from rageval_spec.commands import console, options
from rageval_spec.data import arithmetic
from rageval_spec.dataclass import replace
from rageval_spec.errors import BROKEN, PASSED, UsageError
from rageval_spec.libraries import pl
from rageval_spec.plugin.block_names import names_in
from rageval_spec.store.store import open_store
from rageval_spec.wording import count_noun, list_names

if TYPE_CHECKING:
    from rageval_spec.data.findings import Estimate, Failed
    from rageval_spec.data.tables import Collection
    from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
    from rageval_spec.progress import ProgressDisplay
    from rageval_spec.spec.blocks.spec_node import Spec

cost_options = options.together(
    click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Spend at most this."),
    click.option("--max-calls", type=click.IntRange(1), metavar="N", help="Make at most N calls."),
    click.option("--dry-run", is_flag=True, help="Only show what it would cost."),
    options.store_options,
    click.option("--force", is_flag=True, help="Replace the file if it exists."),
    options.form_option,
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
    spec: Spec, datasets: Mapping[str, Any], systems: Sequence[str], judges: Mapping[str, Any], limits: dict[str, Any]
) -> Spec:
    """The spec with these blocks only, and those that they name. Limits that are None stay the spec's."""
    from rageval_spec.pipeline.planning.spec_selection import find_needed

    chosen = {name: spec.systems[name] for name in systems}
    needed = find_needed((*chosen.values(), *judges.values()), spec)
    every = {**spec.sources, **spec.systems}
    given = {key: value for key, value in limits.items() if value is not None}
    return replace(
        spec, datasets=datasets, systems=chosen, metrics=(), gates=(), reports=(), slices=(),
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


@contextmanager
def open_parts(spec: Spec, display: ProgressDisplay, store: Path | None, *, no_store: bool) -> Iterator[SpecPlugins]:
    """The plugins, with models that are ready to be asked. Replies are kept in `store`, by default that of the spec."""
    from rageval_spec.pipeline.planning.preflight import check_wiring
    from rageval_spec.pipeline.planning.spec_plugins import build_parts, explain_interrupt, prepare_models, stop_calls
    from rageval_spec.runner import STORE

    budget = spec.limits.budget()
    display.describe_spending = budget.describe_progress
    with closing(open_store(None if no_store else store or spec.folder / STORE)) as opened:
        parts = build_parts(spec, display.counting, opened.answers, opened.fingerprint, budget, display.tell)
        _check(parts)
        if parts.systems:
            check_wiring(spec, parts, asks_questions=False)
        keeps = not no_store
        with stop_calls(parts), signals.explained(lambda: explain_interrupt(parts, budget, keeps_replies=keeps)):
            prepare_models(parts, display)
            yield parts


def _check(parts: SpecPlugins) -> None:
    """Let the dataset and its models check themselves."""
    for plugin in (*parts.datasets.values(), *parts.asked_models.values(), *parts.judges.values()):
        if (fault := plugin.check()) is not None:
            raise UsageError(fault.replace("a limit on cost", "--max-cost").replace(
                "write it in US dollars per million tokens: price: {input: 0.15, output: 0.60}",
                "give it in US dollars per million tokens in and out: --price 0.15/0.60",
            ).replace("(both 0 for", "(0/0 for"))  # fmt: skip


def show_plan(
    display: ProgressDisplay, parts: SpecPlugins, estimate: Estimate, counts: Mapping[str, int], form: str,
    *, dry_run: bool, remark: str = "",
) -> bool:  # fmt: skip
    """Show what is to be asked and what it costs; `remark` follows if anything is. True if it was only to be shown."""
    from rageval_spec.pipeline.cost_estimate import ExpectedCalls, add_up

    expected = ExpectedCalls(tuple(add_up(parts, estimate)))
    if dry_run and form == "json":
        console.write(json.dumps({**counts, "to_ask": expected.to_json()}, indent=2, ensure_ascii=False) + "\n")
        return True
    lines = [", ".join(count_noun(count, noun.removesuffix("s")) for noun, count in counts.items())]
    lines += expected.render().splitlines()
    if remark and any(model.calls for model in expected.models):
        lines.append(remark)
    most = next(iter(parts.datasets.values())).context.budget.max_cost
    if most is not None and arithmetic.exceeds(expected.cost or 0, most):
        lines.append(f"this is more than {most:g} USD: it will stop there, and another run continues")
    if dry_run:
        console.write("".join(f"{line}\n" for line in lines))
    else:
        for line in lines:
            display.tell(line)
    return dry_run


def conclude(output: Path, content: bytes, failed: Sequence[Failed], told: str, parts: SpecPlugins) -> int:
    """Write the file, unless a limit stopped the calls or there is no content. Returns the exit code."""
    from rageval_spec.runner import write_report

    if unfinished := next((one.reason for one in failed if one.is_unfinished), None):
        console.tell(f"{console.PROGRAM}: {told}: {unfinished}; run the same command again to continue")
    elif content:
        console.tell(f"wrote {write_report(output, content)}")
    if (budget := next(iter(parts.datasets.values())).context.budget).calls:
        console.tell(budget.describe())
    return BROKEN if failed or not content else PASSED
