"""What makes a judge more generous, or stricter, than people: its error regressed on what the answers are like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec import kernels
from rageval_spec.calibration.joining import Joined
from rageval_spec.calibration.labelled_samples import read_samples
from rageval_spec.calibration.properties import LeftOut, Property, compare_slices, list_properties
from rageval_spec.calibration.style import compare_style
from rageval_spec.data.interval import Interval
from rageval_spec.statistics.regression import Effect, find_determined, regress
from rageval_spec.wording import count_noun, format_interval, format_number, format_p_value, list_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.data.evaluation import Evaluation

    Floats: TypeAlias = NDArray[np.float64]

SIGNIFICANT = 0.05
QUESTIONS_EACH = 10
"""Labelled questions for each property. With fewer, chance effects are too easily taken for real ones."""
_LABEL = "label"


@dataclass(frozen=True, slots=True)
class Bias:
    """What one property of answers does to the judge's error, while the others stay as they are.

    Attributes:
        name: the property: `length`, `contexts`, `evidence`, `system v2`, `language de`, `style`,
            `slice difficulty=hard`.
        change: what one unit more is, in words: `100 more words make`.
        effect: by how much the error (judge less people) changes; positive is more generous.
        standardized: by how many standard deviations the error changes if the property grows by one of its own.
        p_adjusted: the effect's p-value, Holm-adjusted for all properties.
        at_equal_labels: the effect among answers that people rate the same; None if all labels are the same.
        than: what is compared, behind the effect.
    """

    name: str
    change: str
    effect: Effect
    standardized: float
    p_adjusted: float
    at_equal_labels: Effect | None
    than: str = ""

    @property
    def is_significant(self) -> bool:
        """Whether the adjusted p-value is below 0.05."""
        return self.p_adjusted < SIGNIFICANT

    @property
    def is_quality(self) -> bool:
        """Whether the effect is only that people rate such answers differently, and the judge does not see it.

        Then answers that people rate the same do not show it.
        """
        held = self.at_equal_labels
        if held is None:
            return False
        return (held.interval.low if self.effect.slope > 0 else -held.interval.high) <= 0

    def __str__(self) -> str:
        """`100 more words make the judge 0.070 [0.052, 0.088] more generous (adjusted p < 0.001).`"""
        slope, interval = self.effect.slope, self.effect.interval
        how = "generous" if slope > 0 else "strict"
        if slope < 0:
            interval = Interval(-interval.high, -interval.low, interval.confidence, interval.method)
        size = f"{format_number(abs(slope))} {format_interval(interval)}"
        sure = f"adjusted {format_p_value(self.p_adjusted)}"
        return f"{self.change} the judge {size} more {how}{self.than} ({sure})."


@dataclass(frozen=True, slots=True)
class Biases:
    """What is known of a judge's biases.

    Attributes:
        found: one for each property that could be compared.
        left_out: the other properties, and why.
        reason: why nothing could be compared; None if something was.
    """

    found: tuple[Bias, ...] = ()
    left_out: tuple[LeftOut, ...] = field(default=())
    reason: str | None = None


def find_biases(evaluation: Evaluation, joined: Joined) -> Biases:
    """Regress the judge's error on the answers' properties.

    The properties are the answer's length in words, the system, the number of contexts, the place of the context that
    decided its claims, the language, how close the wording is to the judge's own, and the slices. One that does not
    vary, that others determine, or that fewer than ten labelled items have or lack is left out, as are the last ones if
    there are fewer than ten labelled questions for each. Standard errors hold for answers to the same question (HC3 if
    there is one answer a question). Answers that were chosen for labelling with unequal probabilities count
    accordingly.
    """
    import numpy as np

    samples = read_samples(evaluation, joined)
    listed = [
        *list_properties(evaluation, joined, samples),
        compare_style(evaluation, joined, samples, frozenset()),
        *compare_slices(joined, samples),
    ]
    left_out = [one for one in listed if isinstance(one, LeftOut)]
    properties, alike = _tell_apart([one for one in listed if isinstance(one, Property)])
    questions = len(set(joined.questions))
    shown = [one for one in properties if one.is_shown]
    most = questions // QUESTIONS_EACH
    crowd = {one.name for one in shown[most:]}
    left_out += alike
    left_out += [LeftOut(name, f"{count_noun(questions, 'labelled question')} are too few for it") for name in crowd]
    if not shown:
        return Biases((), tuple(left_out), "the labelled answers are all alike")
    if not most:
        few = f"{count_noun(questions, 'labelled question')}; {QUESTIONS_EACH} are needed for each property"
        return Biases((), tuple(left_out), few)
    chosen = {one.name: one for one in properties if one.name not in crowd}
    errors, labels = np.array(joined.judged) - np.array(joined.labelled), np.array(joined.labelled)
    return Biases(_regress(joined, errors, labels, chosen), tuple(left_out))


def _tell_apart(properties: Sequence[Property]) -> tuple[list[Property], list[LeftOut]]:
    """The properties that tell something of their own, and those that do not vary or that others determine."""
    determined = find_determined(_tabulate(properties))
    hidden = {one.name for one in properties if not one.is_shown}
    left_out = [
        LeftOut(name, f"cannot be told apart from {list_names(others)}" if others else "all labelled items are alike")
        for name, of in determined.items()
        if name not in hidden
        for others in [[other for other in of if other not in hidden]]
    ]
    return [one for one in properties if one.name not in determined], left_out


def _tabulate(properties: Sequence[Property]) -> dict[str, Floats]:
    import numpy as np

    return {one.name: np.array(one.numbers, dtype=float) for one in properties}


def _regress(joined: Joined, errors: Floats, labels: Floats, chosen: Mapping[str, Property]) -> tuple[Bias, ...]:
    """The effects of the properties that are shown, with adjusted p-values; none if there are too few rows."""
    import numpy as np

    predictors = _tabulate([*chosen.values()])
    weights = None if joined.weights is None else np.array(joined.weights)
    effects = [
        effect for effect in regress(errors, predictors, joined.questions, weights) if chosen[effect.name].is_shown
    ]
    held = {
        effect.name: effect for effect in regress(errors, {_LABEL: labels, **predictors}, joined.questions, weights)
    }
    adjusted = kernels.holm([effect.p_value for effect in effects]) if effects else []
    spread = float(errors.std())
    return tuple(
        Bias(
            name=effect.name,
            change=chosen[effect.name].change,
            effect=effect,
            standardized=effect.slope * float(predictors[effect.name].std()) / spread if spread > 0 else 0.0,
            p_adjusted=p_value,
            at_equal_labels=held.get(effect.name) if _LABEL in held else None,
            than=chosen[effect.name].than,
        )
        for effect, p_value in zip(effects, adjusted, strict=True)
    )
