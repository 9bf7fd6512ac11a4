"""What makes a judge more generous, or stricter, than people: its error regressed on what the answers are like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from rageval_spec import kernels
from rageval_spec.calibration.joining import Item, Joined
from rageval_spec.calibration.labelled_samples import read_samples
from rageval_spec.statistics.regression import Effect, regress
from rageval_spec.wording import format_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.data.evaluation import Evaluation

    Floats: TypeAlias = NDArray[np.float64]

SIGNIFICANT = 0.05
_FEWEST = 10
"""The fewest items with, and without, a property that is compared: a system, a slice."""
_UNITS = (100, 10, 1)
"""By how many words lengths are compared: the most of which the longest answer has twice as many."""
_KEY = ("dataset", "system", "query_id")


@dataclass(frozen=True, slots=True)
class Bias:
    """What one property of answers does to the judge's error, while the others stay as they are.

    Attributes:
        name: the property: `length`, `contexts`, `evidence`, `system v2`, `slice difficulty=hard`.
        change: what one unit more is, in words: `100 more words`.
        effect: by how much the error (judge less people) changes; positive is more generous.
        p_adjusted: the effect's p-value, Holm-adjusted for all properties.
    """

    name: str
    change: str
    effect: Effect
    p_adjusted: float

    @property
    def is_significant(self) -> bool:
        """Whether the adjusted p-value is below 0.05."""
        return self.p_adjusted < SIGNIFICANT

    def __str__(self) -> str:
        """`100 more words make the judge 0.070 more generous.`"""
        how = "generous" if self.effect.slope > 0 else "strict"
        return f"{self.change} the judge {format_number(abs(self.effect.slope))} more {how}."


def find_biases(evaluation: Evaluation, joined: Joined) -> tuple[Bias, ...]:
    """Regress the judge's error on the answers' properties.

    The properties are the answer's length in words, the number of its contexts, the place of the context that decided
    its claims, the system, and the slices. One that does not vary is left out, as are systems and slices with fewer
    than ten labelled items, or all but ten. Standard errors hold for answers to the same question (HC3 if there is one
    answer a question).

    Returns:
        A bias for each property; none if there are too few labelled items.
    """
    import numpy as np

    samples = read_samples(evaluation, joined)
    changes = dict(_list_changes(evaluation, joined, samples))
    predictors = {name: np.array(numbers, dtype=float) for name, (_, numbers) in changes.items()}
    errors = np.array(joined.judged) - np.array(joined.labelled)
    effects = regress(errors, predictors, joined.questions)
    adjusted = kernels.holm([effect.p_value for effect in effects]) if effects else []
    return tuple(
        Bias(effect.name, changes[effect.name][0], effect, p_value)
        for effect, p_value in zip(effects, adjusted, strict=True)
    )


def _list_changes(
    evaluation: Evaluation, joined: Joined, samples: Mapping[Item, Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[str, Sequence[float]]]]:
    """Each property with what one unit more is, and its number for each item."""
    rows = [samples[item] for item in joined.items]
    words = [len((row.get("answer") or "").split()) for row in rows]
    unit = next((unit for unit in _UNITS if max(words, default=0) >= 2 * unit), _UNITS[-1])
    yield "length", (f"{unit} more words make", [count / unit for count in words])
    yield "contexts", ("One more context makes", [float(len(row.get("contexts") or ())) for row in rows])
    places = _find_places(evaluation, joined)
    if places:
        mean = sum(places.values()) / len(places)
        yield (
            "evidence",
            ("Evidence that stands one context later makes", [places.get(item, mean) for item in joined.items]),
        )
    systems = Counter(item[1] for item in joined.items)
    for system in list(dict.fromkeys(item[1] for item in joined.items))[1:]:
        if _FEWEST <= systems[system] <= len(rows) - _FEWEST:
            first = joined.items[0][1]
            numbers = [float(item[1] == system) for item in joined.items]
            yield f"system {system}", (f"Answers of {system} instead of {first} make", numbers)
    slices = Counter(name for row in rows for name in row.get("slices") or ())
    for name, count in slices.items():
        if _FEWEST <= count <= len(rows) - _FEWEST:
            yield (
                f"slice {name}",
                (f"Questions of {name} make", [float(name in (row.get("slices") or ())) for row in rows]),
            )


def _find_places(evaluation: Evaluation, joined: Joined) -> dict[Item, float]:
    """For each item, the mean place of the contexts that decided its claims, from 0."""
    wanted = {item[:3] for item in joined.items}
    found: dict[tuple[str, str, str], list[int]] = {}
    for block in evaluation.iterate_findings():
        rows = block.filter(metric=joined.metric).select(*_KEY, "source").drop_nulls("source")
        for *key, source in rows.iter_rows():
            if tuple(key) in wanted:
                found.setdefault(tuple(key), []).append(source)
    return {item: sum(found[item[:3]]) / len(found[item[:3]]) for item in joined.items if item[:3] in found}
