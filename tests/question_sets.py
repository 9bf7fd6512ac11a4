"""Builds sets of questions for tests of audits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from rageval_spec.audit.audit_findings import DatasetContent
from rageval_spec.audit.question_set import AuditedQuestion, AuditedQuestions
from rageval_spec.commands.audit.audited_questions import Subject, audit_subject
from rageval_spec.data.tables import Collection
from rageval_spec.plugin import Dataset
from rageval_spec.progress import ProgressDisplay


def ask(
    *texts: str,
    references: Sequence[Sequence[str] | str | None] = (),
    relevant: Sequence[Mapping[str, int] | None] = (),
    columns: Sequence[Mapping[str, Any]] = (),
    corpus: Mapping[str, str] | None = None,
    about: Mapping[str, Any] | None = None,
    **same: Any,
) -> AuditedQuestions:
    """A set of these questions, with the ids q1, q2 and so on, on the lines 1, 2 and so on of a file.

    The gold answers, the judgements and the other columns of the first questions come in their order.
    """
    questions = []
    for place, text in enumerate(texts):
        given = references[place] if place < len(references) else None
        answers = () if given is None else (given,) if isinstance(given, str) else tuple(given)
        judged = relevant[place] if place < len(relevant) else None
        other = json.dumps(columns[place]) if place < len(columns) else None
        line = f"set.jsonl:{place + 1}"
        questions.append(AuditedQuestion(f"q{place + 1}", text, line, answers, judged, columns=other, **same))
    return wrap(questions, corpus, about)


def wrap(
    questions: Sequence[AuditedQuestion],
    corpus: Mapping[str, str] | None = None,
    about: Mapping[str, Any] | None = None,
) -> AuditedQuestions:
    """A set of these questions, with a corpus if one is given."""
    documents = None
    if corpus is not None:
        rows = [(doc_id, "", text) for doc_id, text in corpus.items()]
        documents = pl.DataFrame(rows, schema=["doc_id", "title", "text"], orient="row")
    collection = Collection(
        "golden",
        load_corpus=None if documents is None else lambda: documents,
        load_about=None if about is None else lambda: about,
    )
    has_references = any(question.references for question in questions)
    return AuditedQuestions(
        "golden", tuple(questions), collection, has_references, any(q.relevant is not None for q in questions)
    )


def audit(dataset: Dataset[Any], questions: AuditedQuestions) -> DatasetContent:
    """The audit of a dataset without results and options."""
    subject = Subject("spec", {questions.name: dataset})
    options: dict[str, Any] = dict.fromkeys(("train", "documents", "metric", "model", "types", "difficulties"))
    with ProgressDisplay() as display:
        opened = {questions.name: questions}
        return audit_subject(Path(), subject, opened, display, results=(), count=200, **options).datasets[0]
