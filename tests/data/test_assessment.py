from __future__ import annotations

import pytest

from rageval_spec.data.assessment import Criterion, Estimate, TextPart, Tokens, is_supported, read_part, replace_texts
from rageval_spec.data.sample import Sample

SAMPLE = Sample(
    "q1", "Why?", "Because.", ("one", "two"), references=("So.", "Thus."), reference_contexts=("three",)
)  # fmt: skip


@pytest.mark.parametrize(
    ("part", "texts"),
    [
        ("question", ("Why?",)),
        ("answer", ("Because.",)),
        ("reference", ("So.",)),
        ("contexts", ("one", "two")),
        ("reference_contexts", ("three",)),
        ("claims", ()),
    ],
)
def test_the_texts_of_a_part(part: TextPart, texts: tuple[str, ...]) -> None:
    assert read_part(SAMPLE, part) == texts


@pytest.mark.parametrize("part", ["answer", "reference", "contexts", "reference_contexts", "claims"])
def test_an_unknown_part_has_no_texts(part: TextPart) -> None:
    assert read_part(Sample("q1", "Why?"), part) == ()


def test_a_criterion_selects_the_texts_to_judge_and_their_sources() -> None:
    criterion = Criterion("recall", "support", "Is it?", text="contexts", against="reference")
    assert criterion.text_of(SAMPLE) == "one\n\ntwo"
    assert criterion.sources_of(SAMPLE) == ("So.",)


def test_replacing_texts_replaces_claims_or_contexts() -> None:
    claims = replace_texts(SAMPLE, Criterion("brief", "usefulness", "Is it?", text="claims"), ("a",))
    contexts = replace_texts(SAMPLE, Criterion("useful", "usefulness", "Is it?", text="contexts"), ("a",))
    assert (claims.claims, claims.contexts) == (("a",), ("one", "two"))
    assert (contexts.claims, contexts.contexts) == (None, ("a",))


def test_calls_that_two_metrics_share_are_counted_once() -> None:
    first = Estimate({"small": {"a": Tokens(1, 2), "b": Tokens(3, 4)}})
    second = Estimate({"small": {"b": Tokens(3, 4), "c": Tokens(5, 6)}, "large": {"a": Tokens(7, 8)}})
    both = first | second
    assert {model: sorted(calls) for model, calls in both.calls.items()} == {"small": ["a", "b", "c"], "large": ["a"]}
    assert (Estimate() | first).calls == first.calls


def test_a_verdict_decides_and_a_score_only_without_one() -> None:
    assert is_supported("supported", 0.0)
    assert not is_supported("contradicted", 1.0)
    assert not is_supported("unsupported", 1.0)
    assert is_supported(None, 0.5)
    assert not is_supported(None, 0.49)
