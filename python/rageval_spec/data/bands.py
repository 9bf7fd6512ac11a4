"""Bands: named scales that turn a metric's number into a word, such as "good", and say what to do.

`published` has the scales that guides to faithfulness and answer relevancy print. `industry` has the
rules of thumb for production systems of the article "RAG evaluation" (2025); no study is behind them. The other scales
say how faithful answers of one domain must be. Judges differ: a judge's scale should be checked against labels before a
gate uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rageval_spec.data import arithmetic
from rageval_spec.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """One word of a scale.

    `bound` is the lowest value of the level or, if low values are good, the highest; None for the worst level, which
    has no bound. `action` says what to do, or is "".
    """

    word: str
    bound: float | None
    action: str = ""


@dataclass(frozen=True, slots=True)
class BandScale:
    """The levels of one metric, best first.

    `name` is the word of a built-in scale, or "custom". `lower_is_better` turns the bounds into upper ones.
    """

    name: str
    levels: tuple[Level, ...]
    lower_is_better: bool = False

    def find(self, value: float, terms: int = 1) -> Level:
        """The best level whose bound `value` meets; the last level if it meets none.

        `terms`: of how many numbers the value is the mean; see `arithmetic.is_level`.
        """
        return next((level for level in self.levels if self._meets(value, level, terms)), self.levels[-1])

    def bound_of(self, word: str) -> float | None:
        """The bound of a level; None for the worst level.

        Raises:
            KeyError: the scale has no such word.
        """
        return {level.word: level.bound for level in self.levels}[word]

    def _meets(self, value: float, level: Level, terms: int) -> bool:
        if level.bound is None:
            return True
        ends = (level.bound, value) if self.lower_is_better else (value, level.bound)
        return arithmetic.reaches(*ends, terms=terms)


_FAITHFULNESS = (
    Level("excellent", 0.95, "ready for high-stakes use"),
    Level("good", 0.85, "ready for most uses; keep watching it"),
    Level("moderate", 0.70, "find out which claims lack support before release"),
    Level("poor", 0.50, "fix the prompt or the contexts before release"),
    Level("critical", None, "do not release: most answers cannot be trusted"),
)
_RELEVANCY = (
    Level("good", 0.90, "answers address the question"),
    Level("moderate", 0.70, "look at answers that stray from the question"),
    Level("poor", None, "answers often miss the question"),
)


def _rank(minimum: float, good: float, excellent: float) -> tuple[Level, ...]:
    return Level("excellent", excellent), Level("good", good), Level("minimum", minimum), Level("below minimum", None)


def _require(bound: float, domain: str) -> tuple[Level, ...]:
    accepted = Level("sufficient", bound, f"faithful enough for {domain}")
    return accepted, Level("insufficient", None, f"not faithful enough for {domain}: a person must check the answers")


SCALES: Mapping[str, Mapping[str, tuple[Level, ...]]] = {
    "published": {"faithfulness": _FAITHFULNESS, "answer_relevancy": _RELEVANCY},
    "industry": {
        "ndcg@10": _rank(0.70, 0.80, 0.90),
        "precision@5": _rank(0.60, 0.75, 0.85),
        "faithfulness": _rank(0.80, 0.90, 0.95),
        "answer_relevancy": _rank(0.75, 0.85, 0.92),
        "context_recall": _rank(0.70, 0.85, 0.95),
    },
    "medical": {"faithfulness": _require(0.95, "medical use")},
    "legal": {"faithfulness": _require(0.95, "legal use")},
    "finance": {"faithfulness": _require(0.95, "financial use")},
    "support": {"faithfulness": _require(0.85, "customer support")},
    "creative": {"faithfulness": _require(0.70, "creative use")},
}
"""The built-in scales: for each, the levels of a metric, by its word (`faithfulness`) or its full name (`ndcg@10`)."""


def find_scale(name: str, metrics: Iterable[str]) -> BandScale | None:
    """The built-in scale for the first of a metric's names (its word, its full name) that the scale covers, or None."""
    return next((BandScale(name, levels) for one in metrics if (levels := SCALES[name].get(one)) is not None), None)


def make_scale(bounds: Mapping[str, float], *, lower_is_better: bool = False, worst: str = "below") -> BandScale:
    """A scale of one's own, from words and their bounds in any order. Values that meet no bound are `worst`."""
    ordered = sorted(bounds.items(), key=lambda pair: pair[1], reverse=not lower_is_better)
    levels = (*(Level(word, bound) for word, bound in ordered), Level(worst, None))
    return BandScale("custom", levels, lower_is_better)
