from __future__ import annotations

from typing import Any

from rageval_spec.exchange.shared.span_tree import SpanTree
from rageval_spec.exchange.shared.spans import Span


def _span(number: int, parent: int | None, start: int = 1, end: int = 2, **attributes: Any) -> Span:
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return Span("1" * 32, f"{number:016x}", None if parent is None else f"{parent:016x}", "", start, end, named)


def _asked(number: int, parent: int | None, **attributes: Any) -> Span:
    return _span(number, parent, input__value=f"q{number}", output__value="a", **attributes)


def _numbers(spans: list[Span]) -> list[int]:
    return [int(span.span_id, 16) for span in spans]


def test_spans_whose_parent_is_missing_are_roots() -> None:
    tree = SpanTree([_span(3, 2), _span(2, 1), _span(5, 9)])
    assert _numbers(tree.roots) == [2, 5] and _numbers(list(tree.walk(tree.roots[0]))) == [2, 3]


def test_of_two_spans_with_one_id_the_later_counts() -> None:
    tree = SpanTree([_span(1, None, end=5, a=1), _span(1, None, end=2, a=2)])
    assert [span.attributes for span in tree.spans] == [{"a": 1}]


def test_steps_are_no_questions_of_their_own() -> None:
    tree = SpanTree([_asked(1, None), _asked(2, 1), _asked(3, 1, openinference__span__kind="LLM")])
    ((entry, parts),) = tree.questions()
    assert _numbers([entry]) == [1] and _numbers(parts) == [1, 2, 3]


def test_questions_below_a_root_without_one() -> None:
    tree = SpanTree([_span(1, None), _asked(2, 1), _span(3, 1), _asked(4, 3), _asked(5, 4)])
    assert [(_numbers([entry]), _numbers(parts)) for entry, parts in tree.questions()] == [([2], [2]), ([4], [4, 5])]


def test_models_below_a_root_without_a_question_are_one_question() -> None:
    tree = SpanTree([_span(1, None), *(_asked(n, 1, openinference__span__kind="LLM") for n in (2, 3))])
    ((entry, parts),) = tree.questions()
    assert _numbers([entry]) == [1] and len(parts) == 3


def test_no_spans_have_no_questions() -> None:
    assert SpanTree([]).questions() == []


def test_chains_that_ask_the_same_are_steps_of_one_question() -> None:
    chains = [_span(number, 1, input__value="q", output__value=f"a{number}") for number in (2, 3)]
    ((entry, parts),) = SpanTree([_span(1, None), *chains]).questions()
    assert _numbers([entry]) == [1] and len(parts) == 3
