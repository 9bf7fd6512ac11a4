"""Labels: what people judged about answers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rageval_spec.errors import DataError

CLASSES: Mapping[str, float] = {"supported": 1.0, "contradicted": 0.0, "not_enough_info": 0.0}
"""What the classes that labels of claims can have stand for."""
_DIGEST_LENGTH = 16
RANDOM_REASONS = frozenset({"random", "slice"})
"""The reasons of answers that were drawn at random from all answers, or from all of a slice."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The labels that stand for the worst and the best: `Scale(1, 5)`."""

    low: float = 0.0
    high: float = 1.0

    def place(self, value: float) -> float:
        """A label as a number from 0 to 1."""
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Label:
    """One person's judgement of one answer, or of one claim of it, on one criterion.

    Attributes:
        query_id: the question.
        metric: the criterion: `faithfulness`; "" if the file has only one and does not name it.
        value: a number, or the name of a class. Yes and no are 1 and 0 until `put_on` gives them a place on a scale.
        annotator: who judged; "" if it is not said.
        dataset, system: whose answer it was; "" if it is not said.
        answer: the digest of the answer, as `digest_answer` gives it; "" if it is not said.
        claim: the claim's number within the answer, from 0; None if the whole answer was judged.
        time, comment: as the file has them, "" if it does not.
        reason: why the answer was chosen for labelling: `random`, `low + unsure`; "" if it is not said.
        probability: how likely it was to be chosen, above 0 and at most 1; None if it is not said.
        adjudicated: whether the label settles what annotators disagreed on, and counts instead of theirs.
        saw_judge: whether the annotator had seen what the judge says.
        is_yes_no: whether the value was written as yes or no. On a scale such as 1 to 5, it is not a 1 or a 0 then.
        place: where the label stands: `labels.csv:12`.
    """

    query_id: str
    metric: str
    value: float | str
    annotator: str
    dataset: str = ""
    system: str = ""
    answer: str = ""
    claim: int | None = None
    time: str = ""
    comment: str = ""
    reason: str = ""
    probability: float | None = None
    place: str = ""
    adjudicated: bool = False
    saw_judge: bool = False
    is_yes_no: bool = False

    @property
    def item(self) -> tuple[str, str, str, str, int | None]:
        """What was judged: labels with the same item and metric judge the same thing."""
        return (self.dataset, self.query_id, self.system, self.answer, self.claim)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The words of `reason`."""
        return tuple(word for part in self.reason.split("+") if (word := part.strip()))

    def put_on(self, scale: Scale) -> Label:
        """The label with yes as the best of the scale and no as the worst; on 0 to 1, and 1 to 0, they stay numbers.

        Raises:
            DataError: the best of the scale is its lowest number, so that yes could mean either end.
        """
        if not self.is_yes_no or {scale.low, scale.high} == {0.0, 1.0}:
            return self
        if scale.high < scale.low:
            said = "yes" if self.value else "no"
            raise DataError(
                f"{self.place}: '{said}' has no place on the scale from {scale.low:g} to {scale.high:g}, whose best is "
                "its lowest number; write the number instead"
            )
        return replace(self, value=scale.high if self.value else scale.low, is_yes_no=False)


def digest_answer(text: str) -> str:
    """A digest of an answer's text. A label that names it belongs to this text and to no other."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:_DIGEST_LENGTH]


def find_ends(low: float, high: float | None) -> tuple[float, float]:
    """The values of a metric that the worst and the best label stand for.

    A cosine can fall to -1, but texts that have nothing in common are at 0 already, and that is what people call worst.

    Args:
        low, high: the metric's lowest and highest value; None if there is no highest.
    """
    worst = max(low, 0.0)
    return worst, worst + 1 if high is None else high


def average_labels(labels: Sequence[Label], scale: Scale | None = None, setting: str = "--scale 1..5") -> float:
    """What the labels of one item say, from 0 to 1: the adjudicated one if there is one, else the mean of all.

    Args:
        labels: at least one label, all of the same item and criterion.
        scale: what the labels' worst and best are; by default 0 and 1.
        setting: how a message shows the scale to be set.

    Raises:
        DataError: a label is not a number on the scale.
    """
    settled = [label for label in labels if label.adjudicated] or labels
    return sum(_read(label, scale or Scale(), setting) for label in settled) / len(settled)


def _read(label: Label, scale: Scale, setting: str) -> float:
    label = label.put_on(scale)
    value = CLASSES.get(label.value) if isinstance(label.value, str) else scale.place(label.value)
    if value is None:
        raise DataError(
            f"{label.place}: '{label.value}' is not a number; labels that a judge's values are compared with are "
            f"numbers, yes, no, or one of {', '.join(CLASSES)}"
        )
    if not 0 <= value <= 1:
        raise DataError(
            f"{label.place}: the label {label.value:g} lies outside the scale from {scale.low:g} to {scale.high:g}; "
            f"name the scale, worst first: {setting}"
        )
    return value
