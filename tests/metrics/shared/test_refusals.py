from __future__ import annotations

import pytest

from rageval_spec import registry
from rageval_spec.metrics.shared.refusals import RefusalAwareMetric
from tests.metrics.judges import RuleJudge, TableModel, metric, sample

WORDS = [word for word in registry.words("metrics") if issubclass(registry.load("metrics", word), RefusalAwareMetric)]
OWN = "Ask the desk; I am only a bot."


def test_every_metric_that_looks_at_refusals_takes_phrases() -> None:
    assert {*WORDS} >= {
        "answer_correctness", "answer_relevancy", "conciseness", "factual_correctness", "faithfulness",
        "noise_sensitivity",
    }  # fmt: skip
    assert "phrases" in registry.load("metrics", "answerability").node_type.model_fields


@pytest.mark.parametrize("word", [word for word in WORDS if word != "answer_correctness"])
@pytest.mark.parametrize("answer", ["Das weiß ich leider nicht.", "Sorry! ask the desk;  I am only a bot."])
def test_a_refusal_in_any_language_or_with_a_listed_phrase_needs_no_judge(word: str, answer: str) -> None:
    judge = RuleJudge()
    built = metric(word, judge, TableModel({}), phrases=[OWN])
    one = sample(question="a", answer=answer, contexts=("a",), reference="a")
    (found,) = built.compute([one]).measurements
    assert str(found.reason).startswith("the answer refuses: '")
    assert judge.asked == []


def test_the_reason_names_the_phrase_of_the_spec() -> None:
    built = metric("faithfulness", RuleJudge(), phrases=[OWN])
    (found,) = built.compute([sample(answer=OWN, contexts=("a",))]).measurements
    assert (found.status, found.reason) == ("unscorable", "the answer refuses: 'ask the desk; i am only a bot.'")


@pytest.mark.parametrize("word", WORDS)
def test_phrases_change_the_key_but_not_the_name(word: str) -> None:
    plain, own = (metric(word, RuleJudge(), phrases=phrases) for phrases in ([], [OWN]))
    assert plain.name == own.name == word
    assert "phrases" not in plain.content()["node"]
    assert own.content()["node"]["phrases"] == [OWN]
