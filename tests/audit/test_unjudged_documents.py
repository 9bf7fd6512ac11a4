"""Documents that systems put first and that nobody has judged."""

from __future__ import annotations

from rageval_spec.audit.item_analysis import check_unjudged
from rageval_spec.audit.question_set import Output
from tests.question_sets import ask

JUDGED = {"d1": 1, "d2": 0, "d3": 0}


def find(system: str, *doc_ids: str, judged: dict[str, int] = JUDGED) -> Output:
    ranks = {doc_id: rank for rank, doc_id in enumerate(doc_ids, 1) if doc_id in judged}
    return Output(system, doc_ids, None, ranks, judged)


def test_each_system_has_the_share_of_its_documents_that_are_judged() -> None:
    outputs = {f"q{n}": [find("a", "d1", "d2", "d3"), find("b", "x1", "x2", "d1")] for n in range(1, 6)}
    check = check_unjudged(ask(*"abcde", relevant=[JUDGED] * 5), outputs)
    assert check.tables[0].rows == (
        ("a", "1.000", "1.000", "1.000", "0 of 5"),
        ("b", "0.500", "1.000", "0.333", "0 of 5"),
    )
    assert check.tables[0].values == (("a", 1.0, 1.0, 1.0, 0), ("b", 0.5, 1.0, 1 / 3, 0))
    unequal, following = check.findings[0], check.findings[1:]
    assert (unequal.code, unequal.system, unequal.severity) == ("unequal_judging", "b", "warning")
    assert unequal.details == {"judged": 0.0, "most": 1.0, "most_system": "a"}
    assert following == ()


def test_a_system_that_finds_fewer_documents_is_compared_at_its_depth() -> None:
    """Documents further down are judged less, so the whole depth would make the short list look judged more."""
    long = ("d2", "d3", *(f"x{n}" for n in range(8)))
    outputs = {f"q{n}": [find("short", "d2", "d3"), find("long", *long)] for n in range(1, 41)}
    check = check_unjudged(ask(*map(str, range(40)), relevant=[JUDGED] * 40), outputs)
    assert "unequal_judging" not in {one.code for one in check.findings}


def test_a_difference_of_few_documents_is_chance() -> None:
    outputs = {"q1": [find("a", "d2", "d3"), find("b", "d2", "x1")]}
    check = check_unjudged(ask("who?", relevant=[JUDGED]), outputs)
    assert "unequal_judging" not in {one.code for one in check.findings}


def test_a_document_in_several_contexts_counts_once() -> None:
    outputs = {"q1": [find("a", "d1", "d1", "x1", "x1", judged=JUDGED)]}
    (row,) = check_unjudged(ask("who?", relevant=[JUDGED]), outputs).tables[0].rows
    assert row[3] == "0.500"


def test_judgements_of_relevant_documents_alone_do_not_make_systems_unequal() -> None:
    only = {"d1": 1}
    outputs = {"q1": [find("a", "d1", "x", judged=only), find("b", "x", "y", judged=only)]}
    check = check_unjudged(ask("who?", relevant=[only]), outputs)
    assert check.findings == ()
    assert "judged@10 cannot exceed 0.100" in check.remark
    assert "None is judged as not relevant" in check.remark


def test_a_document_that_most_systems_put_before_the_relevant_one_is_to_be_judged() -> None:
    outputs = {"q1": [find("a", "x", "d1"), find("b", "d2", "x", "d1"), find("c", "d1", "x")]}
    found = check_unjudged(ask("who?", relevant=[JUDGED]), outputs).findings[-1]
    assert (found.code, found.severity) == ("judge_next", "info")
    assert found.message == "2 of 3 systems put the unjudged document 'x' before every relevant one"
    assert found.details["documents"] == [{"doc_id": "x", "systems": 2}]


def test_an_order_that_depends_on_unjudged_documents_is_named() -> None:
    many = {"d1": 1, "d2": 1, "n1": 0, "n2": 0}
    outputs = {
        "q1": [find("a", "d1", "n1", "n2", "d2", judged=many), find("b", "x1", "x2", "d1", "d2", judged=many)],
    }
    codes = {one.code for one in check_unjudged(ask("who?", relevant=[many]), outputs).findings}
    assert "order_depends_on_judging" in codes


def test_without_rankings_or_judgements_the_check_is_skipped() -> None:
    assert check_unjudged(ask("who?"), {}).skipped == "the dataset has no relevance judgements"
    without_samples = check_unjudged(ask("who?", relevant=[JUDGED]), {}).skipped
    assert without_samples is not None and "--results FOLDER" in without_samples
    skipped = check_unjudged(ask("who?", relevant=[JUDGED]), {"q1": [Output("a", None, "so", {}, JUDGED)]}).skipped
    assert skipped == "the results do not name the documents that systems found"


def test_judgements_that_changed_after_the_evaluation_are_counted() -> None:
    outputs = {"q1": [find("a", "d1")], "q2": [find("a", "d1")]}
    check = check_unjudged(ask("who?", "how?", relevant=[JUDGED, {**JUDGED, "d7": 1}]), outputs)
    assert "The judgements of 1 question changed after the evaluation; evaluate again." in check.remark
