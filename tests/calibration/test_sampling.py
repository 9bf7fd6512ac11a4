"""How labelled answers were chosen, and what readers are told about it."""

from __future__ import annotations

from rageval_spec.calibration.sampling import describe_sampling, explain_promise, explain_sampling, weigh
from rageval_spec.data.labels import Label


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
    assert explain([seen], item(None, "")).startswith(
        "1 of 2 labels came from people who had seen what the judge says."
    )


def test_two_people_who_judged_one_answer_share_its_probability() -> None:
    both = [*item(0.5), *item(None)]
    assert weigh([both, item(1.0)]) == (2.0, 1.0)


def test_a_promise_from_answers_that_were_picked_is_one_about_such_answers() -> None:
    assert explain_promise(None) is None
    assert explain_promise(describe_sampling([item(0.25), item(0.25)])) is None
    assert explain_promise(describe_sampling([item(None, ""), item(None, "")])) is None
    for picked in ([item(1.0, "low"), item(0.05)], [item(0.5), item(None)], [item(1.0, "low"), item(1.0, "low")]):
        assert "not at random" in (explain_promise(describe_sampling(picked)) or "")
