"""Checks for questions that nothing can score, and for questions older than the documents that answer them.

Nothing can score a question without text, gold answer or relevant document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.audit.audit_findings import (
    AuditedRow,
    AuditFinding,
    Found,
    NotCheckedError,
    Severity,
    check,
    make_finding,
)
from rageval_spec.audit.question_set import (
    AuditedQuestion,
    AuditedQuestions,
    drop_fillers,
    is_yes_or_no,
    shorten,
    split_compared_words,
)
from rageval_spec.data.evidence.passages import DEFAULT_SHARE, Coverage, PassageRelevance
from rageval_spec.errors import DataError
from rageval_spec.judging.quantities import Sources, find_quantities
from rageval_spec.judging.refusals import find_bare_refusal
from rageval_spec.libraries import compile_later, pl
from rageval_spec.reading.column_names import spell_alike
from rageval_spec.reading.rows import read_rows

if TYPE_CHECKING:
    from rageval_spec.generation.documents import DocumentSet
    from rageval_spec.plugin import Dataset


_MOST_NAMED = 3


@check("questions", "Questions without text")
def check_questions(questions: AuditedQuestions) -> Found:
    """Empty questions, and judgements of questions that are not there."""
    if not any(question.text for question in questions.questions):
        return
    for question in questions.questions:
        if not question.text.strip() and question.query_id not in questions.lost:
            yield make_finding("empty_question", "the question is empty", question.row, removes=True)
    for query_id in questions.lost:
        message = f"query {query_id} has judgements, but no question has this id"
        yield make_finding("unknown_query", message, AuditedRow(query_id))


@check("references", "Questions without a reference")
def check_references(questions: AuditedQuestions) -> Found:
    """A question that its dataset calls unanswerable needs no reference."""
    if not questions.has_references:
        raise NotCheckedError(
            "the dataset has no references; metrics that compare answers with them have nothing to compare with"
        )
    for one in questions.questions:
        if not one.references and one.answerable is not False:
            either = "" if one.relevant_ids else ", and no relevant document either"
            yield make_finding("no_reference", f"no reference{either}", one.row)


_PLACEHOLDER = compile_later(
    r"\W*(?:TODO|TBD|TBC|FIXME|XXX+|tbd|todo|xxx+|[nN]/[aA]|NA|null|nan|lorem ipsum)\b"
    r"(?!\s+(?:app|list|is|was|are)\b).*"
    r"|\s*(?:<[^<>]*>|\{\{?[^{}]*\}?\}|\[[^\[\]]*\])\s*|\W*",
    re.DOTALL,
)
"""A mark that the answer is still to be written, brackets around all of it, or no letter and no digit."""
_MARKS = "?\uff1f\u061f"
_QUESTION = compile_later(rf"[^{_MARKS}]+[{_MARKS}]+")
_ASKING = "what|when|where|who|whom|whose|why|how|which"
_SECOND = compile_later(rf"\b(?:{_ASKING})\b.*\b(?:and|or)\s+(?:{_ASKING})\b", re.IGNORECASE | re.DOTALL)
_NOT_ASCII = compile_later(r"[^\x00-\x7f]{2,}")
_LEAST_FOUND = 0.5
"""The share of a reference's words that its documents have at least."""
_USUALLY_FOUND = 0.8
"""The share of references that stand in their documents in a set that takes its references from there."""


@check("gold", "Doubtful questions and references")
def check_gold(questions: AuditedQuestions) -> Found:
    """References that cannot be right, and questions that no single reference answers.

    They are placeholders, refusals of questions that have an answer, texts in a wrong encoding, references that do not
    stand in their documents, and two questions in one.
    """
    for question in questions.questions:
        yield from _find_placeholders(question)
        yield from _find_mojibake(question)
        yield from _find_two_questions(question)
    yield from _find_unfounded(questions)


def _find_placeholders(question: AuditedQuestion) -> Iterator[AuditFinding]:
    for text in question.references:
        if _PLACEHOLDER.fullmatch(text):
            message = f"the reference {_quote(text)} is a placeholder"
            yield make_finding("placeholder", message, question.row)
        elif question.answerable is not False and find_bare_refusal(text) is not None:
            message = f"the reference declines to answer: {_quote(text)}"
            yield make_finding("refusal", message, question.row)


def _find_mojibake(question: AuditedQuestion) -> Iterator[AuditFinding]:
    named = [("question", question.text), *(("reference", text) for text in question.references)]
    for what, text in (*named, *(("reference context", text) for text in question.reference_contexts)):
        if (wrong := find_mojibake(text)) is not None:
            message = f"the {what} was read in a wrong encoding: it has {_quote(wrong)}"
            yield make_finding("mojibake", message, question.row)
            return


def find_mojibake(text: str) -> str | None:
    """The first signs of a text that are UTF-8 read in another encoding, or that were lost; None without any.

    Letters of one script are no valid UTF-8 when they are written in the encodings of Windows, so that signs which are
    valid have come about by reading UTF-8 in the wrong one.
    """
    if "\ufffd" in text:
        return "\ufffd"
    for found in _NOT_ASCII.finditer(text):
        for encoding in ("cp1252", "latin-1", "cp1251"):
            try:
                found.group().encode(encoding).decode("utf-8")
            except UnicodeError:
                continue
            return found.group()
    return None


def _find_two_questions(question: AuditedQuestion) -> Iterator[AuditFinding]:
    asked = [part for part in _QUESTION.findall(question.text) if len(split_compared_words(part)) > 2]
    if len(asked) > 1 or (asked and _SECOND.search(asked[-1])):
        yield make_finding("two_questions", "asks two things in one", question.row)


def _find_unfounded(questions: AuditedQuestions) -> Iterator[AuditFinding]:
    """References whose words or numbers their documents lack, in a set whose references mostly stand there."""
    wanted = {doc_id for question in questions.questions for doc_id in question.relevant_ids}
    texts: dict[str, str] = {}
    if wanted and questions.collection.documents is not None:
        found = questions.collection.find_documents(pl.Series([*wanted], dtype=pl.String))
        texts = {doc_id: f"{title or ''} {text}" for doc_id, title, text in found.iter_rows()}
    judged, unfounded = 0, []
    for question in questions.questions:
        own = [*(texts[doc_id] for doc_id in question.relevant_ids if doc_id in texts), *question.reference_contexts]
        split = [drop_fillers(split_compared_words(text)) for text in question.references]
        if not own or question.answerable is False or not any(split) or any(map(is_yes_or_no, split)):
            continue
        judged += 1
        known, numbers = {word for text in own for word in split_compared_words(text)}, Sources(own)
        if not any(_is_founded(text, known, numbers) for text in question.references if text.strip()):
            unfounded.append(question)
    if judged - len(unfounded) < _USUALLY_FOUND * judged:
        return
    for question in unfounded:
        message = f"the reference {_quote(question.references[0])} is not in its documents"
        yield make_finding("unfounded", message, question.row)


def _is_founded(text: str, known: set[str], numbers: Sources) -> bool:
    quantities = [one for one in find_quantities(text) if not one.may_be_word]
    words = drop_fillers(split_compared_words(text))
    counted = {word for one in quantities for word in split_compared_words(one.text)}
    found = sum(word in known or word in counted for word in words)
    return all(numbers.contain(one, text) for one in quantities) and found >= _LEAST_FOUND * len(words)


def _quote(text: str) -> str:
    return repr(shorten(text))


@check("judgements", "Questions without a relevant document")
def check_judgements(questions: AuditedQuestions) -> Found:
    """Questions without a relevant document, and relevant ones that the corpus lacks."""
    if not questions.has_judgements:
        raise NotCheckedError("the dataset has no relevance judgements, so retrieval cannot be scored")
    yield from _find_unjudged(questions)
    if questions.collection.documents is None:
        yield "The dataset has no corpus, so nobody knows whether judged documents exist."
    else:
        judged = {doc_id for question in questions.questions for doc_id in question.relevant_ids}
        found = questions.collection.find_documents(pl.Series([*judged], dtype=pl.String))
        passages = questions.collection.passages  # `check_passages` is about those that the corpus lacks
        named = () if passages is None else (one.name for found in passages.passages.values() for one in found)
        yield from _find_absent(questions, {*found["doc_id"], *named})


def _find_unjudged(questions: AuditedQuestions) -> Iterator[AuditFinding]:
    for question in questions.questions:
        if question.relevant_ids or question.answerable is False:
            continue
        if question.relevant is None:
            message, advice = "no document is judged", "judge documents, or set 'answerable' to false if there are none"
        else:
            message = "no judged document is relevant"
            advice = "judge more documents, or set 'answerable' to false; rank metrics cannot score it"
        yield make_finding("no_relevant", message, question.row, advice=advice)


def _find_absent(questions: AuditedQuestions, known: set[str]) -> Iterator[AuditFinding]:
    for question in questions.questions:
        relevant = question.relevant_ids
        absent = sorted(relevant - known)
        if not absent:
            continue
        every = len(absent) == len(relevant)
        named = ", ".join(f"'{doc_id}'" for doc_id in absent[:_MOST_NAMED])
        more = f" and {len(absent) - _MOST_NAMED:,} more" if len(absent) > _MOST_NAMED else ""
        what = "no relevant document is in the corpus" if every else "relevant documents are not in the corpus"
        message, number = f"{what}: {named}{more}", len(relevant)
        severity: Severity | None = "error" if every else None
        yield make_finding("absent_document", message, question.row, severity=severity, absent=absent, relevant=number)


@check("passages", "Passages and their quotes")
def check_passages(questions: AuditedQuestions) -> Found:
    """Passages that are not in the corpus, or cut between its chunks, and quotes that are not as in their documents."""
    passages = questions.collection.passages
    if passages is None:
        raise NotCheckedError("the dataset names no passages")
    for question in questions.questions:
        for number, one in enumerate(passages.passages.get(question.query_id, ())):
            if one.similarity < 1:
                message = f"the quote of {one.name} differs from the document (similarity {one.similarity:.2f})"
                yield make_finding("changed_quote", message, question.row, similarity=one.similarity)
            if one.occurrences > 1:
                message = f"the quote of {one.name} stands {one.occurrences:,} times in its document"
                yield make_finding("repeated_quote", message, question.row, occurrences=one.occurrences)
            if questions.collection.documents is not None:
                yield from _find_uncovered(question, passages, number)
    if questions.collection.documents is None:
        yield "The dataset has no corpus, so nobody knows which chunks contain the passages."


def _find_uncovered(question: AuditedQuestion, passages: PassageRelevance, number: int) -> Iterator[AuditFinding]:
    """A passage that no single chunk contains, as far as it must be seen."""
    every = passages.passages[question.query_id]
    one, whole, shares = every[number], Coverage(every, None), dict[str, float]()
    for chunk_id, touches in passages.corpus[question.query_id].items():
        alone = Coverage(every, None)
        alone.add(touches)
        whole.add(touches)
        if share := alone.share(number):
            shares[chunk_id] = share
    best = sorted(shares, key=lambda chunk_id: -shares[chunk_id])
    needed = DEFAULT_SHARE if passages.at_least is None else passages.at_least
    if not best:
        yield make_finding("absent_passage", f"no chunk contains {one.name}", question.row)
    elif shares[best[0]] < needed:
        parts = ", ".join(f"{chunk_id!r} ({shares[chunk_id]:.0%})" for chunk_id in best[:_MOST_NAMED])
        message = f"{one.name} is cut: {parts}; all chunks together contain {whole.share(number):.0%} of it"
        yield make_finding("cut_passage", message, question.row, together=whole.share(number), best=shares[best[0]])


_CHANGED = ("updated", "updated_at", "last_updated", "last_modified", "modified", "modified_at", "changed", "date")
_CREATED = ("created", "created_at", "generated_at", "reviewed", "reviewed_at")
_DIGEST = "blake2b:"
"""Begins the version of a document that names none itself."""
_IDS = ("doc_id", "_id", "id")


@check("outdated", "Outdated questions")
def check_age(questions: AuditedQuestions, dataset: Dataset[Any], documents: DocumentSet | None = None) -> Found:
    """Documents that changed after a question about them was written.

    Only versions and dates in the files count: the time at which a file was written is often that of a checkout.
    """
    sources = {one.query_id: named for one in questions.questions if (named := _list_sources(one))}
    yield from _find_gone(questions)
    if not sources:
        yield from _find_late(questions, dataset)
    elif documents is not None:
        yield from _compare_versions(questions, sources, documents)
    else:
        with suppress(NotCheckedError):
            yield from _find_late(questions, dataset)
        raise NotCheckedError(
            "the questions name the versions of their documents; name the documents with --documents PATH"
        )


def _list_sources(question: AuditedQuestion) -> dict[str, str]:
    sources = question.read_columns().get("sources")
    return {
        str(one["document"]): str(one["version"])
        for one in (sources if isinstance(sources, list) else ())
        if isinstance(one, dict) and one.get("document") is not None and one.get("version") is not None
    }


def _compare_versions(
    questions: AuditedQuestions, sources: Mapping[str, Mapping[str, str]], documents: DocumentSet
) -> Iterator[AuditFinding]:
    now = {document.doc_id: document.version for document in documents.documents}
    for question in questions.questions:
        named = sources.get(question.query_id, {})
        gone = sorted(named.keys() - now.keys())
        changed = sorted(doc_id for doc_id, version in named.items() if doc_id in now and now[doc_id] != version)
        if gone:
            message = f"its document '{gone[0]}' is no longer there"
            yield make_finding("document_gone", message, question.row, gone=gone)
        elif changed:
            doc_id = changed[0]
            message = f"its document '{doc_id}' has changed since the question was made"
            if not named[doc_id].startswith(_DIGEST):
                message += f": version {named[doc_id]} then, {now[doc_id]} now"
            yield make_finding("outdated", message, question.row, changed=changed)


def _find_late(questions: AuditedQuestions, dataset: Dataset[Any]) -> Iterator[AuditFinding]:
    """Relevant documents that changed after their question was written."""
    made = read_date(questions.collection.about, _CREATED)
    written = {one.query_id: read_date(one.read_columns(), _CREATED) or made for one in questions.questions}
    if not any(written.values()):
        raise NotCheckedError("neither the set nor its questions have a date ('created')")
    changed = _read_changes(dataset)
    if not changed:
        raise NotCheckedError(f"the documents have no date of change ({', '.join(_CHANGED[:3])})")
    for question in questions.questions:
        day = written[question.query_id]
        later = {
            doc_id: changed[doc_id]
            for doc_id in sorted(question.relevant_ids)
            if day is not None and doc_id in changed and changed[doc_id] > day
        }
        if later:
            doc_id, newest = max(later.items(), key=lambda item: item[1])
            more = f" (and {len(later) - 1} more)" if len(later) > 1 else ""
            message = f"its document '{doc_id}'{more} changed on {newest}, and the question was written on {day}"
            days = {name: str(day) for name, day in later.items()}
            yield make_finding("outdated", message, question.row, documents=days, written=str(day))


def read_date(values: Mapping[str, Any], names: tuple[str, ...]) -> date | None:
    """The date under the first of these names that has one; those of `metadata` count too."""
    inner = values.get("metadata")
    for source in (values, inner if isinstance(inner, Mapping) else {}):
        spelled = spell_alike(source)
        for name in names:
            value = spelled.get(name)
            if isinstance(value, date):
                return value.date() if isinstance(value, datetime) else value
            if isinstance(value, str):
                with suppress(ValueError):
                    return datetime.fromisoformat(value.strip()).date()
    return None


def _read_changes(dataset: Dataset[Any]) -> dict[str, date]:
    """When each document changed, by its id, as far as the corpus says it."""
    changed: dict[str, date] = {}
    for file in dataset.inputs():
        if "corpus" in (*file.key, Path(file.path.name).name.split(".")[0]) and file.path.is_file():
            changed.update(_read_corpus(file.path))
    return changed


def _read_corpus(path: Path) -> Iterator[tuple[str, date]]:
    try:
        for _, row in read_rows(path):
            doc_id = next((str(row[name]) for name in _IDS if row.get(name) is not None), None)
            changed = read_date(row, _CHANGED)
            if doc_id is not None and changed is not None:
                yield doc_id, changed
    except DataError:
        return


def _find_gone(questions: AuditedQuestions) -> Iterator[AuditFinding]:
    """Reference contexts that no longer stand in any document of the corpus.

    If hardly any do, the corpus was cut or cleaned in another way, so nothing is reported.
    """
    asked = [question for question in questions.questions if question.reference_contexts]
    if questions.collection.documents is None or not asked:
        return
    relevant = {doc_id for question in asked for doc_id in question.relevant_ids}
    texts = {
        doc_id: _squeeze(f"{title or ''} {text}")
        for part in questions.collection.stream_corpus()
        for doc_id, title, text in part.iter_rows()
        if not relevant or doc_id in relevant
    }
    gone = []
    for question in asked:
        own = [texts[doc_id] for doc_id in question.relevant_ids if doc_id in texts]
        if own and not any(_squeeze(context) in text for context in question.reference_contexts for text in own):
            gone.append(question)
    judged = [question for question in asked if any(doc_id in texts for doc_id in question.relevant_ids)]
    if 2 * len(gone) > len(judged):
        return
    for question in gone:
        message = "its relevant documents no longer contain its reference context"
        yield make_finding("context_gone", message, question.row)


def _squeeze(text: str) -> str:
    return " ".join(text.casefold().split())
