import math
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared import answer_metrics
from rageval_spec.plugin import Measured, Measurement, MetricInfo
from rageval_spec.recorded.answers_and_steps import list_inner

_TRUTHS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_NOTHING = frozenset({"", "-", "n/a", "na", "nan", "none", "null"})
"""The texts that mean no value."""
_LONGEST_SHOWN = 40


class ColumnValueNode(answer_metrics.OwnValuesNode):
    column: str = Field(
        min_length=1,
        description="The column with the value of each answer: a number, yes or no, true or false. `scores.rating` is "
        "a value inside the column `scores`. Recorded answers that have the column come first, then the questions.",
    )


class ColumnValue(answer_metrics.OwnValuesMetric[ColumnValueNode]):
    known_as = ("rating", "user_rating", "human_rating", "stars", "thumbs", "existing_score", "field")
    hidden = ("column",)
    group = "other"
    needs = frozenset()
    reads_contexts = False
    reads_answer_columns = True
    info = MetricInfo(
        summary="A number that a column already has: a rating of users, or a score of another tool.",
        formula="column = the number in the column; yes and true are 1, no and false are 0",
        edge_cases=(
            "nothing in the column, n/a, null or NaN: no value",
            "text that is not a number, or a number outside `range`: status error for that query, never 0",
            "recorded answers have the column: only they are read, and not the questions",
            "no question and no recorded answer has the column: `validate` fails",
            "name: that of the column, unless `as` is given",
        ),
        source="rageval-spec: a value as it is recorded, since 2026",
        bounds=(float("-inf"), None),
    )

    @property
    def name(self) -> str:
        return self.node.as_ or self.node.column

    def question_columns(self) -> Sequence[tuple[tuple[str | int, ...], str]]:
        return ((("column",), self.node.column),)

    def compute(self, samples: Sequence[Sample]) -> Measured:
        column = self.node.column
        is_recorded = any(column in (sample.answer_columns or {}) for sample in samples)
        return Measured([self._measure(sample, is_recorded) for sample in samples])

    def _measure(self, sample: Sample, is_recorded: bool) -> Measurement:
        column = self.node.column
        found = dict((sample.answer_columns if is_recorded else sample.columns) or {})
        found |= list_inner([*found.items()])
        value = found.get(column)
        if value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING):
            empty = f"the column '{column}' is empty"
            is_there = is_recorded or column in found
            return Measurement.unscorable(empty if is_there else answer_metrics.explain_nothing(sample, column))
        number = _read_number(value)
        if number is None:
            shown = repr(value) if len(repr(value)) <= _LONGEST_SHOWN else f"{repr(value)[:_LONGEST_SHOWN]}..."
            return Measurement.error(f"the column '{column}' must hold a number, yes or no, not {shown}")
        return self.keep_in_range(number)


def _read_number(value: Any) -> float | None:
    """The number that a value is; None if it is none."""
    if isinstance(value, str):
        truth = _TRUTHS.get(value.strip().lower())
        if truth is not None:
            return truth
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


PLUGIN = ColumnValue
