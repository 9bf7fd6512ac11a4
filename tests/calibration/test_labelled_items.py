"""Labels are joined with the values, the claims and the answers that they belong to.

The samples of labelled items.

Samples of labelled answers are read back as judges read them.

How labelled answers were chosen, and what readers are told about it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from rageval_spec.calibration.labelled_items import (
    Joined,
    describe_sampling,
    explain_promise,
    explain_sampling,
    join_labels,
    read_item_samples,
    read_samples,
    weigh,
)
from rageval_spec.data.datasets import Design, DesignSummary
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.labels import Label, LabelScale, digest_answer
from rageval_spec.errors import DataError
from tests.answered_evaluation import ANSWER, CLAIMS, answered, sample, value

METRIC = "faithfulness"


def evaluation(*systems: str) -> Evaluation:
    values = [
        value(query_id, METRIC, number, system)
        for system in systems or ("v1",)
        for query_id, number in (("q1", 0.9), ("q2", 0.4), ("q3", 0.7), ("q4", None))
    ]
    return answered(values, [sample(f"q{number}", system) for system in systems or ("v1",) for number in (1, 2, 3, 4)])


def label(query_id: str, said: float | str, annotator: str = "ann", **more: Any) -> Label:
    return Label(query_id, METRIC, said, annotator, place="labels.csv:2", **more)


def join(*labels: Label, scale: LabelScale | None = None) -> Joined:
    return join_labels(evaluation(), labels, METRIC, scale)


def test_each_item_has_the_judges_value_and_the_mean_of_its_labels() -> None:
    joined = join(label("q1", 1.0), label("q2", 0.0), label("q2", 1.0, "bob"))
    assert joined.items == (("golden", "v1", "q1", None), ("golden", "v1", "q2", None))
    assert (joined.judged, joined.labelled) == ((0.9, 0.4), (1.0, 0.5))
    assert joined.others == {("golden", "v1", "q3", None): 0.7}
    assert len(joined.labels) == 3


def test_labels_of_questions_without_a_value_are_counted() -> None:
    joined = join(label("q1", 1.0), label("q4", 0.0), label("q9", 0.0))
    assert joined.unused == {"of a question, answer or claim without a value": 2}
    with pytest.raises(
        DataError, match="none of the 1 labels of faithfulness belongs to a value of these results: 1 is of a"
    ):
        join(label("q9", 0.0))


def test_labels_of_systems_that_are_not_there_name_them() -> None:
    joined = join(label("q1", 1.0), label("q2", 0.0, system="v7"), label("q2", 0.0, dataset="silver"))
    assert joined.unused == {
        "of the unknown system 'v7'": 1,
        "of the unknown dataset 'silver'": 1,
    }


def test_labels_follow_the_answers_text() -> None:
    joined = join(label("q1", 1.0, answer=digest_answer(ANSWER)), label("q2", 1.0, answer=digest_answer("another")))
    assert [item[2] for item in joined.items] == ["q1"]
    assert joined.unused == {"of an answer that has changed": 1}


def test_a_scale_maps_its_worst_and_best_to_0_and_1() -> None:
    assert join(label("q1", 5.0), label("q2", 2.0), scale=LabelScale(1, 5)).labelled == (1.0, 0.25)
    assert join(label("q1", 1.0), scale=LabelScale(5, 1)).labelled == (1.0,)
    with pytest.raises(
        DataError, match=r"labels\.csv:2: the label 4 lies outside the scale from 0 to 1; .*--scale 1\.\.5"
    ):
        join(label("q1", 4.0))


def test_classes_of_claims_are_numbers_and_other_words_are_refused() -> None:
    assert join(label("q1", "supported"), label("q2", "contradicted")).labelled == (1.0, 0.0)
    with pytest.raises(DataError, match=r"labels\.csv:2: 'good' is not a number; .* or one of supported, contradicted"):
        join(label("q1", "good"))


def test_labels_of_claims_are_compared_with_the_judges_decisions() -> None:
    details = {"claims": list(CLAIMS), "part": "answer", "judge": "strict"}
    table = answered([value("q1", METRIC, 0.5, details=details)], [sample("q1")])
    joined = join_labels(table, [label("q1", "supported", claim=1)], METRIC)
    assert joined.items == (("golden", "v1", "q1", 1),)
    assert (joined.judged, joined.labelled) == ((0.0,), (1.0,))
    assert joined.others == {("golden", "v1", "q1", 0): 1.0}
    with pytest.raises(DataError, match="some labels of faithfulness are of claims and some of whole answers"):
        join_labels(table, [label("q1", 1.0), label("q1", 1.0, claim=1)], METRIC)


def test_a_label_says_its_system_if_several_have_the_metric() -> None:
    both = evaluation("v1", "v2")
    with pytest.raises(DataError, match=r"labels\.csv:2: the label does not name its system, .*: v1, v2; add a column"):
        join_labels(both, [label("q1", 1.0)], METRIC)
    assert join_labels(both, [label("q1", 1.0, system="v2")], METRIC).items == (("golden", "v2", "q1", None),)


def test_answers_that_were_rarely_chosen_for_labelling_weigh_more() -> None:
    assert join(label("q1", 1.0, probability=0.5), label("q2", 0.0, probability=1.0)).weights == (2.0, 1.0)
    assert join(label("q1", 1.0), label("q2", 0.0)).weights is None


def test_questions_of_one_cluster_are_one_draw() -> None:
    design = Design({"q1": 0, "q2": 0}, summary=DesignSummary(4, cluster="source"))
    clustered = replace(evaluation(), load_question_designs=lambda: {"golden": design})
    joined = join_labels(clustered, [label("q1", 1.0), label("q2", 0.0), label("q3", 1.0)], METRIC)
    assert joined.clusters == (("golden", 0), ("golden", 0), ("golden", "q3"))
    assert joined.questions == (("golden", "q1"), ("golden", "q2"), ("golden", "q3"))
    assert join(label("q1", 1.0)).clusters == (("golden", "q1"),)


def test_each_item_has_the_sample_of_its_system() -> None:
    values = [value("q1", "faithfulness", 0.5, system) for system in ("v1", "v2", "v3")]
    evaluation = answered(values, [sample("q1", system, answer=f"by {system}") for system in ("v1", "v2")])
    labels = [Label("q1", "faithfulness", 1.0, "ann", system=system) for system in ("v2", "v3")]
    found = read_item_samples(evaluation, join_labels(evaluation, labels, "faithfulness"))
    assert {item[1]: row.get("answer") for item, row in found.items()} == {"v2": "by v2", "v3": None}


EVALUATION = answered(
    [value("q1", "faithfulness", 1.0)],
    [
        sample("q1", contexts=["A.", "B."], context_ids=["a", "b"], references=["R."], columns='{"topic": "x"}'),
        sample("q2", references=[]),
        sample("q3", answer=None, error="HTTP 500"),
    ],
)


def test_every_part_that_a_judge_can_read_is_there() -> None:
    found = read_samples(EVALUATION, [("golden", "v1", "q1"), ("golden", "v1", "q2")])
    first, second = found["golden", "v1", "q1"], found["golden", "v1", "q2"]
    assert (first.query_id, first.question, first.answer) == ("q1", "Question q1?", ANSWER)
    assert (first.contexts, first.context_ids, first.references) == (("A.", "B."), ("a", "b"), ("R.",))
    assert first.columns == {"topic": "x"}
    assert (second.contexts, second.references, second.columns) == (None, (), None)


def test_answers_without_texts_are_counted() -> None:
    wanted = [("golden", "v1", "q1"), ("golden", "v1", "q3"), ("golden", "v2", "q1")]
    with pytest.raises(DataError, match="the results lack the texts of 2 of 3 answers, so no judge can read them"):
        read_samples(EVALUATION, wanted)


def item(probability: float | None, reason: str = "random") -> list[Label]:
    return [Label("q", "m", 1.0, "ann", reason=reason, probability=probability)]


def explain(*items: list[Label]) -> str:
    return " ".join(explain_sampling(describe_sampling(items)))


def test_equal_chances_need_no_weights_and_no_words() -> None:
    assert weigh([item(0.25), item(0.25)]) is None
    assert explain(item(0.25), item(0.25)) == explain(item(None, ""), item(None, "")) == ""


def test_an_answer_that_was_rarely_chosen_counts_more() -> None:
    assert weigh([item(1.0, "low"), item(0.05)]) == (1.0, 20.0)
    told = explain(item(1.0, "low + random"), item(0.05))
    assert "chosen with unequal probabilities, from 0.05 to 1." in told
    assert "drawn at random" not in told


def test_without_all_probabilities_nothing_is_weighted_and_this_is_said() -> None:
    assert weigh([item(0.5), item(None), item(0.1)]) is None
    assert explain(item(0.5), item(None)).startswith("Only 1 of 2 labelled answers have a probability of selection")


def test_answers_that_were_only_picked_for_a_reason_speak_for_no_others() -> None:
    told = explain(item(1.0, "low"), item(1.0, "low + unsure"))
    assert told.startswith("No labelled answer was drawn at random: they are there because of low, unsure.")
    assert explain(item(None, "the date is wrong")) == ""


def test_labels_of_people_who_saw_the_judge_are_counted() -> None:
    seen = Label("q", "m", 1.0, "ann", saw_judge=True)
    assert explain([seen], item(None, "")).startswith("1 of 2 labels are from people who had seen the judge's verdict.")


def test_two_people_who_judged_one_answer_share_its_probability() -> None:
    both = [*item(0.5), *item(None)]
    assert weigh([both, item(1.0)]) == (2.0, 1.0)


def test_a_promise_from_answers_that_were_picked_is_one_about_such_answers() -> None:
    drawn = [item(0.25), item(0.25)], [item(None, ""), item(None, "")]
    for sampling in (None, *map(describe_sampling, drawn)):
        assert [*explain_promise(sampling)] == []
    for picked in ([item(1.0, "low"), item(0.05)], [item(0.5), item(None)], [item(1.0, "low"), item(1.0, "low")]):
        (told,) = explain_promise(describe_sampling(picked))
        assert told.startswith("! ") and "not at random" in told


def test_the_order_of_a_file_of_labels_changes_nothing() -> None:
    given = [label(f"q{number}", said, who) for number in (3, 1, 2) for said, who in ((1.0, "eve"), (0.0, "ann"))]
    first = join(*given)
    assert first.items == tuple(("golden", "v1", f"q{number}", None) for number in (1, 2, 3))
    for order in permutations(given):
        assert join(*order) == first


def test_an_answer_that_two_selections_chose_was_chosen_by_either() -> None:
    chosen = [
        label("q1", 1.0, probability=0.1, reason="random"),
        label("q1", 1.0, "bob", probability=0.5, reason="low"),
    ]
    joined = join(*chosen, label("q2", 0.0, probability=0.1, reason="random"))
    assert joined.sampling is not None
    assert joined.weights == pytest.approx((1 / (1 - 0.9 * 0.5), 10))
    assert "1 labelled answer came from several selections" in " ".join(explain_sampling(joined.sampling))
    alone = join(label("q1", 1.0, probability=0.1), label("q1", 1.0, "bob", probability=0.1))
    assert alone.sampling is not None and (alone.sampling.repeated, alone.sampling.highest) == (0, 0.1)
