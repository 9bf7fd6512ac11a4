""""""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.audit.audit_findings import CheckContent
from rageval_spec.audit.coverage import (
    check_age,
    check_gold,
    check_judgements,
    check_passages,
    check_questions,
    check_references,
    find_mojibake,
    read_date,
)
from rageval_spec.audit.question_set import AuditedQuestion
from rageval_spec.commands.audit.audited_questions import open_questions
from rageval_spec.generation.documents import read_documents
from tests.plugins import build_dataset
from tests.question_sets import ask, wrap


def test_an_empty_question_and_judgements_of_no_question_are_errors() -> None:
    questions = replace(ask("Who?", "  "), lost=("q9",))
    check = check_questions(questions)
    assert [(one.code, one.severity, one.rows[0].query_id) for one in check.findings] == [
        ("empty_question", "error", "q2"), ("unknown_query", "error", "q9")
    ]  # fmt: skip
    assert check_questions(ask("", "", relevant=[{"d1": 1}, {"d1": 1}])).state == "clean"


def test_a_missing_reference_is_a_warning_unless_the_question_has_no_answer() -> None:
    questions = ask("a", "b", "c", references=["x"], relevant=[None, {"d1": 1}])
    check = check_references(questions)
    assert [one.rows[0].query_id for one in check.findings] == ["q2", "q3"]
    assert [one.message for one in check.findings] == ["no reference", "no reference, and no relevant document either"]
    unanswerable = [AuditedQuestion("q1", "a", "", ("x",)), AuditedQuestion("q2", "b", "", answerable=False)]
    assert check_references(wrap(unanswerable)).state == "clean"
    assert check_references(ask("a")).state == "skipped"


def test_questions_need_a_relevant_document_that_exists() -> None:
    judged = [{"d1": 1}, {"d1": 0}, None, {"d9": 1}, {"d1": 1, "d8": 2}]
    check = check_judgements(ask("a", "b", "c", "d", "e", relevant=judged, corpus={"d1": "x"}))
    assert [(one.rows[0].query_id, one.code, one.severity) for one in check.findings] == [
        ("q2", "no_relevant", "warning"),
        ("q3", "no_relevant", "warning"),
        ("q4", "absent_document", "error"),
        ("q5", "absent_document", "warning"),
    ]
    assert check.findings[2].details == {"absent": ["d9"], "relevant": 1}


def test_passages_that_no_chunk_contains_are_cut_or_absent(tmp_path: Path) -> None:
    guide = "Refunds take 14 days. After that, we charge a fee of 5 euros. We charge nothing else. Days are workdays."
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text(guide)
    quotes = {
        "whole": "Refunds take 14 days.", "cut": "After that, we charge a fee of 5 euros.",
        "edited": "Refund takes 14 days after", "gone": "Days are workdays.", "twice": "charge",
    }  # fmt: skip
    rows = [{"id": k, "question": k, "relevant": [{"document": "guide.md", "quote": v}]} for k, v in quotes.items()]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    chunks = [{"doc_id": f"c{at}", "text": guide[at : at + 16]} for at in range(2, 82, 16)]
    places = [{**one, "document_id": "guide.md", "start": int(one["doc_id"][1:])} for one in chunks]
    (tmp_path / "chunks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in places))
    dataset = build_dataset("golden", tmp_path, path="golden.jsonl", documents="docs", corpus="chunks.jsonl")
    questions = open_questions(dataset)
    check = check_passages(questions)
    assert [(one.rows[0].query_id, one.code, one.severity) for one in check.findings] == [
        ("cut", "cut_passage", "warning"), ("edited", "changed_quote", "info"), ("gone", "absent_passage", "warning"),
        ("twice", "repeated_quote", "info"),
    ]  # fmt: skip
    parts = "'c34' (41%), 'c18' (31%), 'c50' (28%)"
    assert check.findings[0].message == f"guide.md[22:61] is cut: {parts}; all chunks together contain 100% of it"
    assert check.findings[2].message == "no chunk contains guide.md[86:104]"
    assert check_judgements(questions).state == "clean"
    bare = open_questions(build_dataset("golden", tmp_path, path="golden.jsonl", documents="docs"))
    assert "no corpus" in check_passages(bare).remark
    assert check_passages(ask("a")).state == "skipped"


def test_without_a_corpus_the_audit_says_that_documents_were_not_looked_up() -> None:
    check = check_judgements(ask("a", relevant=[{"d1": 1}]))
    assert check.state == "clean" and "no corpus" in check.remark
    assert check_judgements(ask("a")).state == "skipped"


def check(folder: Path, changed: str | None, created: str | None) -> CheckContent:
    document = {"doc_id": "d1", "text": "x"} | ({} if changed is None else {"updated_at": changed})
    (folder / "corpus.jsonl").write_text(json.dumps(document) + "\n")
    (folder / "golden.jsonl").write_text('{"id": "q1", "question": "a", "relevant": "d1"}\n')
    dataset = build_dataset("jsonl", folder, path="golden.jsonl", corpus="corpus.jsonl")
    about = {} if created is None else {"created": created}
    return check_age(ask("a", relevant=[{"d1": 1}], about=about), dataset)


def test_a_document_that_changed_later_makes_a_question_outdated(tmp_path: Path) -> None:
    (found,) = check(tmp_path, "2026-02-03T10:00:00Z", "2025-11-01").findings
    assert (found.code, found.severity) == ("outdated", "warning")
    assert found.message == "its document 'd1' changed on 2026-02-03, and the question was written on 2025-11-01"
    assert check(tmp_path, "2025-10-31", "2025-11-01").state == "clean"


def test_without_dates_nothing_can_be_said(tmp_path: Path) -> None:
    no_created, no_changed = check(tmp_path, "2026-02-03", None), check(tmp_path, None, "2025-11-01")
    assert no_created.skipped is not None and "'created'" in no_created.skipped
    assert no_changed.skipped is not None and "documents have no date of change" in no_changed.skipped


def test_dates_are_those_of_the_file_or_its_metadata() -> None:
    assert str(read_date({"metadata": {"created": "2025-01-02"}}, ("created",))) == "2025-01-02"
    assert read_date({"created": "soon", "other": "2025-01-02"}, ("created",)) is None


def test_a_context_that_left_its_document_is_named_unless_most_did(tmp_path: Path) -> None:
    def build(*contexts: str) -> CheckContent:
        questions = [
            AuditedQuestion(f"q{n}", "a", "", ("x",), {"d1": 1}, reference_contexts=(text,))
            for n, text in enumerate(contexts)
        ]
        (tmp_path / "golden.jsonl").write_text('{"id": "q1", "question": "a"}\n')
        return check_age(
            wrap(questions, {"d1": "The  fee is 5."}), build_dataset("jsonl", tmp_path, path="golden.jsonl")
        )

    found = build("the fee is 5", "The fee is 5.", "The fee is 4.").findings
    assert [(one.code, one.rows[0].query_id) for one in found] == [("context_gone", "q2")]
    assert build("chunk a", "chunk b", "The fee is 5.").state == "skipped"


def test_a_generated_question_is_outdated_once_its_document_has_another_version(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Fees\n\nThe fee is 5.\n")
    (folder / "b.md").write_text("# Hours\n\nFrom nine to five.\n")
    versions = {one.doc_id: one.version for one in read_documents(folder).documents}
    columns = [{"sources": [{"document": doc_id, "version": versions[doc_id]}]} for doc_id in ("a.md", "b.md")]
    columns.append({"sources": [{"document": "lost.md", "version": "1"}]})
    columns.append({"sources": [{"document": "b.md", "version": "2025-01-01"}]})
    questions = ask("What is the fee?", "When?", "Who?", "How?", columns=columns)
    (tmp_path / "golden.jsonl").write_text('{"id": "q1", "question": "a"}\n')
    dataset = build_dataset("jsonl", tmp_path, path="golden.jsonl")
    unnamed = check_age(questions, dataset).skipped
    assert unnamed is not None and "--documents PATH" in unnamed
    (folder / "a.md").write_text("# Fees\n\nThe fee is 6.\n")
    found = check_age(questions, dataset, read_documents(folder)).findings
    assert [(one.code, one.rows[0].query_id) for one in found] == [
        ("outdated", "q1"), ("document_gone", "q3"), ("outdated", "q4")
    ]  # fmt: skip
    assert found[0].message == "its document 'a.md' has changed since the question was made"
    assert found[2].message.endswith(f": version 2025-01-01 then, {versions['b.md']} now")


def codes(*questions: AuditedQuestion) -> list[str]:
    return [found.code for found in check_gold(wrap(list(questions))).findings]


@pytest.mark.parametrize(
    "text", ["TODO", "TODO: ask Ann", "tbd", "TBD.", "N/A", "n/a", "???", "...", "-", "<answer>", "{{ answer }}", "[?]"]
)
def test_a_reference_that_is_still_to_be_written_is_an_error(text: str) -> None:
    assert codes(AuditedQuestion("q1", "Who?", "", (text,))) == ["placeholder"]


@pytest.mark.parametrize(
    "text", ["42", "None", "Paris", "the null hypothesis", "Todo lists", "Nan Goldin", "C", "TODO is an app", "5 [kg]"]
)
def test_short_and_odd_references_are_no_placeholders(text: str) -> None:
    assert codes(AuditedQuestion("q1", "Who?", "", (text,))) == []


def test_a_refusal_is_a_reference_only_of_an_unanswerable_question() -> None:
    text = "I'm sorry, but I don't know."
    assert codes(AuditedQuestion("q1", "Who?", "", (text,))) == ["refusal"]
    assert codes(AuditedQuestion("q1", "Who?", "", (text,), answerable=False)) == []
    assert codes(AuditedQuestion("q1", "Who?", "", ("He said that he did not know the king.",))) == []


WORDS = [
    "caf\u00e9",
    "\u00fcber",
    "don\u2019t",
    "5 \u20ac",
    "\u041f\u0440\u0438\u0432\u0435\u0442",
    "\u65e5\u672c\u8a9e",
]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "cp1251"])
def test_text_read_in_a_wrong_encoding_is_found_and_right_text_is_not(word: str, encoding: str) -> None:
    assert find_mojibake(word) is None
    try:
        wrong = word.encode().decode(encoding)
    except UnicodeDecodeError:
        return
    assert find_mojibake(f"a {wrong} b") is not None
    assert codes(AuditedQuestion("q1", "Who?", "", (wrong,)))[:1] == ["mojibake"]


@pytest.mark.parametrize(
    ("text", "is_double"),
    [
        ("Who wrote the book? When did it appear?", True),
        ("When and where was it built?", True),
        ("Who wrote it, and when did it appear?", True),
        (
            "\u8c01\u5199\u4e86\u8fd9\u672c\u4e66\uff1f\u5b83\u662f\u4ec0\u4e48\u65f6\u5019\u51fa\u7248\u7684\uff1f",
            True,
        ),
        ("Who wrote the book that appeared in 1900 and won a prize?", False),
        ("Really? Who wrote the book?", False),
        ("Tell me who wrote it.", False),
    ],
)
def test_two_questions_in_one(text: str, is_double: bool) -> None:
    assert codes(AuditedQuestion("q1", text, "", ("Ann",))) == (["two_questions"] if is_double else [])


def test_a_reference_that_its_document_lacks_is_found_where_the_others_stand_there() -> None:
    document = ("The notice period is 14 days. Ann wrote it in 1900.",)
    right = [AuditedQuestion(f"q{n}", "When?", "", (text,), reference_contexts=document)
             for n, text in enumerate(["14 days", "Ann", "in 1900", "It is 14 days.", "Yes, it is."])]  # fmt: skip
    wrong = [AuditedQuestion(f"w{n}", "When?", "", (text,), reference_contexts=document)
             for n, text in enumerate(["30 days"])]  # fmt: skip
    assert codes(*right, *wrong) == ["unfounded"]
    assert codes(*right[:1], *wrong) == []  # the references of this set are not taken from documents
