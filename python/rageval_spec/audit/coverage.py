"""Checks for questions that nothing can score: without text, gold answer or relevant document."""

from __future__ import annotations

from collections.abc import Iterator

from rageval_spec.audit.finding import Check, Finding, Row, Severity
from rageval_spec.audit.question_set import QuestionSet

_MOST_NAMED = 3


def check_questions(questions: QuestionSet) -> Check:
    """The check `questions`: empty questions, and judgements of questions that are not there."""
    return Check("questions", "Questions without text", tuple(_find_without_text(questions)))


def _find_without_text(questions: QuestionSet) -> Iterator[Finding]:
    if not any(question.text for question in questions.questions):
        return
    for question in questions.questions:
        if not question.text.strip() and question.query_id not in questions.lost:
            advice = "write the question, or remove the row"
            yield Finding("empty_question", "error", "the question is empty", advice, (question.row,), removes=True)
    for query_id in questions.lost:
        message = f"query {query_id} has judgements, but no question has this id"
        advice = "add the question, or remove its judgements; it counts as failed until then"
        yield Finding("unknown_query", "error", message, advice, (Row(query_id),))


def check_references(questions: QuestionSet) -> Check:
    """The check `references`: questions without a gold answer, in a dataset that has some.

    A question that its dataset calls unanswerable needs none.
    """
    title = "Questions without a reference"
    if not questions.has_references:
        skipped = "the dataset has no references; metrics that compare answers with them have nothing to compare with"
        return Check("references", title, skipped=skipped)
    lacking = [one for one in questions.questions if not one.references and one.answerable is not False]
    findings = [
        Finding(
            "no_reference",
            "warning",
            "no reference" + ("" if one.relevant_ids else ", and no relevant document either"),
            "write the gold answer; if the documents have none, set 'answerable' to false",
            (one.row,),
        )
        for one in lacking
    ]
    return Check("references", title, tuple(findings))


def check_judgements(questions: QuestionSet) -> Check:
    """The check `judgements`: questions without a relevant document, and relevant ones that the corpus lacks."""
    title = "Questions without a relevant document"
    if not questions.has_judgements:
        skipped = "the dataset has no relevance judgements, so retrieval cannot be scored"
        return Check("judgements", title, skipped=skipped)
    known = _list_documents(questions)
    findings = [*_find_unjudged(questions), *(() if known is None else _find_absent(questions, known))]
    remark = "" if known is not None else "The dataset has no corpus, so nobody knows whether judged documents exist."
    return Check("judgements", title, tuple(findings), remark=remark)


def _list_documents(questions: QuestionSet) -> set[str] | None:
    corpus = questions.collection.corpus
    return None if corpus is None else set(corpus["doc_id"].to_list())


def _find_unjudged(questions: QuestionSet) -> Iterator[Finding]:
    for question in questions.questions:
        if question.relevant_ids or question.answerable is False:
            continue
        if question.relevant is None:
            message, advice = "no document is judged", "judge documents, or set 'answerable' to false if there are none"
        else:
            message = "no judged document is relevant"
            advice = "judge more documents, or set 'answerable' to false; rank metrics cannot score it"
        yield Finding("no_relevant", "warning", message, advice, (question.row,))


def _find_absent(questions: QuestionSet, known: set[str]) -> Iterator[Finding]:
    for question in questions.questions:
        relevant = question.relevant_ids
        absent = sorted(relevant - known)
        if not absent:
            continue
        every = len(absent) == len(relevant)
        named = ", ".join(f"'{doc_id}'" for doc_id in absent[:_MOST_NAMED])
        more = f" and {len(absent) - _MOST_NAMED:,} more" if len(absent) > _MOST_NAMED else ""
        what = "no relevant document is in the corpus" if every else "relevant documents are not in the corpus"
        message = f"{what}: {named}{more}"
        advice = "no system can find them; judge the documents that the corpus has, or add these"
        details = {"absent": absent, "relevant": len(relevant)}
        severity: Severity = "error" if every else "warning"
        yield Finding("absent_document", severity, message, advice, (question.row,), details=details)
