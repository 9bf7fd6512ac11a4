from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.chat import ChatRequest
from rageval_spec.data.evidence.nuggets import Nugget
from rageval_spec.data.findings import Claim, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.judges.assignment import AssignmentJudge, AssignmentNode
from rageval_spec.plugin import AnswerMetric, Judge, JudgeNode
from rageval_spec.registry import load
from tests.judging.fakes import FakeChatModel, context_with
from tests.metrics.judges import RuleJudge, calls, measure, metric, sample, value_of

LABELS = {"s": "support", "p": "partial_support", "n": "not_support"}
RECORDED = [json.loads(line) for line in (Path(__file__).parent / "nugget_scores.jsonl").read_text().splitlines()]


def ask(*nuggets: object, answer: str = "a", **parts: Any) -> Sample:
    return sample(answer=answer, columns={"nuggets": [*nuggets]}, **parts)


def vital(text: str) -> dict[str, str]:
    return {"text": text, "importance": "vital"}


def okay(text: str) -> dict[str, str]:
    return {"text": text, "importance": "okay"}


def use(judge: Judge[Any], **keys: Any) -> AnswerMetric[Any]:
    return metric("nuggets", judge, **keys)


def assign(labels: str) -> Judge[Any]:
    """A chat judge whose model gives these labels, such as "spn", by the numbers in the facts `fact 0`, `fact 1`."""

    def reply(request: ChatRequest) -> dict[str, Any]:
        asked = [line for line in request.messages[-1].content.splitlines() if line.startswith('"fact ')]
        said = [LABELS[labels[int(json.loads(line).split()[1])]] for line in asked]
        return {"assignments": [{"fact": at, "label": label} for at, label in enumerate(said, 1)]}

    return AssignmentJudge(AssignmentNode(use="assignment", model="llm"), context_with(FakeChatModel(reply)))


def test_hand_worked() -> None:
    # two of three vital nuggets, one of them in part; one of two okay nuggets
    one = ask(vital("fact 0"), okay("fact 1"), vital("fact 2"), vital("fact 3"), okay("fact 4"))
    judge = assign("sspnn")
    assert value_of(use(judge), one) == 1 / 3
    assert value_of(use(judge, partial=0.5), one) == 0.5
    assert value_of(use(judge, count="all"), one) == 2 / 5
    assert value_of(use(judge, count="all", partial=0.5), one) == 2.5 / 5
    assert value_of(use(judge, count="weighted"), one) == (1 + 0.5) / (3 + 1)
    (found,) = measure(use(judge), one)
    assert found.reason == "lacks 1 of 3 nuggets and has 1 only in part: 'fact 2', 'fact 3'"
    assert found.details is not None
    claims = found.details["claims"]
    assert [(one["importance"], one["assignment"], one["verdict"], one["score"]) for one in claims] == [
        ("vital", "support", "supported", 1.0),
        ("okay", "support", "supported", 1.0),
        ("vital", "partial_support", "not_enough_info", 0.5),
        ("vital", "not_support", "not_enough_info", 0.0),
        ("okay", "not_support", "not_enough_info", 0.0),
    ]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda one: one["labels"].replace(" ", ""))
def test_equal_to_nuggetizer_and_open_rag_eval(recorded: dict[str, Any]) -> None:
    """Recorded labels ("vs op": vital and supported, okay and supported in part) and the scores of others for them.

    The scores are those of `calculate_nugget_scores` in nuggetizer 0.0.5 and of `AutoNuggetMetric._evaluate_answer` in
    open-rag-eval 0.3.0, which were called with the same labels.
    """
    labels = recorded["labels"].split()
    kinds = {"v": vital, "o": okay}
    one = ask(*(kinds[label[0]](f"fact {number}") for number, label in enumerate(labels)))
    judge = assign("".join(label[1] for label in labels))
    theirs, others = recorded["nuggetizer"], recorded["open_rag_eval"]
    for count, strict, lenient, name in (
        ("vital", theirs["strict_vital"], theirs["vital"], "Vital"),
        ("all", theirs["strict_all"], theirs["all"], "All"),
    ):
        assert value_of(use(judge, count=count), one) == strict == others[f"{name} Strict"]
        assert value_of(use(judge, count=count, partial=0.5), one) == lenient == others[name]
    if any(label[0] == "o" for label in labels):  # else theirs adds half an okay nugget that is not there
        assert value_of(use(judge, count="weighted"), one) == others["Weighted Strict"]
        assert value_of(use(judge, count="weighted", partial=0.5), one) == others["Weighted"]
    else:
        assert value_of(use(judge, count="weighted"), one) == theirs["strict_vital"]


@given(
    st.lists(st.tuples(st.sampled_from(["vital", "okay"]), st.sampled_from("abcdef")), min_size=1, max_size=6,
             unique_by=lambda one: one[1]),
    st.sets(st.sampled_from("abcdef"), min_size=1),
    st.sampled_from(["vital", "all", "weighted"]),
)  # fmt: skip
def test_share_of_the_facts(
    nuggets: list[tuple[str, str]], answer: set[str], count: Literal["vital", "all", "weighted"]
) -> None:
    one = ask(*({"importance": how, "text": text} for how, text in nuggets), answer="|".join(sorted(answer)))
    weights = {"vital": {"vital": 1.0}, "all": {"vital": 1.0, "okay": 1.0}, "weighted": {"vital": 1.0, "okay": 0.5}}
    of = weights[count]
    total = sum(of.get(how, 0) for how, _ in nuggets)
    (found,) = measure(use(RuleJudge(), count=count), one)
    if not total:
        assert (found.status, found.value) == ("unscorable", None)
    else:
        assert found.value == pytest.approx(sum(of.get(how, 0) for how, text in nuggets if text in answer) / total)


def test_edges() -> None:
    found = measure(
        use(RuleJudge()),
        ask(vital("a"), answer=" "),
        ask(okay("a"), okay("b")),
        ask(),
        ask(vital("broken")),
        sample(answer="a", columns={"nuggets": 3}),
        sample(answer="a", columns={"nuggets": '["a", {"text": ""}]'}),
        ask("a", {"claim": "b"}),  # nuggets without importance are vital
    )
    assert [(one.value, one.status, one.reason) for one in found] == [
        (0.0, "scored", "the answer is empty"),
        (None, "unscorable", "none of 2 nuggets is vital"),
        (None, "unscorable", "the question has no nuggets"),
        (None, "error", "the reply is no JSON"),
        (None, "error", "the column 'nuggets' must be a list; a nugget is a text, or an object such as "
                        '{"text": "...", "importance": "vital"}'),
        (None, "error", "the column 'nuggets'[1] has no text; a nugget is a text, or an object such as "
                        '{"text": "...", "importance": "vital"}'),
        (0.5, "scored", "lacks 1 of 2 nuggets: 'b'"),
    ]  # fmt: skip
    assert sample(answer="a").lacks("nuggets")
    assert sample(answer="a", columns={"nuggets": None}).lacks("nuggets")


def test_a_nugget_of_which_the_judge_says_nothing_is_an_error() -> None:
    (found,) = measure(use(load_overlap()), ask(vital("Paris"), vital("of the")))
    assert (found.status, found.reason) == ("error", "the judge gave no verdict on the nugget 2: 'of the'")
    judge = RuleJudge(say=lambda one: Finding(1.0, (Claim("a", 1.0, "supported"),)))
    (found,) = measure(use(judge), ask(vital("a"), vital("b")))
    assert found.status == "error"
    judge = RuleJudge(say=lambda one: Failed("no reply", is_unfinished=True))
    (found,) = measure(use(judge), ask(vital("a")))
    assert (found.status, found.is_unfinished) == ("error", True)


def load_overlap() -> Judge[Any]:
    judge: Judge[Any] = load("judges", "overlap")(
        load("judges", "overlap").node_type(use="overlap"), RuleJudge().context
    )
    return judge


def test_sentences_of_one_nugget_belong_together() -> None:
    one = ask(
        vital("The tower is in Paris. Its mast was raised by divers."),
        vital("The tower is in Paris."),
        answer="The tower is in Paris.",
    )
    (found,) = measure(use(load_overlap(), partial=0.5), one)
    assert found.details is not None
    assert [one["assignment"] for one in found.details["claims"]] == ["partial_support", "support"]
    assert found.value == 0.75


@pytest.mark.parametrize(
    ("aggregator", "answer", "expected"),
    [
        ("OR", "q b", "support"),
        ("AND", "q b", "partial_support"),
        ("AND", "q a|q b", "support"),
        ("OR", "x", "not_support"),
        ("AND", "x", "not_support"),
    ],
)
def test_answers_of_a_nugget(aggregator: str, answer: str, expected: str) -> None:
    nugget = {"question": "q", "answers": ["a", "b"], "aggregator_type": aggregator}
    (found,) = measure(use(RuleJudge()), ask(nugget, answer=answer))
    assert found.details is not None
    assert [(one["text"], one["assignment"]) for one in found.details["claims"]] == [("q", expected)]


def test_and_with_different_labels_is_partial() -> None:
    nugget = Nugget("q", answers=("a", "b"), aggregator="AND")
    assert nugget.statements == ("q a", "q b")
    assert nugget.combine(["support", "not_support"]) == "partial_support"
    assert nugget.combine(["partial_support", "partial_support"]) == "partial_support"


def test_metrics_with_other_counts_share_the_calls() -> None:
    model = FakeChatModel(lambda _: {"assignments": [{"fact": 1, "label": "support"}, {"fact": 2, "label": "support"}]})
    judge = AssignmentJudge(AssignmentNode(use="assignment", model="llm"), context_with(model))
    one = ask(vital("x"), okay("y"))
    expected = use(judge).estimate([one])
    assert len(calls(expected)) == 1
    for count in ("vital", "all", "weighted"):
        assert value_of(use(judge, count=count), one) == 1.0
    assert len(model.calls) == 1
    assert calls(use(judge).estimate([one])) == []


def test_what_needs_no_judge_is_not_asked() -> None:
    judge = RuleJudge()
    measure(use(judge), ask(okay("a")), ask(vital("a"), answer=""), ask(vital("a"), query_id="asked"))
    assert judge.asked == [("nuggets", ("asked",))]
    assert calls(use(judge).estimate([ask(okay("a"))])) == []


def test_a_judge_that_only_grades_is_refused() -> None:
    judge = RuleJudge(abilities=frozenset({"grade"}))
    assert isinstance(judge.node, JudgeNode)
    assert "cannot decide which claims of a text are supported; use assignment" in (use(judge).check() or "")


@pytest.mark.parametrize("word", ["binary", "claims"])
def test_chat_judges_decide_each_nugget(word: str) -> None:
    """Nuggets are judged as they are: not split into claims, and not all as one text."""

    def reply(request: ChatRequest) -> dict[str, Any]:
        asked = request.messages[-1].content
        if word == "binary":
            return {"reason": "so", "verdict": "yes" if '"It is old. It is high."' in asked else "no"}
        assert '<claim number="2">\n"x"' in asked
        said = {"source": 1, "evidence": "", "reason": "so"}
        return {
            "verdicts": [{"claim": 1, **said, "verdict": "supported"}, {"claim": 2, **said, "verdict": "contradicted"}]
        }

    judge = load("judges", word)
    built = judge(judge.node_type(use=word, model="llm"), context_with(FakeChatModel(reply)))
    (found,) = measure(use(built), ask(vital("It is old. It is high."), vital("x")))
    assert found.details is not None
    assert [one["assignment"] for one in found.details["claims"]] == ["support", "not_support"]
    assert found.value == 0.5


def test_a_nugget_that_does_not_count_needs_no_verdict() -> None:
    one = ask(vital("opens on Monday"), okay("It can be"), answer="The shop opens on Monday.")
    said = Finding(1.0, (Claim("opens on Monday", 1.0, "supported", start=0, end=15),))
    (found,) = measure(use(RuleJudge(say=lambda sample: said)), one)
    assert (found.value, found.status) == (1.0, "scored")
