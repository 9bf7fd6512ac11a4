"""`rageval-spec generate qrels`: relevance judgements of what the systems of a spec find, graded by a judge.

The default levels are those by which Bing's assessors and UMBRELA grade passages (Upadhyay et al., UMBRELA: the (open-
source reproduction of the) Bing RELevance Assessor, 2024, arXiv:2406.06519), in words of our own. A pair that got no
grade stays unjudged: it never becomes a 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console, options
from rageval_spec.commands.generate import narrowed_spec
from rageval_spec.data.findings import Criterion, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.data.tables import Collection, document_texts
from rageval_spec.errors import PASSED, UsageError
from rageval_spec.libraries import pl
from rageval_spec.progress import ProgressDisplay
from rageval_spec.reading.formats.records import BLANK, NOBODY, PEOPLE, find_judges
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.plugin import Dataset, Judge, Progress

_PAIR = ("query_id", "doc_id")
_MOST_SHOWN = 20
_RELEVANCE = "relevance"
_LEVELS: Mapping[str, str] = {
    "0": "it has nothing to do with the question",
    "1": "it is about the subject of the question, but does not answer it",
    "2": "it answers the question in part, not clearly, or among much else",
    "3": "it is devoted to the question and answers it exactly and in full",
}
_SCALE = (0.0, 3.0)
_INSTRUCTION = (
    "Does the context answer the question? First think of what somebody who asks this wants to know. Then weigh how "
    "well the context serves that, and how far it can be trusted. How well it is written does not count."
)
_BLOCK, _ROUNDING = 500, 1e-9


@click.command("qrels", cls=console.OutputCommand)
@options.spec_argument
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=Path("qrels.txt"),
              show_default=True, metavar="FILE", help="The file for the judgements: TREC qrels, or with the judge's "
              "reasons if its name ends in .jsonl.")  # fmt: skip
@click.option("--judge", metavar="NAME", help="The judge that grades: a block under judges:.  [default: the only one]")
@narrowed_spec.dataset_option
@click.option("--system", "systems", multiple=True, metavar="NAME",
              help="Judge what this system finds; can be repeated.  [default: all systems]")  # fmt: skip
@click.option("--depth", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N",
              help="Judge the first N documents of each query of each system.")  # fmt: skip
@click.option("--also-judged", is_flag=True, help="Ask about pairs that are judged already, too, and write the grades "
              "of the judge.")  # fmt: skip
@narrowed_spec.cost_options
def generate_qrels(
    spec: Path, output: Path, form: str, *, overrides: tuple[str, ...], judge: str | None, dataset: str | None,
    systems: tuple[str, ...], depth: int, also_judged: bool, dry_run: bool, store: Path | None,
    no_store: bool, force: bool, **limits: Any,
) -> int:  # fmt: skip
    """Judge how relevant the documents are that systems find.

    The first documents of all systems are pooled, and a judge grades each pair of a query and a document, by default
    from 0 to 3. Pairs that the dataset's own qrels judge are kept. The file's second column says who judged: the judge,
    or people. A pair without a grade stays unjudged and is listed; the exit code is then 3. The cost is shown before
    anything is asked, and every reply is stored, so a run that was stopped continues where it was.

    \b
    rageval-spec generate qrels spec.yaml --judge relevance --dry-run
    rageval-spec generate qrels spec.yaml --depth 20 --judge relevance -o qrels.txt --max-cost 5
    rageval-spec generate qrels spec.yaml --also-judged -o machine.jsonl
    """
    from rageval_spec.judges.shared.composed_judge import list_leaves
    from rageval_spec.pipeline.planning.preflight import find_relatives
    from rageval_spec.spec import load

    whole = load(spec, overrides=overrides)
    named = narrowed_spec.choose(whole, "datasets", dataset, "--dataset")
    name = narrowed_spec.choose(whole, "judges", judge, "--judge")
    pooled = [narrowed_spec.choose(whole, "systems", one, "--system") for one in systems] or [*whole.systems]
    narrowed = narrowed_spec.narrow(whole, {named: whole.datasets[named]}, pooled, {name: whole.judges[name]}, limits)
    with ProgressDisplay() as display, narrowed_spec.open_parts(narrowed, display, store, no_store=no_store) as parts:
        grader, source = parts.judges[name], parts.datasets[named]
        criterion = _make_criterion(grader, [*list_leaves(grader)])
        _check_output(output, name, source, replaces=force or dry_run)
        display.announce("rank the documents")
        collection = source.open()
        ranked = narrowed_spec.rank_documents(narrowed, parts, collection, depth)
        nameless = [one for one, table in ranked.items() if table.height and not table["doc_id"].count()]
        warnings = [f"the contexts of '{one}' have no ids, so it adds nothing to the pool" for one in nameless]
        known = _read_known(collection, source)
        if not also_judged:
            warnings += _compare_scales(known, criterion)
        for warning in (*warnings, *find_relatives(parts, grader)):
            display.tell(f"! {warning}")
        rows = _make_pool(collection, [*ranked.values()], known, also_judged=also_judged).to_dicts()
        if output.suffix != ".jsonl":
            _check_ids(output, rows)
        asked = [row for row in rows if row["relevance"] is None]
        samples = [Sample(row["query_id"], row["question"], contexts=(row["text"],), context_ids=(row["doc_id"],))
                   for row in asked if (row["text"] or "").strip()]  # fmt: skip
        counts = {"questions": len({row["query_id"] for row in asked}), "pairs": len(asked)}
        estimate = grader.estimate(criterion, samples)
        if narrowed_spec.show_plan(display, parts, estimate, counts, form, dry_run=dry_run):
            return PASSED
        display.announce("judge the documents")
        found = _grade(grader, criterion, samples, display.counting(name, "pairs"))
    graded = {(one.query_id, one.context_ids): grade for one, grade in zip(samples, found, strict=True)}
    failed = list[Failed]()
    for row in asked:
        grade = graded.get((row["query_id"], (row["doc_id"],)), Failed("there is no text of this document"))
        if isinstance(grade, Failed):
            failed.append(grade)
            row["unjudged"] = grade.reason
        elif grade.score is not None:  # as it always is
            row |= {"relevance": int(grade.score), "judged_by": name, "reason": grade.reason}
    console.write(_summarize(rows, form))
    told = f"{len(asked) - len(failed)} of {count_noun(len(asked), 'pair')} are judged"
    content = b"" if failed and len(failed) == len(asked) else _dump(output, rows)
    return narrowed_spec.conclude(output, content, failed, told, parts)


def _make_criterion(judge: Judge[Any], graders: Sequence[Judge[Any]]) -> Criterion:
    """What to ask a judge; `graders` are those that give its grades: itself, or the judges that it asks in the end.

    The scale is from the judge's own question, guide or options, else 0 to 3.

    Raises:
        UsageError: it gives verdicts only, or grades on several scales; the message says what to write.
    """
    brought = list[tuple[tuple[float, float], Mapping[str, str]]]()
    for one in graders:
        scale, guide = one.values.get(_RELEVANCE) or one.scale, getattr(one.node, "guide", {})
        if scale is None and guide:
            numbers = [float(level) for level in guide if level.isdecimal()] or [0.0]
            scale = min(numbers), max(numbers)
        elif scale is None and one.levels is not None:
            scale = 0.0, one.levels - 1.0
        low, high = scale or _SCALE
        if "grade" not in one.abilities or high - low < 2 or low % 1 or high % 1:
            raise UsageError(f"the judge '{one.context.name}' (use: {one.node.use}) does not grade in three or more "
                             "levels; declare one that does: judges: {relevance: {use: grade, model: NAME}}, with "
                             'a guide if the levels are your own: guide: {"0": ..., "4": ...}')  # fmt: skip
        brought += [] if scale is None or ((low, high), guide) in brought else [((low, high), guide)]
    if len(brought) > 1:
        raise UsageError(f"the judges that '{judge.context.name}' asks grade differently; give them one guide or scale")
    scale, guide = brought[0] if brought else (_SCALE, _LEVELS)
    guide = guide or (_LEVELS if scale == _SCALE else {})
    return Criterion(_RELEVANCE, "grade", _INSTRUCTION, "contexts", "question", ("question", "contexts"), scale, guide)


def _grade(
    judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample], progress: Progress
) -> list[Finding | Failed]:
    """The grade of each sample's contexts as a whole number, or why there is none, in the order of the samples.

    An expected grade, as of `use: grade` with token probabilities, is rounded to the nearest whole one, halves up.
    """
    found = list[Finding | Failed]()
    judge.expect([criterion])
    while len(found) < len(samples):  # in blocks, so that the requests of all samples are never in memory at once
        findings = judge.assess(criterion, samples[len(found) : len(found) + _BLOCK]).findings
        found += [_round(criterion, one) for one in findings]
        progress(len(found), len(samples), "pairs")
    return found


def _round(criterion: Criterion, found: Finding | Failed) -> Finding | Failed:
    if isinstance(found, Failed) or found.score is None:
        return Failed(found.reason or "the judge found nothing to grade") if isinstance(found, Finding) else found
    low, high = criterion.scale or _SCALE
    if not low - _ROUNDING <= found.score <= high + _ROUNDING:
        return Failed(f"the judge's grade {found.score:.10g} is not from {low:g} to {high:g}")
    return Finding(float((found.score + 0.5) // 1), reason=found.reason)


def _make_pool(
    collection: Collection, ranked: Sequence[pl.DataFrame], known: pl.DataFrame, *, also_judged: bool
) -> pl.DataFrame:
    """The pairs that systems found or that are judged: `query_id, doc_id, question, text, relevance, judged_by`.

    They are in the order of the queries and ranks. `relevance` is null where the judge is to be asked.
    """
    queries = collection.require("queries", "generate qrels").unique("query_id", keep="first", maintain_order=True)
    queries = queries.select("query_id", question="text").with_row_index("place")
    found = pl.concat(ranked).filter(pl.col("doc_id").is_not_null()).join(queries, on="query_id", how="semi")
    if not found.height:
        raise UsageError("no system finds a document for any query; check the ids of the queries")
    found = found.group_by(_PAIR, maintain_order=True).agg(pl.min("rank"), pl.col("text").drop_nulls().first())
    pool = found.join(known, on=_PAIR, how="full", coalesce=True).join(queries, on="query_id", how="left")
    if also_judged:
        pool = pool.with_columns(pl.when(pl.col("question").is_null()).then(pl.col("relevance", "judged_by")))
    asked = pool.filter(pl.col("relevance").is_null())
    if collection.documents is not None or asked["text"].null_count():
        documents = collection.find_documents(asked["doc_id"], "generate qrels")
        own = documents.select("doc_id", own=document_texts(documents))
        pool = pool.join(own, on="doc_id", how="left").with_columns(text=pl.coalesce("own", "text"))
    return pool.sort("place", "query_id", "rank", "doc_id", nulls_last=True)


def _read_known(collection: Collection, dataset: Dataset[Any]) -> pl.DataFrame:
    """The dataset's own judgements: `query_id, doc_id, relevance, judged_by`.

    Their file may be one that this command wrote: a judge in its second column stays named, all else is of people.
    """
    machines: dict[Any, str] = {}
    for file in (one for one in dataset.inputs() if one.key == ("qrels",)):
        machines |= find_judges(file.path)
    empty = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    known = pl.DataFrame(schema=empty) if collection.qrels is None else collection.qrels.select([*empty])
    names = [machines.get(pair, PEOPLE) for pair in known.select(_PAIR).iter_rows()]
    return known.with_columns(judged_by=pl.Series(names, dtype=pl.String))


def _compare_scales(known: pl.DataFrame, criterion: Criterion) -> list[str]:
    """A warning if people's grades are kept that cannot be of the judge's scale: above it, or only yes or no."""
    _, high = criterion.scale or _SCALE
    most = known.filter(judged_by=PEOPLE).select(pl.max("relevance")).item()
    if not most or 1 < most <= high:
        return []
    scales = f"people's grades go up to {most}, and the judge's to {high:g}: metrics such as ndcg would mix two scales"
    return [f"{scales}; give the judge people's levels in its guide, or let it grade all pairs with --also-judged"]


def _check_output(output: Path, judge: str, dataset: Dataset[Any], *, replaces: bool) -> None:
    """Raise `UsageError` if the file cannot have that name, is what the dataset reads, or is not to be replaced."""
    is_people = judge == PEOPLE or NOBODY.fullmatch(judge) is not None
    if is_people or (output.suffix != ".jsonl" and BLANK.search(judge)):
        why = "means that people judged" if is_people else "has a space, which TREC qrels cannot hold"
        raise UsageError(f"--judge '{judge}': the name {why}; give the judge another name")
    if any(file.path.resolve() == output.resolve() for file in dataset.inputs()):
        raise UsageError(f"-o {output}: the dataset reads this file; name another one")
    if output.exists() and not replaces:
        raise UsageError(f"{output} exists; name another file, or replace it with --force")


def _check_ids(output: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    for column, one in ((column, row[column]) for row in rows for column in _PAIR):
        if not one or BLANK.search(one):
            raise UsageError(f"-o {output}: TREC qrels cannot hold the {column} {one!r}, which has white space or is "
                             f"empty; write JSON Lines: -o {output.with_suffix('.jsonl')}")  # fmt: skip


def _dump(output: Path, rows: Sequence[Mapping[str, Any]]) -> bytes:
    keys, whole = (*_PAIR, "relevance", "judged_by", "reason"), (row for row in rows if row["relevance"] is not None)
    judged = [{key: row[key] for key in keys if row.get(key) is not None} for row in whole]
    if output.suffix == ".jsonl":
        lines = [json.dumps(row, ensure_ascii=False) for row in judged]
    else:
        lines = ["{query_id} {judged_by} {doc_id} {relevance}".format_map(row) for row in judged]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def _summarize(rows: Sequence[Mapping[str, Any]], form: str) -> str:
    """Who gave how many of each grade, and the pairs without a grade, of which text shows the first."""
    judged: dict[str, dict[int, int]] = {}
    for who, grade in sorted((row["judged_by"], row["relevance"]) for row in rows if row["relevance"] is not None):
        judged.setdefault(who, {}).setdefault(grade, 0)
        judged[who][grade] += 1
    holes = [{key: row[key] for key in (*_PAIR, "unjudged")} for row in rows if "unjudged" in row]
    if form == "json":
        return json.dumps({"judged": judged, "unjudged": holes}, indent=2, ensure_ascii=False) + "\n"
    lines = [
        f"judged by {who}: " + ", ".join(f"{count:,} with {grade}" for grade, count in grades.items())
        for who, grades in judged.items()
    ]
    lines += ["! unjudged: {query_id} {doc_id}: {unjudged}".format_map(one) for one in holes[:_MOST_SHOWN]]
    if len(holes) > _MOST_SHOWN:
        lines.append(f"! and {len(holes) - _MOST_SHOWN:,} more; --format json lists all")
    return "".join(f"{line}\n" for line in lines)
