"""What `contains` and `not_contains` share: their keys, and the search for texts in an answer."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import Field, field_validator

from rageval_spec.metrics.shared.expectations import ColumnNode, ExpectationMetric, fold, read_texts


class ContainmentNode(ColumnNode):
    """The keys of a check for texts in an answer."""

    value: str | tuple[str, ...] | None = Field(
        default=None, description="The text, or a list of texts, to look for in every answer."
    )
    ignore_case: bool = Field(default=False, description="Whether upper and lower case are the same.")

    @field_validator("value")
    @classmethod
    def _check_value(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        if value is not None and not (value and all(value)):
            raise ValueError("must not be empty: every answer contains an empty text")
        return value


T = TypeVar("T", bound=ContainmentNode)


class ContainmentMetric(ExpectationMetric[T]):
    """A check for texts in an answer."""

    def read(self, expected: Any) -> tuple[str, ...]:
        """The texts of a column."""
        texts = read_texts(expected)
        if not all(texts):
            raise ValueError("holds an empty text, which every answer contains")
        return texts

    def split(self, answer: str, expected: Any) -> tuple[list[str], list[str]]:
        """The expected texts that the answer contains, and those that it does not."""
        texts = (expected,) if isinstance(expected, str) else expected
        folded = fold(answer, ignore_case=self.node.ignore_case)
        found, absent = list[str](), list[str]()
        for text in texts:
            (found if fold(text, ignore_case=self.node.ignore_case) in folded else absent).append(text)
        return found, absent
