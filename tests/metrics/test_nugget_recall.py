from __future__ import annotations

from rageval_spec.data.findings import Claim, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import replace
from tests.metrics import citing
from tests.metrics.citing import answer
from tests.metrics.judges import RuleJudge, calls, measure, metric, value_of

TEXT = "Red [1]. Green [1]. Blue [9]. Red grey."


def reading() -> RuleJudge:
    """A judge that finds the words of a statement in its passage, and nuggets in the answer."""
    of_statements = citing.reading().say

    def say(one: Sample) -> Finding | Failed | None:
        if one.claims is None:
            return of_statements(one)
        met = [claim in (one.answer or "").lower() for claim in one.claims]
        claims = [Claim(claim, float(is_met), "supported" if is_met else "not_enough_info")
                  for claim, is_met in zip(one.claims, met, strict=True)]  # fmt: skip
        return Finding(sum(met) / len(met), tuple(claims))

    return RuleJudge(say=say)


def ask(text: str, *nuggets: str, passages: tuple[str, ...] = ("red", "green")) -> Sample:
    listed = [{"text": one, "importance": "vital"} for one in nuggets]
    return replace(answer(text, *passages), columns={"nuggets": listed})


def test_only_statements_that_their_citations_support_have_nuggets() -> None:
    # "Green" cites the passage of red, "Blue" one that is not there, and "Red grey" nothing
    one = ask(TEXT, "red", "green", "blue", "grey")
    (found,) = measure(metric("nugget_recall", reading()), one)
    assert found.value == 1 / 4
    assert found.details is not None
    assert [claim["assignment"] for claim in found.details["claims"]] == ["support", *["not_support"] * 3]
    assert value_of(metric("nuggets", reading()), one) == 1


def test_a_nugget_in_two_statements_counts_once() -> None:
    assert value_of(metric("nugget_recall", reading()), ask("Red [1]. Red [1]. Green [2].", "red", "green")) == 1


def test_edges() -> None:
    built = metric("nugget_recall", reading())
    found = measure(built, ask("", "red"), ask("Red.", "red"), ask("Red [1]."), ask("Red [1][2].", "red"))
    assert [(one.value, one.reason) for one in found] == [
        (0.0, "the answer is empty"),
        (0.0, "no statement of the answer is supported by what it cites"),
        (None, "the question has no nuggets"),
        (0.0, "no statement of the answer is supported by what it cites"),
    ]


def test_the_statements_are_asked_about_once_for_this_and_sentence_precision() -> None:
    one = ask("Red [1]. Green [2].", "red", "green")
    cited = {*calls(metric("sentence_precision", reading()).estimate([one]))}
    assert len(cited) == 2
    assert cited < {*calls(metric("nugget_recall", reading()).estimate([one]))}
