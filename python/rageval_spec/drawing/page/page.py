"""Writes an evaluation's page: as one file, or, if its data are large, as a folder of the page and its parts.

The first part of the data has the results, the outcome in words, and the columns of the list of questions. The page
of a folder loads the other parts. The numbers in a gate's bound are read so that they can be drawn on an axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import GateOutcome, Interval
from rageval_spec.data.results import list_content
from rageval_spec.drawing.cards import write_show
from rageval_spec.drawing.html_shell import build_shell, dump_json, pack, write_script
from rageval_spec.drawing.page.page_part import ShownPart, choose_part, count_spreads
from rageval_spec.drawing.page.question_data import QuestionData, collect_questions, dump_documents, list_samples
from rageval_spec.drawing.sections import (
    SIGNIFICANCE,
    describe_legend,
    list_frequent_causes,
    show_corrections,
    show_ranks,
    show_stability,
    show_weighted,
)
from rageval_spec.drawing.verdict import describe_headline, share_notes
from rageval_spec.libraries import compile_later
from rageval_spec.plugin.report import RESULTS_FOLDER

LARGEST = 25_000_000
"""The size in bytes from which on a page becomes a folder."""
INDEX = "index.html"
_THREADS = 2
_AHEAD = 8


def write_page(evaluation: Evaluation, digits: int, title: str | None) -> bytes:
    """The page with all parts of its data inside."""
    shown = title or evaluation.name
    return build_shell(shown, list(_pack_parts(evaluation, digits, shown)), has_files=False)


def write_files(
    evaluation: Evaluation, digits: int, title: str | None, largest: int = LARGEST
) -> Iterator[tuple[str, bytes]]:
    """The page as `("", content)`; if its data take more than `largest` bytes, the files of a folder.

    The folder's page, `index.html`, comes last, so that it is never there without its parts.
    """
    shown = title or evaluation.name
    kept: list[tuple[str, str]] = []
    parts = _pack_parts(evaluation, digits, shown)
    size = 0
    for part in parts:
        kept.append(part)
        size += len(part[1])
        if size > largest:
            break
    else:
        yield "", build_shell(shown, kept, has_files=False)
        return
    head, rest = kept[0], kept[1:]
    kept.clear()
    while rest:
        name, packed = rest.pop(0)
        yield f"parts/{name}.js", write_script(name, packed)
    for name, packed in parts:
        yield f"parts/{name}.js", write_script(name, packed)
    yield INDEX, build_shell(shown, [head], has_files=True)


def _pack_parts(evaluation: Evaluation, digits: int, title: str) -> Iterator[tuple[str, str]]:
    """The names and packed contents of all parts, the head first; several are compressed at a time."""
    waiting: list[tuple[str, Future[str]]] = []
    with ThreadPoolExecutor(_THREADS) as threads:
        for name, content in _dump_parts(evaluation, digits, title):
            waiting.append((name, threads.submit(pack, content)))
            if len(waiting) > _AHEAD:
                first, packed = waiting.pop(0)
                yield first, packed.result()
        for name, packed in waiting:
            yield name, packed.result()


def _dump_parts(evaluation: Evaluation, digits: int, title: str) -> Iterator[tuple[str, bytes]]:
    part = choose_part(evaluation)
    shown = evaluation if part is None else part.evaluation
    questions: QuestionData = collect_questions(shown)
    yield "head", dump_head(evaluation, questions, digits, title, part)
    for number, block in enumerate(questions.blocks()):
        yield f"cards-{number}", block
    documents = questions.documents
    del questions  # which needs more memory than the documents' numbers
    for number, texts in enumerate(documents.split(list_samples(shown))):
        yield f"documents-{number}", dump_documents(texts)


def dump_head(
    evaluation: Evaluation, questions: QuestionData, digits: int, title: str, part: ShownPart | None = None
) -> bytes:
    """What the page needs before it draws: everything but the cards and the documents.

    Of an evaluation of which the page shows only a part, also what the values of all questions tell.
    """
    results = list_content(evaluation)
    gates = [describe_gate(evaluation, gate) for gate in evaluation.gates]
    notes = [{"level": note.level, "text": str(note)} for note in share_notes(evaluation)]
    head: dict[str, Any] = {
        "title": title,
        "digits": digits,
        "headline": asdict(describe_headline(evaluation, digits)),
        "results": results,
        "gates": gates,
        "notes": notes,
        "legend": _list_legend(evaluation),
        "significance": SIGNIFICANCE,
        "frequent_causes": [asdict(one.count) for one in list_frequent_causes(evaluation)],
        "questions": questions.describe(evaluation if part is None else part.evaluation),
        "documents": {"count": questions.documents.count, "starts": questions.documents.list_starts()},
    }
    if part is not None:
        head["part"] = {"total": part.total, "told": part.describe(), "command": write_show("QUERY", RESULTS_FOLDER)}
        spreads = count_spreads(evaluation)
        for cell in head["questions"]["cells"]:
            names = evaluation.systems[cell["system"]], evaluation.metrics[cell["metric"]]
            cell["spread"] = spreads.get(names)
    told = "How many queries have their first relevant document at which rank."
    shown = {
        "weighted": show_weighted(evaluation, digits),
        "corrected": show_corrections(evaluation, digits),
        "ranks": (replace(section, remarks=(told,)) for section in show_ranks(evaluation)),
        "stability": show_stability(evaluation, digits),
    }
    for name, sections in shown.items():
        for one in sections:
            heading = {} if name == "corrected" else {"title": one.title}
            head[name] = {**heading, "header": one.header, "rows": one.rows, "remarks": one.remarks}
    return dump_json(head)


def _list_legend(evaluation: Evaluation) -> list[tuple[str, str]]:
    """The marks of all tables. One that has another meaning in another dataset names its datasets."""
    meanings: dict[str, dict[str, list[str]]] = {}
    for dataset in evaluation.datasets:
        for sign, meaning in describe_legend(evaluation, dataset):
            meanings.setdefault(sign, {}).setdefault(meaning, []).append(dataset)
    legend = []
    for sign, of in meanings.items():
        marked = {dataset for datasets in of.values() for dataset in datasets}
        for meaning, datasets in of.items():
            legend.append((sign, meaning if marked.issubset(datasets) else f"{', '.join(datasets)}: {meaning}"))
    return legend


_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(%?)"
_BOUNDS = {
    "min": compile_later(rf"(?:^|, )(?:lower end |upper end |whole interval )?≥ {_NUMBER}"),
    "max": compile_later(rf"(?:^|, )(?:lower end |upper end |whole interval )?≤ {_NUMBER}"),
    "target": compile_later(rf"target {_NUMBER}"),
}


def describe_gate(evaluation: Evaluation, gate: GateOutcome) -> dict[str, Any]:
    """A gate for the page: its number, the interval around it, and where its bounds lie.

    `scale` is "value" if the bounds are on the metric, "change" if they are on the difference from the baseline, and
    None if there is nothing to draw. `point` is what the marker shows: the mean, or the difference.
    """
    found = {kind: rule.search(gate.bound) for kind, rule in _BOUNDS.items()}
    bounds = {kind: float(one[1]) / (100 if one[2] else 1) for kind, one in found.items() if one is not None}
    if bounds:
        cell = evaluation.aggregate(gate.dataset, gate.system, gate.metric, gate.slice)
        point, interval = (None, None) if cell is None else (cell.mean, cell.interval)
        return _describe("value", point, interval, bounds)
    if gate.baseline is None:
        return _describe(None, None, None, {})
    is_lower_better = gate.metric in evaluation.lower_is_better
    limit = gate.max_drop
    side = {} if limit is None else {"max": limit} if is_lower_better else {"min": -limit}
    comparison = evaluation.find_asked(gate)
    if comparison is None:
        return _describe("change", gate.observed, None, side)
    return _describe("change", comparison.difference, comparison.interval, side)


def _describe(
    scale: str | None, point: float | None, interval: Interval | None, bounds: dict[str, float]
) -> dict[str, Any]:
    ends = None if interval is None else [interval.low, interval.high]
    return {"scale": scale, "point": point, "interval": ends, "bounds": bounds}
