"""Why questions went wrong: the cause of each, counts with intervals, and what to try first."""

from __future__ import annotations

from collections.abc import Mapping
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


JUDGED_DOCUMENTS = "judged documents"
"""What decided about retrieval if no metric did: whether any relevant document is among the contexts."""


@dataclass(frozen=True, slots=True)
class CauseCount:
    """The questions of one system on one dataset (or on a slice of it) with one cause.

    `share` is `count / total`, with its interval; `total` counts all questions. With weights, it is the weighted share.
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
        retrieval: the metric that decided whether the contexts have what was needed, or `JUDGED_DOCUMENTS`.
        correctness: the metric that decided whether the answer is right.
        faithfulness: the metric that decided whether it is faithful to its contexts; None if the spec has none.
        wrong_below, right_from: the thresholds between which nothing is decided.
        counts: for each dataset and system, one for each cause that occurs, then the same for each slice.
        advice: at most one for each dataset and system.
    """

    retrieval: str
    correctness: str
    faithfulness: str | None
    wrong_below: float
    right_from: float
    counts: tuple[CauseCount, ...] = ()
    advice: tuple[Advice, ...] = ()


def explain_cause(diagnosis: Diagnosis, cause: Cause, values: Mapping[str, float | None]) -> str:
    """The numbers that decided about one question, in a sentence; `values` has its values by metric."""
    parts = [_quote(diagnosis.retrieval, values, _NEEDED[cause])]
    parts += [_quote(name, values, "") for name in (diagnosis.correctness, diagnosis.faithfulness) if name is not None]
    return "; ".join(part for part in parts if part)


_NEEDED: Mapping[Cause, str] = {
    "retrieval": "no relevant document is among the contexts",
    "both": "no relevant document is among the contexts",
    "lucky": "no relevant document is among the contexts",
    "generation": "a relevant document is among the contexts",
    "fine": "a relevant document is among the contexts",
    "undecided": "",
}


def _quote(name: str, values: Mapping[str, float | None], judged: str) -> str:
    if name == JUDGED_DOCUMENTS:
        return judged
    value = values.get(name)
    return f"{name} has no value" if value is None else f"{name} is {value:.2f}"
