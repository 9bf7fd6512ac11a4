"""What people's labels make of a judge's mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rageval_spec.data.interval import Interval
from rageval_spec.data.note import Note

CorrectionMethod: TypeAlias = Literal["ppi", "rogan_gladen"]
"""How a judge's mean is corrected: prediction-powered inference, or by the judge's rates of wrong decisions."""

LABEL, LABEL_WEIGHT = "label", "label_weight"
"""The columns that a table of values has if a metric has labels: what people say on the metric's scale, and one over
the probability with which the answer was chosen for labelling; null for an answer without labels."""
UNNAMED = "unnamed_answers"
"""The code of the note that some labels do not name their answers' digests."""
FEWEST_LABELS = 10
"""Fewer labels than this give no corrected number: an interval from them would be too unreliable to act on."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Where a corrected number comes from: the judge's own number, and that of the labels.

    Of a comparison, all numbers are differences of the two systems.

    Attributes:
        method: `ppi` or `rogan_gladen`.
        judged: the judge's number, with `judged_interval`.
        labelled: what labels alone say, with `labelled_interval`; None without labels.
        labels: how many answers have labels. Of a comparison, how many questions have labels for both answers; or, if
            it is not paired, how many answers of the two have labels.
        worth: how many labels without the judge would give an interval as narrow; None if it is not known.
        source: the name of the labels in the spec.
        is_clipped: whether the number, or an end of its interval, lay outside what the metric can be, and was moved
            to its bound.
        is_paired: whether a comparison is corrected question by question. If few questions have labels for both
            answers, it is the difference of the two corrected means. True for a mean.
        reason: why there is no corrected number; None if there is one.
    """

    method: CorrectionMethod
    judged: float | None
    judged_interval: Interval | None
    labelled: float | None
    labelled_interval: Interval | None
    labels: int
    worth: float | None
    source: str
    is_clipped: bool = False
    is_paired: bool = True
    reason: str | None = None


def has_unnamed(notes: Iterable[Note], metric: str) -> bool:
    """Whether labels of a metric do not name their answers' digests, as the notes of an evaluation say."""
    return any(note.code == UNNAMED and note.message.startswith(f"{metric}: ") for note in notes)
