from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.chat import ChatRequest
from rageval_spec.data.findings import Finding
from rageval_spec.plugin import Judge
from rageval_spec.registry import load
from tests.judging.fakes import FakeChatModel, context_with
from tests.metrics.judges import RuleJudge, calls, measure, metric, sample, value_of

TEXTS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6)


def test_hand_worked() -> None:
    # the question asks for the height and the year; one of three claims is about neither
    one = sample(question="330 m|1889", answer="330 m|1889|a fine tower")
    (found,) = measure(metric("conciseness", RuleJudge()), one)
    assert found.value == pytest.approx(2 / 3)
    assert found.details == {
        "score": found.value,
        "claims": [
            {"text": "330 m", "score": 1.0, "verdict": "supported", "start": 0, "end": 5},
            {"text": "1889", "score": 1.0, "verdict": "supported", "start": 6, "end": 10},
            {"text": "a fine tower", "score": 0.0, "verdict": "not_enough_info", "start": 11, "end": 23},
        ],
        "part": "claims",
        "against": "question",
        "judge": "rule",
    }


@given(TEXTS, TEXTS)
def test_needed_claims_over_claims(question: list[str], answer: list[str]) -> None:
    one = sample(question="|".join(question), answer="|".join(answer))
    expected = sum(claim in question for claim in answer) / len(answer)
    assert value_of(metric("conciseness", RuleJudge()), one) == pytest.approx(expected)


def test_repeated_claims_have_two_places() -> None:
    (found,) = measure(metric("conciseness", RuleJudge()), sample(question="a", answer="a|b|a"))
    assert found.details is not None
    assert [claim["start"] for claim in found.details["claims"]] == [0, 2, 4]


def test_paraphrased_claims_have_no_place() -> None:
    judge = RuleJudge()
    judge.claims = lambda texts: [("It is high.", "b") for _ in texts]  # type: ignore[method-assign]
    (found,) = measure(metric("conciseness", judge), sample(question="b", answer="a|b"))
    assert found.details is not None
    assert [claim.get("start") for claim in found.details["claims"]] == [None, 2]


def test_the_judge_sees_question_and_claims_and_not_the_contexts() -> None:
    judge = RuleJudge()
    seen = []
    judge.say = lambda one: seen.append(one.claims)
    measure(metric("conciseness", judge), sample(answer="a|b", contexts=("what it was made from",)))
    assert seen == [("a", "b")]
    assert judge.criteria[0].shown == ("question", "claims")


def test_edges() -> None:
    judge = RuleJudge()
    samples = [
        sample("1", "a", answer=""),
        sample("2", "a", answer="|"),
        sample("3", "a", answer="broken|a"),
        sample("4", "a", answer="a"),
        sample("5", "broken", answer="a"),
    ]
    found = measure(metric("conciseness", judge), *samples)
    assert [(one.value, one.status, one.reason) for one in found] == [
        (None, "unscorable", "the answer is empty"),
        (None, "unscorable", "the answer makes no claim"),
        (None, "error", "no claims came"),
        (1.0, "scored", None),
        (None, "error", "the reply is no JSON"),
    ]
    assert judge.asked == [("claims", ("|", "broken|a", "a", "a")), ("conciseness", ("4", "5"))]
    assert calls(metric("conciseness", judge).estimate(samples[3:4])) == ["claims 1 a a", "usefulness a > a"]


def test_a_judge_that_only_grades() -> None:
    judge = RuleJudge(abilities=frozenset({"grade"}), say=lambda _: Finding(0.8, reason="a little long"))
    (found,) = measure(metric("conciseness", judge), sample(answer="a"))
    assert (found.value, found.reason) == (0.8, "a little long")
    assert (judge.criteria[0].kind, judge.criteria[0].shown) == ("grade", ("question", "answer"))


def test_refusals_need_no_judge_and_the_rest_of_the_answer_is_judged() -> None:
    samples = [
        sample("1", answer="I don't know."),
        sample("2", answer="Sorry, but I cannot answer that."),
        sample("3", answer="I don't know when, but he was born in Ulm."),
    ]
    judge = RuleJudge()
    found = measure(metric("conciseness", judge), *samples)
    assert [(one.value, one.status) for one in found] == [(None, "unscorable"), (None, "unscorable"), (0.0, "scored")]
    assert [one.reason for one in found[:2]] == [
        "the answer refuses: 'i don't know'",
        "the answer refuses: 'i cannot answer'",
    ]
    assert [name for name, _ in judge.asked] == ["claims", "conciseness"]


def answer_every_question(request: ChatRequest) -> dict[str, Any]:
    """Two needed claims; a score of 1 for all other questions."""
    assert request.schema is not None
    asked = request.schema["properties"]
    if "claims" in asked:
        claims = ("The tower is 330 m tall.", "It is in Paris.")
        return {"claims": [{"sentence": number, "claim": claim} for number, claim in enumerate(claims, 1)]}
    if "verdicts" in asked:
        return {"verdicts": [{"context": number, "reason": None, "verdict": "yes"} for number in (1, 2)]}
    return {key: {"reason": None, "scores": [1, 1]} for key in asked}


@pytest.mark.parametrize(
    ("words", "digests"),
    [
        (["claims"], ["0ddc825801bd9f48", "24f615706bab9ca3"]),
        (["claims", "scores"], ["0ddc825801bd9f48", "24f615706bab9ca3", "2ea82fec3ad83f8d"]),
    ],
)
def test_the_digests_of_stored_replies_never_change(words: list[str], digests: list[str]) -> None:
    model = FakeChatModel(answer_every_question)
    judges: dict[str, Judge[Any]] = {}
    for word in (*words, *["panel"][: len(words) - 1]):
        plugin = load("judges", word)
        keys: dict[str, Any] = {"judges": words} if word == "panel" else {"model": "llm"}
        node = plugin.node_type.model_validate({"use": word, **keys})
        judges[word] = plugin(node, replace(context_with(model), name=word, judges=judges))
    measured = metric("conciseness", [*judges.values()][-1])
    one = sample(
        question="How tall is the tower?",
        answer="The tower is 330 m tall. It is in Paris.",
        contexts=("The tower stands in Paris.",),
        reference="330 m.",
    )
    measured.judges()[0].expect(measured.criteria())
    measure(measured, one)
    assert [request.digest.hex()[:16] for request in model.calls] == digests


def test_a_metric_that_judges_contexts_never_sees_the_claims_of_another() -> None:
    judge = RuleJudge()
    one = sample(question="a", answer="a|b", contexts=("c",), reference="a")
    measure(metric("conciseness", judge), one)
    assert one.claims is None and judge.criteria[0].text == "claims"
