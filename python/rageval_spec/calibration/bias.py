"""What makes a judge more generous, or stricter, than people: its error regressed on what the answers are like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec import kernels
from rageval_spec.calibration.joining import Joined
from rageval_spec.calibration.labelled_samples import read_samples
from rageval_spec.calibration.own_model import compare_own_model, find_own_systems
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
            `slice difficulty=hard`, `own model`.
        change: what one unit more is, in words: `100 more words make`.
        effect: by how much the error (judge less people) changes; positive is more generous.
        standardized: by how many standard deviations the error changes if the property grows by one of its own.
        p_adjusted: the effect's p-value, Holm-adjusted for all properties.
        at_equal_labels: the effect among answers that people rate the same; None if there are too few for it. That of
            the judge's own model is only measured so.
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

    def __str__(self) -> str:
        """`100 more words make the judge 0.070 [0.052, 0.088] more generous (adjusted p < 0.0001).`"""
        return f"{self.change} the judge {_size(self.effect)}{self.than} (adjusted {format_p_value(self.p_adjusted)})."

    def explain(self) -> str | None:
        """What is said of answers that people rate the same, if it differs: no effect, or one in the other direction.

        Such an effect is not the judge's alone: people rate these answers differently, and the judge does not see what
        they see.
        """
        held = self.at_equal_labels
        if held is None or (held.interval.low if self.effect.slope > 0 else -held.interval.high) > 0:
            return None
        if held.interval.low <= 0 <= held.interval.high:
            return "Among answers that people rate the same, it does not show."
        return f"Among answers that people rate the same, it is the other way round: {_size(held)}."


def _size(effect: Effect) -> str:
    """`0.070 [0.052, 0.088] more generous`."""
    interval = effect.interval
    if effect.slope < 0:
        interval = Interval(-interval.high, -interval.low, interval.confidence, interval.method)
    how = "generous" if effect.slope > 0 else "strict"
    return f"{format_number(abs(effect.slope))} {format_interval(interval)} more {how}"


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

    samples = read_samples(evaluation, joined)
    listed = [
        *list_properties(evaluation, joined, samples),
        compare_style(evaluation, joined, samples, find_own_systems(evaluation, joined.metric)),
        *compare_slices(joined, samples),
    ]
    own = [*compare_own_model(evaluation, joined)]
    left_out = [one for one in (*own, *listed) if isinstance(one, LeftOut)]
    properties, alike = _tell_apart([one for one in listed if isinstance(one, Property)])
    questions = len(set(joined.clusters))
    shown = [one for one in properties if one.is_shown]
    most = questions // QUESTIONS_EACH
    crowd = {one.name for one in shown[most:]}
    left_out += alike
    left_out += [LeftOut(name, f"{count_noun(questions, 'labelled question')} are too few for it") for name in crowd]
    chosen = [one for one in properties if one.name not in crowd]
    fits = [*_fit(joined, chosen), *_fit_own(joined, [one for one in own if isinstance(one, Property)], chosen)]
    return Biases(_adjust(fits), tuple(left_out), None if fits else _explain(bool(shown), questions))


def _explain(varies: bool, questions: int) -> str:
    """Why there are no effects."""
    if not varies:
        return "the labelled answers are all alike"
    return f"{count_noun(questions, 'labelled question')}; {QUESTIONS_EACH} are needed for each property"


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


def _fit(joined: Joined, chosen: Sequence[Property]) -> Iterator[Bias]:
    """The effects of the properties that are shown; none if there are too few rows."""
    found = _regress(joined, chosen)
    held = _regress(joined, chosen, hold_labels=True)
    for one in chosen:
        if one.is_shown and one.name in found:
            yield _describe(joined, one, found[one.name], held.get(one.name))


def _fit_own(joined: Joined, own: Sequence[Property], chosen: Sequence[Property]) -> Iterator[Bias]:
    """The effect of being the judge's own model's, with the labels and the other properties held fixed.

    Systems and styles are not held fixed: they are what tells the models apart.
    """
    if own:
        others = [one for one in chosen if not one.tells_models_apart]
        held = _regress(joined, [*own, *others], hold_labels=True)
        if own[0].name in held:
            yield _describe(joined, own[0], held[own[0].name], held[own[0].name])


def _regress(joined: Joined, properties: Sequence[Property], *, hold_labels: bool = False) -> dict[str, Effect]:
    """The effects on the judge's error, by property."""
    import numpy as np

    labels = np.array(joined.labelled)
    held = {_LABEL: labels} if hold_labels else {}
    weights = None if joined.weights is None else np.array(joined.weights)
    effects = regress(np.array(joined.judged) - labels, {**_tabulate(properties), **held}, joined.clusters, weights)
    return {effect.name: effect for effect in effects}


def _describe(joined: Joined, one: Property, effect: Effect, held: Effect | None) -> Bias:
    import numpy as np

    spread = float((np.array(joined.judged) - np.array(joined.labelled)).std())
    standardized = effect.slope * float(np.std(one.numbers)) / spread if spread > 0 else 0.0
    return Bias(one.name, one.change, effect, standardized, effect.p_value, held, one.than)


def _adjust(fits: Sequence[Bias]) -> tuple[Bias, ...]:
    """The same with p-values that are Holm-adjusted for all of them."""
    adjusted = kernels.holm([one.effect.p_value for one in fits]) if fits else []
    return tuple(replace(one, p_adjusted=p_value) for one, p_value in zip(fits, adjusted, strict=True))
