"""Why questions went wrong: the cause of each, counts with intervals, and what to try first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rageval_spec.data.interval import Interval

Cause = Literal["retrieval", "generation", "both", "lucky", "fine", "undecided"]
"""Where a question's answer went wrong.

| cause | contexts have what was needed | answer |
|---|---|---|
| retrieval | no | wrong, and no worse than its contexts |
| generation | yes | wrong or unfaithful |
| both | no | wrong, and unfaithful to its contexts |
| lucky | no | right: it came from elsewhere |
| fine | yes | right |
| undecided | a part was not measured, or lies between the thresholds | |
"""


@dataclass(frozen=True, slots=True)
class CauseCount:
    """The questions of one system on one dataset (or on a slice of it) with one cause.

    `share` is `count / total`, with its interval; `total` counts all questions.
    """

    dataset: str
    system: str
    cause: Cause
    count: int
    total: int
    share: float
    interval: Interval | None
    slice: str | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to try first on one system, in a sentence, with the numbers that say so."""

    dataset: str
    system: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The causes of all questions, counted.

    Attributes:
        retrieval, correctness, faithfulness: the names of the metrics that decided; None where the spec has none.
        wrong_below, right_from: the thresholds between which nothing is decided.
        counts: for each dataset and system, one for each cause that occurs, then the same for each slice.
        advice: at most one for each dataset and system.
    """

    retrieval: str | None
    correctness: str | None
    faithfulness: str | None
    wrong_below: float
    right_from: float
    counts: tuple[CauseCount, ...] = ()
    advice: tuple[Advice, ...] = ()
