"""Which answers are chosen, for which reasons, and how likely each was to be chosen.

When a judge is unsure, and which answers are bad by its own account.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.drawing.question_order import BaselineValues, NoBaselineError
from rageval_spec.errors import DataError, UsageError
from rageval_spec.review.selection import (
    Selection,
    WantedSelection,
    list_judged_metrics,
    rate_low,
    rate_person,
    rate_regressed,
    rate_unsure,
    select_answers,
)
from tests.answered_evaluation import answered, sample, value
from tests.sample_evaluation import alter

COUNT = 200


def number(name: str) -> int:
    return int(name[1:])


def evaluation(count: int = COUNT, systems: tuple[str, ...] = ("v1",), **more: Any) -> Evaluation:
    """The first ten answers are bad (0.1), the next ten are near the threshold (0.5), the others good."""
    values = [
        value(
            f"q{at}", "faithfulness", 0.1 if at < 10 else 0.5 if at < 20 else 0.95, system, details={"judge": "strict"}
        )
        for system in systems
        for at in range(count)
    ]
    samples = [
        sample(f"q{at}", system, slices=["hard"] if at % 4 == 0 else ["easy"], **more)
        for system in systems
        for at in range(count)
    ]
    return answered(values, samples)


def choose(**wanted: Any) -> Selection:
    return select_answers(evaluation(), WantedSelection(**{"suspicions": (), **wanted}))


def probabilities(selection: Selection) -> dict[str, float]:
    return {one.key[2]: one.probability for one in selection.chosen}


def test_a_share_is_drawn_at_random_and_each_answer_has_this_probability() -> None:
    found = choose(random=0.03)
    assert len(found.chosen) == 6
    assert {(one.reasons, one.probability) for one in found.chosen} == {(("random",), 0.03)}
    assert (found.population, found.is_representative) == (COUNT, True)


def test_a_count_is_drawn_too_and_is_at_most_all() -> None:
    assert set(probabilities(choose(random=10)).values()) == {0.05}
    assert set(probabilities(choose(random=1000)).values()) == {1.0}


def test_by_default_enough_are_drawn_to_measure_a_judge_and_the_suspicious_are_added() -> None:
    found = select_answers(evaluation(), WantedSelection())
    assert {(one.reason, one.concerned, one.drawn) for one in found.sources} == {
        ("random", 200, 50), ("unsure", 10, 10), ("low", 20, 20),
    }  # fmt: skip
    assert 50 < len(found.chosen) <= 70


def test_what_is_taken_for_certain_has_the_probability_1_also_if_it_was_drawn_at_random() -> None:
    found = choose(random=0.5, suspicions=("low",), most=None)
    low = {name: chance for name, chance in probabilities(found).items() if number(name) < 20}
    assert low == {f"q{at}": 1.0 for at in range(20)}
    others = {chance for name, chance in probabilities(found).items() if number(name) >= 20}
    assert others == {0.5}
    assert {one.reasons for one in found.chosen} == {("random",), ("low",), ("random", "low")}


def test_the_worst_come_first_and_equal_ones_are_equally_likely() -> None:
    found = choose(random=0, suspicions=("low",), most=15)
    chances = probabilities(found)
    assert {name for name, chance in chances.items() if chance == 1.0} == {f"q{at}" for at in range(10)}
    assert Counter(chances.values()) == {1.0: 10, 0.5: 5}
    assert not found.is_representative


@pytest.mark.parametrize(
    "wanted",
    [
        {"random": 0.1, "suspicions": ("low", "unsure"), "most": 15},
        {"random": 0.1, "by_slice": True, "suspicions": ("low",), "most": 5},
        {"random": 40, "by_slice": True, "suspicions": ("unsure",), "most": 4},
    ],
)
def test_the_probabilities_are_those_with_which_answers_are_chosen(wanted: dict[str, Any]) -> None:
    table, counts, said = evaluation(60), Counter[str](), dict[str, float]()
    for seed in range(400):
        found = probabilities(select_answers(table, WantedSelection(**wanted, seed=seed)))
        counts.update([*found])
        said |= found
    for name, chance in said.items():
        assert counts[name] / 400 == pytest.approx(chance, abs=5 * np.sqrt(0.25 / 400))
        assert chance < 1 or counts[name] == 400
    expected = sum(counts.values()) / 400
    assert sum(said.values()) == pytest.approx(expected, abs=0.8)


def test_a_slice_is_found_however_its_accents_are_written() -> None:
    samples = [sample(f"q{at}", slices=["lang=\u00e9"] if at < 4 else ["lang=en"]) for at in range(9)]
    table = answered([value(f"q{at}", "faithfulness", 0.5) for at in range(9)], samples)
    found = select_answers(table, WantedSelection(random=9, slice="lang=e\u0301", suspicions=(), seed=1))
    assert {number(name) for name in probabilities(found)} == {0, 1, 2, 3}


def test_each_slice_gets_its_share_and_at_least_five() -> None:
    found = choose(random=0.06, by_slice=True)
    by_slice = Counter(number(name) % 4 == 0 for name in probabilities(found))
    assert by_slice == {False: 9, True: 5}
    assert {chance for name, chance in probabilities(found).items() if number(name) % 4 == 0} == {5 / 50}
    assert {chance for name, chance in probabilities(found).items() if number(name) % 4} == {9 / 150}
    with pytest.raises(UsageError, match="these results have no slices"):
        plain = answered([value("q1", "faithfulness", 0.5)], [sample("q1")])
        select_answers(plain, WantedSelection(by_slice=True))


def test_a_count_is_spread_over_the_slices() -> None:
    found = choose(random=40, by_slice=True)
    assert Counter(number(name) % 4 == 0 for name in probabilities(found)) == {False: 20, True: 20}


def test_an_answer_in_two_slices_can_be_drawn_from_both() -> None:
    samples = [sample(f"q{at}", slices=["a", "b"] if at == 0 else ["a"] if at < 10 else ["b"]) for at in range(19)]
    table = answered([value(f"q{at}", "faithfulness", 0.9) for at in range(19)], samples)
    for seed in range(40):
        chances = probabilities(
            select_answers(table, WantedSelection(random=10, by_slice=True, suspicions=(), seed=seed))
        )
        assert all(chance == (0.75 if name == "q0" else 0.5) for name, chance in chances.items())


def test_equal_seeds_choose_alike_and_the_order_says_nothing() -> None:
    first, again, other = choose(random=0.5), choose(random=0.5), choose(random=0.5, seed=7)
    assert first == again
    assert {one.key for one in first.chosen} != {one.key for one in other.chosen}
    places = [number(one.key[2]) for one in select_answers(evaluation(), WantedSelection(suspicions=("low",))).chosen]
    assert places != sorted(places)


def test_answers_that_fell_below_a_baseline_are_chosen() -> None:
    before = answered([value(f"q{at}", "faithfulness", 0.95) for at in range(COUNT)], [])
    found = select_answers(
        evaluation(), WantedSelection(random=0, suspicions=("regressed",)), BaselineValues("main", before)
    )
    assert {number(name) for name in probabilities(found)} == set(range(20))
    with pytest.raises(UsageError, match="name one: --baseline LABEL"):
        select_answers(evaluation(), WantedSelection(suspicions=("regressed",)))


def test_answers_of_all_systems_to_a_question_can_be_chosen_together() -> None:
    found = select_answers(evaluation(systems=("v1", "v2")), WantedSelection(random=0.1, suspicions=(), paired=True))
    assert found.population == 2 * COUNT
    by_question = Counter(one.key[2] for one in found.chosen)
    assert len(by_question) == 20
    assert set(by_question.values()) == {2}
    assert {one.probability for one in found.chosen} == {0.1}


def test_only_answers_of_a_system_or_a_slice() -> None:
    table = evaluation(systems=("v1", "v2"))
    found = select_answers(table, WantedSelection(random=0.5, suspicions=(), system="v2", slice="hard"))
    assert {(one.key[1], number(one.key[2]) % 4) for one in found.chosen} == {("v2", 0)}
    assert found.population == 50
    for wrong in ({"system": "v9"}, {"slice": "hardd"}, {"dataset": "x"}, {"metrics": ("faith",)}):
        with pytest.raises(UsageError, match="unknown"):
            select_answers(table, WantedSelection(**wrong))


def test_only_answered_questions_are_chosen() -> None:
    samples = [
        sample("q1", status="answered"), sample("q2", answer=None, status="failed"),
        sample("q3", answer=None, status="unfinished"),
    ]  # fmt: skip
    table = answered([value(f"q{at}", "faithfulness", 0.1) for at in (1, 2, 3)], samples)
    found = select_answers(table, WantedSelection())
    assert (list(probabilities(found)), found.population) == (["q1"], 1)


def test_without_answers_there_is_nothing_to_review() -> None:
    with pytest.raises(DataError, match="hold no answers that people could judge"):
        select_answers(evaluation(answer=None), WantedSelection())
    with pytest.raises(DataError, match="run it again with 'samples: texts'"):
        select_answers(alter(evaluation(answer=None), spec={"samples": "none"}), WantedSelection())
    with pytest.raises(DataError, match="no system, dataset and slice that you chose together have an answer"):
        select_answers(evaluation(answer=None), WantedSelection(system="v1"))
    with pytest.raises(DataError, match="no answer matches, so there is nothing to review"):
        choose(random=0, suspicions=("person",))


def unsure(number: float | None, details: dict[str, Any] | None = None, spec: dict[str, Any] | None = None) -> float:
    """How unsure the judge of one answer is; 0 if it is sure."""
    table = answered([value("q1", "faithfulness", number, details=details)], [sample("q1")])
    rated = rate_unsure(alter(table, spec=spec or {}), ["faithfulness"], 0.5)
    return next(iter(rated.values()), 0.0)


def test_a_value_near_the_threshold_is_unsure() -> None:
    assert unsure(0.5) == 1.0
    assert unsure(0.45) == pytest.approx(0.75)
    assert unsure(0.61) == unsure(0.39) == unsure(None) == 0.0


def test_the_scores_of_claims_count_instead_of_their_mean() -> None:
    assert unsure(0.5, {"claims": [{"text": "a", "score": 0.99}, {"text": "b", "score": 0.01}]}) == 0.0
    assert unsure(0.9, {"claims": [{"text": "a", "score": 0.99}, {"text": "b", "score": 0.5}]}) == 1.0


def test_members_of_a_panel_that_disagree_are_unsure() -> None:
    assert unsure(0.9, {"confidence": 0.4}) == pytest.approx(0.6)
    assert unsure(0.9, {"confidence": 0.7}) == 0.0


def test_a_later_step_of_a_cascade_decides_what_the_first_is_unsure_of() -> None:
    steps = [{"judge": "overlap", "low": 0.3}, "strict"]
    spec = {
        "judges": {"fast": {"use": "cascade", "steps": steps}},
        "metrics": [{"use": "faithfulness", "judge": "fast", "as": None}],
    }
    assert unsure(0.9, {"decided_by": "strict"}, spec) == 0.5
    assert unsure(0.9, {"decided_by": "overlap"}, spec) == 0.0
    assert unsure(0.9, {"decided_by": "strict"}) == 0.0


def test_steps_of_a_cascade_that_lie_apart_are_unsure() -> None:
    assert unsure(0.9, {"decided_by": "strict", "apart": 0.6}) == pytest.approx(0.6)
    assert unsure(0.9, {"decided_by": "strict", "apart": 0.2}) == 0.0


def test_low_values_are_those_below_the_bound_on_the_scale_of_the_metric() -> None:
    values = [value(f"q{at}", "faithfulness", number) for at, number in enumerate((0.0, 0.69, 0.7, 1.0))]
    values += [value(f"q{at}", "error_rate", number) for at, number in enumerate((0.0, 0.0, 0.2, 0.9))]
    table = answered(values, [sample(f"q{at}") for at in range(4)], lower_is_better=("error_rate",))
    rated = rate_low(table, ["faithfulness", "error_rate"], 0.7)
    assert {key[2]: round(rating, 2) for key, rating in rated.items()} == {"q0": 1.0, "q1": 0.31, "q3": 0.9}


def test_regressions_need_a_baseline_for_one_of_the_metrics_only() -> None:
    now = [value("q1", metric, 0.5) for metric in ("faithfulness", "completeness")]
    before = BaselineValues("main", answered([value("q1", "faithfulness", 0.8)], []))
    table = answered(now, [sample("q1")])
    rated = rate_regressed(table, ["completeness", "faithfulness"], before)
    assert {key[2]: round(fall, 2) for key, fall in rated.items()} == {"q1": 0.3}
    with pytest.raises(UsageError, match="the baseline lacks a value of completeness"):
        rate_regressed(table, ["completeness"], before)
    with pytest.raises(NoBaselineError):
        rate_regressed(table, ["completeness", "faithfulness"], None)


def test_what_a_waterfall_sent_to_a_person_is_found() -> None:
    reason = "sent to a person at retrieval: top similarity 0.20 is below 0.30"
    table = answered(
        [value("q1", "faithfulness", None, reason=reason), value("q2", "faithfulness", None, reason="no claims")],
        [sample("q1"), sample("q2")],
    )
    assert rate_person(table, ["faithfulness"]) == {("golden", "v1", "q1"): 1.0}


def test_metrics_of_judges_are_asked_about_and_without_them_those_from_0_to_1() -> None:
    judged = value("q1", "faithfulness", 0.5, details={"judge": "strict", "claims": []})
    others = [value("q1", "token_f1", 0.5), value("q1", "latency", 0.5), value("q1", "bleu", 31.0)]
    assert list_judged_metrics(answered([judged, *others], [sample("q1")])) == ("faithfulness",)
    assert list_judged_metrics(answered(others, [sample("q1")])) == ("token_f1",)
    assert list_judged_metrics(answered([value("q1", "token_f1", 0.5)], [sample("q1", answer=None)])) == ()
