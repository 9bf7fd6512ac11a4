"""`rageval-spec generate nuggets`: the facts that good answers have, from the passages that were judged relevant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rageval_spec.commands import console, options
from rageval_spec.commands.generate import narrowed_spec
from rageval_spec.data.evidence.nuggets import NUGGETS, NuggetBank
from rageval_spec.data.findings import Failed
from rageval_spec.dataclass import replace
from rageval_spec.errors import PASSED, UsageError
from rageval_spec.libraries import pl
from rageval_spec.progress import ProgressDisplay
from rageval_spec.wording import count_noun, list_some

if TYPE_CHECKING:
    from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
    from rageval_spec.spec.blocks.spec_node import Spec

_JUDGE = "nuggets"


@click.command("nuggets", cls=console.OutputCommand)
@options.spec_argument
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=Path("nuggets.jsonl"),
              show_default=True, metavar="FILE", help="The file for the nuggets.")  # fmt: skip
@click.option("--model", metavar="NAME", help="The chat model: a block under models:.  [default: the only one]")
@narrowed_spec.dataset_option
@click.option("--relevance", type=int, default=1, show_default=True, metavar="N",
              help="Use the documents whose judged relevance is at least N.")  # fmt: skip
@click.option("--system", metavar="NAME", help="Use the first documents of this system instead of judged ones.")
@click.option("--depth", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N",
              help="With --system: how many of them.")  # fmt: skip
@click.option("--as", "bank_form", type=click.Choice(["nuggetizer", "autojudge"]), default="nuggetizer",
              show_default=True, help="The form of the file.")  # fmt: skip
@narrowed_spec.cost_options
def generate_nuggets(
    spec: Path, output: Path, form: str, bank_form: Any, *, overrides: tuple[str, ...], model: str | None,
    dataset: str | None, relevance: int, system: str | None, depth: int, dry_run: bool, store: Path | None,
    no_store: bool, force: bool, **limits: Any,
) -> int:  # fmt: skip
    """Make nuggets, the facts that a good answer has, from relevant passages.

    A chat model reads the passages of each question, ten at a time, and brings a list of at most 30 facts up to date.
    Then it says which of them are vital. The cost is shown before anything is asked, and every reply is stored, so a
    run that was stopped continues where it was. The exit code is 3 if the nuggets of any question are missing.

    \b
    rageval-spec generate nuggets spec.yaml --dry-run
    rageval-spec generate nuggets spec.yaml -o nuggets.jsonl --relevance 2 --max-cost 5
    rageval-spec generate nuggets spec.yaml --system bm25 --depth 20
    """
    from rageval_spec.commands.generate.output import check_output
    from rageval_spec.generation import nugget_making
    from rageval_spec.generation.model_requests import Steps
    from rageval_spec.judges.assignment import AssignmentNode
    from rageval_spec.reading.nugget_banks import write_banks
    from rageval_spec.spec import load

    check_output(output, force=force, dry_run=dry_run)
    whole = load(spec, overrides=overrides, check_files=False)
    named = narrowed_spec.choose(whole, "datasets", dataset, "--dataset")
    name = narrowed_spec.choose(whole, "models", model, "--model")
    systems = [] if system is None else [narrowed_spec.choose(whole, "systems", system, "--system")]
    judge = AssignmentNode(use="assignment", model=name)
    asked = whole.datasets[named]
    if NUGGETS in type(asked).model_fields:
        asked = asked.model_copy(update={NUGGETS: None})  # the file is made now
    narrowed = narrowed_spec.narrow(whole, {named: asked}, systems, {_JUDGE: judge}, limits)
    with ProgressDisplay() as display, narrowed_spec.open_parts(narrowed, display, store, no_store=no_store) as parts:
        writer: Any = parts.models[name]
        display.announce("read the passages")
        found = _find_topics(narrowed, parts, relevance, depth)
        context = replace(writer.context, progress=display.counting("nuggets", "steps"))
        estimate = nugget_making.foresee_banks(writer, found.topics, context)
        counts = {"questions": len(found.topics), "passages": sum(len(topic.passages) for topic in found.topics)}
        if narrowed_spec.show_plan(display, parts, estimate, counts, form, dry_run=dry_run):
            return PASSED
        display.announce("make the nuggets")
        made = nugget_making.make_banks(writer, found.topics, context, Steps(context.progress))
    banks = [one for one in made if isinstance(one, NuggetBank)]
    failed = {topic.query_id: one for topic, one in zip(found.topics, made, strict=True) if isinstance(one, Failed)}
    console.write(_summarize(banks, failed, found.without, form))
    told = f"{len(banks)} of {count_noun(len(made), 'question')} have nuggets"
    return narrowed_spec.conclude(output, write_banks(banks, bank_form), [*failed.values()], told, parts)


def _summarize(banks: Sequence[NuggetBank], failed: Mapping[str, Failed], without: Sequence[str], form: str) -> str:
    """What came out: the questions with nuggets, those without relevant passages, and those that failed."""
    nuggets = [nugget for bank in banks for nugget in bank.nuggets]
    vital = sum(nugget.importance == "vital" for nugget in nuggets)
    if form == "json":
        reasons = {query_id: one.reason for query_id, one in failed.items()}
        counts = {"questions": len(banks), "nuggets": len(nuggets), "vital": vital}
        return json.dumps({**counts, "without_passages": [*without], "failed": reasons}, indent=2) + "\n"
    lines = [f"{count_noun(len(nuggets), 'nugget')} of {count_noun(len(banks), 'question')}, {vital:,} vital"]
    if without:
        lines.append(f"! {count_noun(len(without), 'question')} without a relevant passage: {list_some(without, 5)}")
    lines += [f"! {query_id}: {one.reason}" for query_id, one in failed.items()]
    return "".join(f"{line}\n" for line in lines)


class _Found(NamedTuple):
    """The questions with their passages, and the ids of those without any."""

    topics: Sequence[Any]
    without: Sequence[str]


def _find_topics(spec: Spec, parts: SpecPlugins, relevance: int, depth: int) -> _Found:
    """Each question with its passages: those judged relevant, or the first of a system, in the order of their ranks."""
    from rageval_spec.data.tables import document_texts
    from rageval_spec.generation.nugget_making import Topic

    collection = next(iter(parts.datasets.values())).open()
    queries = collection.require("queries", "generate nuggets")
    if parts.systems:
        (ranked,) = narrowed_spec.rank_documents(spec, parts, collection, depth).values()
    elif collection.qrels is None:
        raise UsageError(
            f"{collection.why_no_qrels or 'the dataset has no judgements'}; or name a system with --system"
        )
    else:
        judged = collection.qrels.filter(pl.col("relevance") >= relevance)
        ranked = judged.sort("relevance", "doc_id", descending=[True, False])
    if "text" not in ranked.columns or ranked["text"].null_count():
        documents = collection.find_documents(ranked["doc_id"], "generate nuggets")
        texts = documents.select("doc_id", text=document_texts(documents))
        ranked = ranked.select("query_id", "doc_id").join(texts, on="doc_id", how="inner", maintain_order="left")
    filled = ranked.filter(pl.col("text").str.strip_chars() != "")
    grouped = filled.group_by("query_id", maintain_order=True).agg("text", "doc_id")
    passages = {one: [*map(tuple, lists)] for one, *lists in grouped.iter_rows()}
    asked = [*queries.select("query_id", "text").unique("query_id", keep="first", maintain_order=True).iter_rows()]
    topics = tuple(Topic(one, text, *passages[one]) for one, text in asked if one in passages)
    if not topics:
        raise UsageError("no question has a relevant passage with a text; lower --relevance, or check the ids")
    return _Found(topics, tuple(one for one, _ in asked if one not in passages))
