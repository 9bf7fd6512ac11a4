"""Labels: what people judged about answers.

Anchors are a frozen set of labelled answers with a judge's scores, which show whether the judge has changed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rageval_spec.data import arithmetic
from rageval_spec.data.json_documents import dump_document, parse_document
from rageval_spec.dataclass import asdict, dataclass, replace
from rageval_spec.errors import DataError

CLASSES: Mapping[str, float] = {"supported": 1.0, "contradicted": 0.0, "not_enough_info": 0.0}
"""What the classes that labels of claims can have stand for."""
_DIGEST_LENGTH = 16
RANDOM_REASONS = frozenset({"random", "slice"})
"""The reasons of answers that were drawn at random from all answers, or from all of a slice."""


@dataclass(frozen=True, slots=True)
class LabelScale:
    """The labels that stand for the worst and the best: `LabelScale(1, 5)`."""

    low: float = 0.0
    high: float = 1.0

    def place(self, value: float) -> float:
        """A label as a number from 0 to 1."""
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Label:
    """One person's judgement of one answer, or of one claim of it, on one criterion. What is not said is "".

    Attributes:
        metric: the criterion: `faithfulness`; "" if the file has only one and does not name it.
        value: a number, or the name of a class. Yes and no are 1 and 0 until `put_on` gives them a place on a scale.
        annotator: who judged.
        dataset, system: whose answer it was.
        answer: the digest of the answer, as `digest_answer` gives it.
        claim: the claim's number within the answer, from 0; None if the whole answer was judged.
        time, comment: as the file has them.
        reason: why the answer was chosen for labelling: `random`, `low + unsure`.
        probability: how likely it was to be chosen, above 0 and at most 1; None if it is not said.
        adjudicated: whether the label settles what annotators disagreed on, and counts instead of theirs.
        saw_judge: whether the annotator had seen what the judge says.
        is_yes_no: whether the value was written as yes or no. On a scale such as 1 to 5, it is not a 1 or a 0 then.
        place: where the label stands: `labels.csv:12`.
        document: its id, if not an answer but the relevance of a document was judged.
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
    document: str = ""

    @property
    def item(self) -> tuple[str, str, str, str, int | None, str]:
        """What was judged: labels with the same item and metric judge the same thing."""
        return (self.dataset, self.query_id, self.system, self.answer, self.claim, self.document)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The words of `reason`."""
        return tuple(word for part in self.reason.split("+") if (word := part.strip()))

    def put_on(self, scale: LabelScale) -> Label:
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


def order_label(label: Label) -> tuple[str, ...]:
    """A key that sorts labels alike wherever they stand in their file."""
    where = (label.dataset, label.system, label.query_id, label.metric, label.answer)
    claim = "" if label.claim is None else f"{label.claim:09d}"
    return (*where, claim, label.annotator, repr(label.value), label.time, label.reason, repr(label.probability))


def list_draws(labels: Sequence[Label]) -> list[tuple[str, float]]:
    """The selections that chose the item of these labels: the reason and the probability of each that names one."""
    return [*dict.fromkeys((one.reason, one.probability) for one in labels if one.probability is not None)]


def join_probabilities(probabilities: Sequence[float]) -> float:
    """The probability that at least one of independent draws takes something."""
    if len(probabilities) == 1:
        return probabilities[0]
    return 1 - math.prod(1 - probability for probability in probabilities)


def find_ends(low: float, high: float | None) -> tuple[float, float]:
    """The values of a metric that the worst and the best label stand for; `high` is None if there is no highest.

    A cosine can fall to -1, but texts that have nothing in common are at 0 already, and that is what people call worst.
    """
    worst = max(low, 0.0)
    return worst, worst + 1 if high is None else high


def average_labels(labels: Sequence[Label], scale: LabelScale | None = None, setting: str = "--scale 1..5") -> float:
    """What the labels of one item say, from 0 to 1: the adjudicated one if there is one, else the mean of all.

    All are of the same item and criterion. `setting` is how a message shows the scale to be set.

    Raises:
        DataError: a label is not a number on the scale.
    """
    settled = [label for label in labels if label.adjudicated] or labels
    return arithmetic.average(_read(label, scale or LabelScale(), setting) for label in settled)


def _read(label: Label, scale: LabelScale, setting: str) -> float:
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


@dataclass(frozen=True)
class Anchor:
    """A labelled answer: the mean of its labels, and the judge's score when the set was frozen, from 0 to 1."""

    dataset: str
    system: str
    query_id: str
    question: str
    answer: str
    label: float
    value: float
    contexts: tuple[str, ...] | None = None
    context_ids: tuple[str, ...] | None = None
    references: tuple[str, ...] = ()
    reference_contexts: tuple[str, ...] | None = None
    columns: dict[str, Any] | None = None


@dataclass(frozen=True)
class AnchorSet:
    """The content of a file of anchors.

    Attributes:
        judge, metric: their names in the spec whose results were frozen.
        criterion: the sha256 of what the metric asks the judge.
        identity, digest: what the judge's scores depend on, and its sha256.
        threshold: from which score on, of 0 to 1, the judge says yes.
    """

    format_version: int
    judge: str
    metric: str
    criterion: str
    identity: dict[str, Any]
    digest: str
    threshold: float
    anchors: tuple[Anchor, ...]

    @classmethod
    def parse(cls, content: bytes, path: str) -> AnchorSet:
        """Read a file's content; `path` is its name in errors.

        Raises:
            DataError: the content is not JSON, not a set of anchors, or has another format version.
        """
        remedy = "make one with: rageval-spec calibrate --labels labels.csv --freeze anchors.json"
        found: AnchorSet = parse_document(cls, content, path, "a set of anchors", remedy)
        if not found.anchors:
            raise DataError(f"{path} has no anchors")
        return found

    def dump(self) -> bytes:
        """The file as JSON text, in UTF-8."""
        return dump_document(asdict(self))
