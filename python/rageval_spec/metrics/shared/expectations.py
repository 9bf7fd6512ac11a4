"""Base classes of checks: metrics that are 1 if an answer is as expected, else 0.

What is expected is the same for all questions, or in a column of each question:

    {use: contains, value: refund}
    {use: contains, column: must_contain}
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar
from unicodedata import normalize

from pydantic import Field

from rageval_spec.data.sample import Part, Sample
from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricGroup, MetricNode
from rageval_spec.plugin.metric import DataPart

REFERENCE = "reference"
"""The name that stands for the gold answers where a column is expected."""
NO_EXPECTATION = "column: no value if the question has nothing in it"
_MOST_NAMES = 10


class Check(NamedTuple):
    """Whether an answer is as expected, and why not (or a remark)."""

    holds: bool
    reason: str | None = None
    details: dict[str, Any] | None = None


class ColumnNode(MetricNode):
    """The key of a check whose expectation can be in a column of the questions."""

    column: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "The column of the questions' file that says what is expected of each answer. `reference` stands for the "
            "gold answers. A question with nothing in it has no value."
        ),
    )


C = TypeVar("C", bound=ColumnNode)


class ExpectationMetric(AnswerMetric[C]):
    """A check of one answer at a time."""

    group: ClassVar[MetricGroup] = "text"
    needs: frozenset[Part] = frozenset({"answer"})
    reads_contexts = False
    key: ClassVar[str] = "value"
    """The field of the node that holds what is expected of every answer."""

    def check(self) -> str | None:
        """Check that the expectation is in the node or in a column, and not in both."""
        given, column, key = getattr(self.node, self.key), self.node.column, self.key.removesuffix("_")
        if given is None and column is None:
            return f"'{self.node.use}' needs '{key}:', or 'column:' with the name of a column of the questions"
        return None if given is None or column is None else f"'{key}' and 'column' exclude each other; remove one"

    def question_columns(self) -> Sequence[tuple[tuple[str | int, ...], str]]:
        """The column of the expectation, unless it stands for the gold answers."""
        column = self.node.column
        return () if column is None or column == REFERENCE else ((("column",), column),)

    @abstractmethod
    def read(self, expected: Any) -> Any:
        """What a column holds, in the form that `judge` needs.

        Raises:
            ValueError: it cannot be used; the message says why.
        """

    @abstractmethod
    def judge(self, answer: str, expected: Any) -> Check:
        """Whether the answer is as expected."""

    @property
    def reads(self) -> frozenset[DataPart]:
        """The references, if a column holds what is expected and it is theirs."""
        return super().reads | ({"references"} if self.node.column == REFERENCE else set())

    def compute(self, samples: Sequence[Sample]) -> Measured:
        """Check each answer."""
        return Measured([self._measure(sample) for sample in samples])

    def _measure(self, sample: Sample) -> Measurement:
        expected = getattr(self.node, self.key)
        if self.node.column is not None:
            found = find_expectation(sample, self.node.column)
            if found is None:
                return Measurement.unscorable(explain_nothing(sample, self.node.column))
            try:
                expected = self.read(found)
            except ValueError as error:
                return Measurement.error(f"the column '{self.node.column}' {error}")
        return settle(self.judge(sample.answer or "", expected))


def settle(check: Check) -> Measurement:
    """1 if the check holds, else 0, with its reason."""
    return Measurement.scored(float(check.holds), check.reason, check.details)


def find_expectation(sample: Sample, column: str) -> Any:
    """What a question's column holds; None if there is nothing in it."""
    if column == REFERENCE and (sample.columns is None or column not in sample.columns):
        return list(sample.references) or None
    found = None if sample.columns is None else sample.columns.get(column)
    is_empty = found is None or (isinstance(found, (str, list, dict)) and not found)
    return None if is_empty else found


def explain_nothing(sample: Sample, column: str) -> str:
    """Why a question has no expectation."""
    if column == REFERENCE:
        return "the query has no reference"
    names = [] if sample.columns is None else sorted(sample.columns)
    if column in names:
        return f"the column '{column}' is empty"
    there = f"; there {'is' if len(names) == 1 else 'are'} {', '.join(names[:_MOST_NAMES])}" if names else ""
    return f"the query has no column '{column}'{there}"


def read_texts(expected: Any) -> tuple[str, ...]:
    """One text or several: a list, or text that is a JSON list of texts (as in a CSV file); numbers become text.

    Raises:
        ValueError: there is something else.
    """
    if isinstance(expected, str) and expected.lstrip().startswith('["'):
        try:
            expected = json.loads(expected)
        except ValueError:
            return (expected,)
    texts = expected if isinstance(expected, (list, tuple)) else [expected]
    if not all(isinstance(one, (str, int, float)) and not isinstance(one, bool) for one in texts):
        raise ValueError("must hold text or a list of texts")
    return tuple(str(one) for one in texts)


def fold(text: str, *, ignore_case: bool) -> str:
    """`text` with composed characters, so that equal texts are equal; without case if `ignore_case`."""
    composed = text if text.isascii() else normalize("NFC", text)
    return normalize("NFC", composed.casefold()) if ignore_case else composed
