"""Base classes of answer metrics without a judge: checks, and metrics of what an answer took.

A check is a metric that is 1 if an answer is as expected, else 0. What is expected is the same for all questions, or
in a column of each question:

    {use: contains, value: refund}
    {use: contains, column: must_contain}

An `OperationalMetric` measures time, tokens or money, not how good an answer is.

The reasons why a query has no value or needs no judge are the same words for every metric.
"""

import json
import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn, TypeVar
from unicodedata import normalize

from pydantic import Field, field_validator

from rageval_spec.data.samples import Sample
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricNode
from rageval_spec.plugin.metric import DataPart

REFERENCE = "reference"
"""The name that stands for the gold answers where a column is expected."""
FAILED_SYSTEM = "the system failed and gave no answer: status error, no value; `error_rate` counts these"
_MOST_NAMES = 10


class ColumnNode(MetricNode):
    """The key of a check whose expectation can be in a column of the questions."""

    column: str | None = Field(
        default=None,
        min_length=1,
        description="The column of the questions' file with what is expected of each answer. `reference` stands for "
        "the gold answers. A question with nothing in it has no value.",
    )


C = TypeVar("C", bound=ColumnNode)


class ExpectationMetric(AnswerMetric[C]):
    """A check of one answer at a time."""

    group = "text"
    needs = frozenset({"answer"})
    reads_contexts = False
    always = ("column: no value if the question has nothing in it", FAILED_SYSTEM)
    key: ClassVar[str] = "value"
    """The field of the node that holds what is expected of every answer."""

    def check(self) -> str | None:
        given, column, key = getattr(self.node, self.key), self.node.column, self.key.removesuffix("_")
        if given is None and column is None:
            return f"'{self.node.use}' needs '{key}:', or 'column:' with the name of a column of the questions"
        return None if given is None or column is None else f"'{key}' and 'column' exclude each other; remove one"

    def question_columns(self) -> Sequence[tuple[tuple[str | int, ...], str]]:
        column = self.node.column
        return () if column is None or column == REFERENCE else ((("column",), column),)

    @abstractmethod
    def read(self, expected: Any) -> Any:
        """What a column holds, in the form that `judge` needs.

        Raises:
            ValueError: it cannot be used; the message says why.
        """

    @abstractmethod
    def judge(self, answer: str, expected: Any) -> Measurement:
        """1 if the answer is as expected; 0 with the reason if it is not."""

    @property
    def reads(self) -> frozenset[DataPart]:
        return super().reads | ({"references"} if self.node.column == REFERENCE else set())

    def compute(self, samples: Sequence[Sample]) -> Measured:
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
        return self.judge(sample.answer or "", expected)


class OwnValuesNode(MetricNode):
    """The keys of a metric whose values only the user knows."""

    range: tuple[float, float] | None = Field(
        default=None,
        exclude_if=lambda ends: ends is None,
        description="The lowest and the highest possible value, such as [1, 5]; a value outside is an error. Without "
        "it, no gate passes by `decide: certain` or `on: lower | upper`: values that were not seen could be anything.",
    )
    higher_is_better: bool | None = Field(
        default=True, description="false if low values are good; null if neither high nor low ones are."
    )

    @field_validator("range")
    @classmethod
    def _check_range(cls, ends: tuple[float, float] | None) -> tuple[float, float] | None:
        if ends is not None and not float("-inf") < ends[0] < ends[1] < float("inf"):
            raise ValueError("the lowest value must be below the highest, such as [1, 5]")
        return ends


V = TypeVar("V", bound=OwnValuesNode)


class OwnValuesMetric(AnswerMetric[V]):
    """A metric whose values only the user knows, so that its node has their range and direction."""

    always = (FAILED_SYSTEM,)

    @property
    def higher_is_better(self) -> bool | None:
        return self.node.higher_is_better

    @property
    def bounds(self) -> tuple[float, float | None]:
        return self.node.range or self.info.bounds

    def keep_in_range(self, value: float, reason: str | None = None) -> Measurement:
        """The measurement of a value; an error if the value is outside the range that the spec gives."""
        ends = self.node.range
        if ends is not None and not ends[0] <= value <= ends[1]:
            return Measurement.error(f"{value:g} is outside the range {ends[0]:g} to {ends[1]:g} that the metric gives")
        return Measurement.scored(value, reason)


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
    """One text or several: a list, or text that is a JSON list of texts (as in a CSV file); numbers become text."""
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


_FENCE = compile_later(r"\s*```(?:json|JSON)?[ \t]*\r?\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_LONGEST_INTEGER = 4000


def read_json(answer: str, *, unfence: bool) -> Any:
    """The value that an answer is as JSON; `unfence` removes a Markdown code fence around all of it.

    Raises:
        ValueError: it is not JSON; the message says what is wrong and where.
    """

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is not JSON")

    def read_integer(digits: str) -> int | float:
        return int(digits) if len(digits) < _LONGEST_INTEGER else float(digits)

    fenced = _FENCE.fullmatch(answer) if unfence else None
    text = fenced[1] if fenced else answer
    if not text.strip():
        raise ValueError("the answer is empty")
    try:
        return json.loads(text, parse_constant=refuse, parse_int=read_integer)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


N = TypeVar("N", bound=MetricNode)


class OperationalMetric(AnswerMetric[N]):
    """A metric that reads what a system reports about an answer. Answers and references can be missing."""

    group = "operation"
    needs = frozenset()
    reads_contexts = False
    always: ClassVar[Sequence[str]] = (FAILED_SYSTEM,)

    @abstractmethod
    def read(self, sample: Sample) -> float | str:
        """The value of a sample; a text says why there is none."""

    def compute(self, samples: Sequence[Sample]) -> Measured:
        found = map(self.read, samples)
        return Measured([Measurement.unscorable(v) if isinstance(v, str) else Measurement.scored(v) for v in found])


EMPTY_ANSWER = "the answer is empty"
EMPTY_REFERENCE = "the reference is empty"
UNDECIDED = "the judge found nothing to judge"
NO_CONTEXTS = "there are no contexts, or only empty ones"


def is_blank(texts: Sequence[str] | str | None) -> bool:
    """Whether there are no texts, or only white space in them."""
    return not texts or not any(text.strip() for text in ((texts,) if isinstance(texts, str) else texts))


EMPTY_IS_ZERO = "empty answer: 0"
