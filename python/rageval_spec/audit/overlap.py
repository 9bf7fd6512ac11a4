"""Checks for questions that also stand in a file that a system was trained or tuned on."""

from __future__ import annotations

from collections.abc import Iterator

from rageval_spec.audit.finding import Check, Finding
from rageval_spec.audit.pairs import Asked, compare
from rageval_spec.audit.question_set import Question, QuestionSet
from rageval_spec.audit.shingles import find_similar
from rageval_spec.audit.words import drop_fillers, find_numbers, split_words
from rageval_spec.wording import count_noun, format_percent

_LEAST_SHARED = 0.6
TITLE = "Overlap with the training data"


def check_overlap(questions: QuestionSet, train: QuestionSet | None, name: str) -> Check:
    """The check `train_overlap`.

    Args:
        questions: the test set.
        train: the questions that a system was trained on; None if no file was named.
        name: the file, for messages.
    """
    if train is None:
        return Check("train_overlap", TITLE, skipped="no training questions are named; name a file with --train FILE")
    findings = [_describe(*found) for found in _find_repeats(questions, train)]
    compared = f"Compared with {count_noun(len(train.questions), 'question')} of {name}."
    remark = f"{compared} {_describe_documents(questions, train)}".rstrip()
    return Check("train_overlap", TITLE, tuple(findings), remark=remark)


def _find_repeats(questions: QuestionSet, train: QuestionSet) -> Iterator[tuple[Question, Question, bool]]:
    """The questions that are also in the training data, the row there, and whether the words are equal."""
    known: dict[tuple[str, ...], Question] = {}
    for question in train.questions:
        known.setdefault(split_words(question.text), question)
    rest = []
    for question in questions.questions:
        words = split_words(question.text)
        if words and words in known:
            yield question, known[words], True
        elif words:
            rest.append(question)
    trained = [question for words, question in known.items() if words]
    split = [split_words(question.text) for question in (*trained, *rest)]
    texts = [" ".join(drop_fillers(own)) for own in split]
    seen: set[int] = set()
    for later, earlier, _ in find_similar(texts, _LEAST_SHARED, [find_numbers(own) for own in split]):
        if earlier < len(trained) <= later and later not in seen:
            question, other = rest[later - len(trained)], trained[earlier]
            if compare(Asked(question.text, question.references), Asked(other.text, other.references)):
                seen.add(later)
                yield question, other, False


def _describe(question: Question, other: Question, is_equal: bool) -> Finding:
    same = "the same question is" if is_equal else "nearly the same question is"
    place = other.place or f"query {other.query_id}"
    return Finding(
        "train_overlap" if is_equal else "train_near_overlap",
        "error" if is_equal else "warning",
        f"{same} in the training data: {place}",
        "remove it from the test set, or from the training data and train again; a system may know the answer by heart",
        (question.row,),
        removes=is_equal,
        details={"train": {"query_id": other.query_id, "place": other.place, "question": other.row.question}},
    )


def _describe_documents(questions: QuestionSet, train: QuestionSet) -> str:
    """How many questions have relevant documents that are also relevant in the training data; "" without judgements."""
    if not (questions.has_judgements and train.has_judgements):
        return ""
    trained = {doc_id for question in train.questions for doc_id in question.relevant_ids}
    judged = [question for question in questions.questions if question.relevant_ids]
    known = sum(bool(question.relevant_ids & trained) for question in judged)
    if not known:
        return "No relevant document is also relevant there."
    share = format_percent(known / len(judged), 0)
    has = "has" if known == 1 else "have"
    return f"{count_noun(known, 'question')} ({share}) {has} a relevant document that is also relevant there."
