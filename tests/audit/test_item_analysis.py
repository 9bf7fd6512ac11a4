""""""

from __future__ import annotations

import numpy as np
import pytest

from rageval_spec.audit.item_analysis import (
    LIKELY,
    check_discrimination,
    check_failed,
    check_solved,
    check_unjudged,
    correlate_with_rest,
    find_bounds,
    find_chance,
    select_negative,
    suspect,
)
from rageval_spec.audit.question_set import AuditedQuestion, MetricValues, Output, combine
from tests.question_sets import ask


def measure(*rows: list[float]) -> MetricValues:
    systems = [f"s{number}" for number in range(len(rows[0]))]
    columns = {
        system: {f"q{number + 1}": row[place] for number, row in enumerate(rows)}
        for place, system in enumerate(systems)
    }
    return combine("ndcg@10", columns, 1.0, 0.0)


def test_failed_questions_come_with_the_likeliest_label_error_first() -> None:
    corpus = {"d1": "museum hours", "d2": "refunds of a subscription"}
    questions = ask(
        "opening hours museum",
        "refunds of a subscription",
        "who?",
        relevant=[{"d1": 1}, {"d1": 1}, {"d1": 1}],
        corpus=corpus,
    )
    outputs = {
        "q1": [Output("s0", ("d2",), None), Output("s1", ("d3",), None)],
        "q2": [Output("s0", ("d2",), None), Output("s1", ("d2",), None)],
    }
    check = check_failed(questions, measure([0.0, 0.0], [0.0, 0.0], [0.0, 0.1]), outputs)
    assert [(one.rows[0].query_id, one.severity) for one in check.findings] == [("q2", "warning"), ("q1", "info")]
    assert check.findings[0].details["suspicion"] == 1.0
    assert "2 of 2 systems fail it: 2 of 2 systems put 'd2' first" in check.findings[0].message
    assert check.remark == "By ndcg@10, of 3 questions and 2 systems."


def test_without_samples_the_order_of_failed_questions_means_nothing() -> None:
    check = check_failed(ask("who?"), measure([0.0, 0.0]), {})
    assert "The likeliest label errors are not first" in check.remark and "--results FOLDER" in check.remark


def test_solved_questions_have_the_highest_value_everywhere() -> None:
    check = check_solved(ask("a", "b"), measure([1.0, 1.0], [1.0, 0.9]))
    assert [one.rows[0].query_id for one in check.findings] == ["q1"]
    assert check.remark.startswith("50% of 2 questions do not show")


def test_the_item_rest_correlation_leaves_the_question_itself_out() -> None:
    drawn = np.random.default_rng(7)
    values = drawn.random((6, 5))
    expected = [
        np.corrcoef(row, np.delete(values, place, axis=0).mean(axis=0))[0, 1] for place, row in enumerate(values)
    ]
    assert correlate_with_rest(values) == pytest.approx(expected)
    equal = correlate_with_rest(np.array([[0.5, 0.5], [0.1, 0.9], [0.2, 0.8]]))
    assert np.isnan(equal[0]) and equal[1] == pytest.approx(1.0)
    assert np.isnan(correlate_with_rest(np.array([[0.1, 0.9]]))).all()


def test_a_question_on_which_better_systems_do_worse_is_named_with_its_interval() -> None:
    ability = np.linspace(0.1, 0.9, 12)
    rows = [list(ability + 0.02 * (number % 3)) for number in range(8)]
    check = check_discrimination(ask(*"abcdefghi"), measure(*rows, list(1 - ability)))
    (found,) = check.findings
    assert (found.code, found.rows[0].query_id) == ("negative_discrimination", "q9")
    assert found.details["systems"] == 12 and found.details["high"] < 0
    assert check.tables[0].rows[0] == ("below 0", "1", "11.1%")
    assert check.tables[0].values[0] == ("below 0", 1, 1 / 9)


def test_chance_is_rarely_named() -> None:
    drawn = np.random.default_rng(3)
    named = sum(len(select_negative(correlate_with_rest(drawn.random((200, 6))), 6)) > 0 for _ in range(40))
    assert named <= 6


@pytest.mark.parametrize(
    ("correlation", "systems", "chance"),
    [
        (-0.95, 4, 0.025),
        (-0.99, 5, 0.0005984),
        (-0.5, 10, 0.0705588),
        (-0.5, 11, 0.0586598),
        (0.3, 7, 0.7433),
        (0.0, 6, 0.5),
        (-1.0, 5, 0.0),
    ],
)  # of scipy.stats.pearsonr(..., alternative="less")
def test_the_chance_of_a_correlation_is_students(correlation: float, systems: int, chance: float) -> None:
    assert find_chance(correlation, systems) == pytest.approx(chance, abs=1e-4, rel=1e-3)


def test_few_systems_make_no_more_chance_findings_than_stated() -> None:
    drawn = np.random.default_rng(5)
    named = sum(bool(select_negative(correlate_with_rest(drawn.normal(size=(200, 5))), 5)) for _ in range(200))
    assert named <= 20, "5% of 200 are 10; with Fisher's transformation, 34 were named"


def test_few_systems_are_said_to_be_few() -> None:
    few = check_discrimination(ask("a", "b"), measure([0.1, 0.2, 0.3], [0.1, 0.2, 0.4]))
    assert few.skipped is not None and few.skipped.startswith("3 systems;") and "--results A --results B" in few.skipped
    some = check_discrimination(ask("a", "b"), measure([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.4, 0.3]))
    assert "With so few" in some.remark


def test_bounds_are_fishers() -> None:
    assert find_bounds(0.5, 12) == pytest.approx((-0.104, 0.834), abs=1e-3)


TEXTS = {
    "label": "The museum opens at nine on weekdays.",
    "found": "Refunds of a subscription take fourteen days after the cancellation.",
    "other": "Bicycles are not allowed in the park.",
}


def ask_suspects(question: str, *references: str, label: str = "label") -> AuditedQuestion:
    return AuditedQuestion("q1", question, "", references, {label: 1})


def rank(*firsts: str) -> list[Output]:
    return [Output(f"s{number}", (doc_id,), None) for number, doc_id in enumerate(firsts)]


def test_a_document_with_the_questions_words_that_all_systems_find_speaks_against_the_label() -> None:
    question = ask_suspects("How long do refunds of a subscription take after a cancellation?")
    found = suspect(question, rank("found", "found", "found"), TEXTS)
    assert found.score >= LIKELY
    assert found.reasons[0] == "3 of 3 systems put 'found' first"
    assert "of the question's words, and the relevant document" in found.reasons[1]


def test_a_document_that_is_judged_as_not_relevant_is_said_to_be() -> None:
    question = AuditedQuestion("q1", "How long do refunds take?", "", (), {"label": 1, "found": 0})
    reasons = suspect(question, rank("found", "found"), TEXTS).reasons
    assert reasons[0] == "2 of 2 systems put 'found' first, which is judged as not relevant"


def test_a_hard_question_is_not_suspicious() -> None:
    question = ask_suspects("When does the museum open on weekdays?")
    found = suspect(question, rank("found", "other"), TEXTS)
    assert found.score < 0.3 and found.reasons == ()


def test_the_gold_answer_in_another_document_settles_it() -> None:
    question = ask_suspects("What is the time limit?", "fourteen days")
    found = suspect(question, rank("found", "other", "found"), TEXTS)
    assert found.score == 1.0 and "it contains the reference 'fourteen days'" in found.reasons[-1]


def test_without_texts_only_agreement_counts() -> None:
    question = ask_suspects("What is the time limit?", label="lost")
    assert suspect(question, rank("x", "x"), {}).score == 0.5
    assert suspect(question, rank("x", "y"), {}).score == 0.0


def test_answers_that_agree_with_each_other_speak_against_the_reference() -> None:
    question = AuditedQuestion("q1", "How long?", "", ("thirty days",))
    agreeing = [Output("a", None, "It takes 14 days."), Output("b", None, "it takes 14 days")]
    found = suspect(question, agreeing, {})
    assert round(found.score, 2) == 0.67, "they agree fully, and a third of their words are those of the reference"
    assert found.reasons == (
        "2 systems give nearly the same answer, 'It takes 14 days.', and the reference is 'thirty days'",
    )
    apart = [Output("a", None, "It takes 14 days."), Output("b", None, "Nobody knows that")]
    assert suspect(question, apart, {}).reasons == ()
    assert suspect(question, agreeing[:1], {}).score == 0.0


JUDGED = {"d1": 1, "d2": 0, "d3": 0}


def find(system: str, *doc_ids: str, judged: dict[str, int] = JUDGED) -> Output:
    ranks = {doc_id: rank for rank, doc_id in enumerate(doc_ids, 1) if doc_id in judged}
    return Output(system, doc_ids, None, ranks, judged)


def test_each_system_has_the_share_of_its_documents_that_are_judged() -> None:
    outputs = {f"q{n}": [find("a", "d1", "d2", "d3"), find("b", "x1", "x2", "d1")] for n in range(1, 6)}
    check = check_unjudged(ask(*"abcde", relevant=[JUDGED] * 5), outputs)
    assert check.tables[0].rows == (
        ("a", "1.000", "1.000", "1.000", "0", "5"),
        ("b", "0.500", "1.000", "0.333", "0", "5"),
    )
    assert check.tables[0].values == (("a", 1.0, 1.0, 1.0, 0, 5), ("b", 0.5, 1.0, 1 / 3, 0, 5))
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
