"""The first part of a page's data: the results, the outcome in words, and the columns of the list of questions."""

from __future__ import annotations

import dataclasses
from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.results import Results
from rageval_spec.reports.shared import weighted
from rageval_spec.reports.shared.corrected import HEADER, explain_corrections, list_corrected
from rageval_spec.reports.shared.legend import SIGNIFICANCE, describe_legend
from rageval_spec.reports.shared.notes import share_notes
from rageval_spec.reports.shared.page.bounds import describe_gate
from rageval_spec.reports.shared.page.packing import dump_json
from rageval_spec.reports.shared.page.questions import Questions
from rageval_spec.reports.shared.slice_causes import list_frequent_causes
from rageval_spec.reports.shared.verdict import describe_headline


def dump_head(evaluation: Evaluation, questions: Questions, digits: int, title: str) -> bytes:
    """What the page needs before it draws: everything but the cards and the documents."""
    results = Results.of(evaluation).content()
    gates = [describe_gate(evaluation, gate) for gate in evaluation.gates]
    notes = [{"level": note.level, "text": str(note)} for note in share_notes(evaluation)]
    head: dict[str, Any] = {
        "title": title,
        "digits": digits,
        "headline": dataclasses.asdict(describe_headline(evaluation, digits)),
        "results": results,
        "gates": gates,
        "notes": notes,
        "legend": _list_legend(evaluation),
        "significance": SIGNIFICANCE,
        "frequent_causes": [dataclasses.asdict(one.count) for one in list_frequent_causes(evaluation)],
        "questions": questions.describe(evaluation),
        "documents": {"count": questions.documents.count, "starts": questions.documents.list_starts()},
    }
    if rows := weighted.list_weighted(evaluation, digits):
        remarks = [*weighted.explain_weights(evaluation)]
        head["weighted"] = {"title": weighted.TITLE, "header": weighted.HEADER, "rows": rows, "remarks": remarks}
    if rows := list_corrected(evaluation, digits):
        head["corrected"] = {"header": HEADER, "rows": rows, "remarks": [*explain_corrections(evaluation)]}
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
