"""How the labelled answers were chosen, and what this means for means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rageval_spec.data.labels import RANDOM_REASONS, Label
from rageval_spec.wording import count_noun


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the labelled items of a metric were chosen.

    Attributes:
        items: the number of labelled items.
        known: how many of them have a probability of selection.
        lowest, highest: the smallest and the largest of these; None without one.
        reasons: why items were chosen, each word once: `random`, `low`; empty if the labels do not say.
        labels, seen: the number of labels, and of those whose annotator had seen what the judge says.
    """

    items: int
    known: int
    lowest: float | None
    highest: float | None
    reasons: tuple[str, ...]
    labels: int = 0
    seen: int = 0

    @property
    def is_unequal(self) -> bool:
        """Whether all items have a probability, and not all the same."""
        return self.known == self.items and self.lowest != self.highest

    @property
    def is_partly_known(self) -> bool:
        """Whether some items have a probability and some do not."""
        return 0 < self.known < self.items

    @property
    def lacks_random(self) -> bool:
        """Whether the labels say how their items were chosen, and none was drawn from all answers at random."""
        return self.known > 0 and bool(self.reasons) and RANDOM_REASONS.isdisjoint(self.reasons)


def describe_sampling(items: Sequence[Sequence[Label]]) -> Sampling:
    """How items were chosen, from the labels of each."""
    known = [found for labels in items if (found := find_probability(labels)) is not None]
    words = (word for labels in items for label in labels for word in label.reasons)
    labels = [label for of in items for label in of]
    return Sampling(
        items=len(items),
        known=len(known),
        lowest=min(known, default=None),
        highest=max(known, default=None),
        reasons=tuple(dict.fromkeys(words)),
        labels=len(labels),
        seen=sum(label.saw_judge for label in labels),
    )


def find_probability(labels: Sequence[Label]) -> float | None:
    """The probability with which an item was chosen; the largest if its labels name several, None if they name none."""
    return max((one.probability for one in labels if one.probability is not None), default=None)


def weigh(items: Sequence[Sequence[Label]]) -> tuple[float, ...] | None:
    """One over the probability of each item; None if one is not known, or if all are the same."""
    if not describe_sampling(items).is_unequal:
        return None
    return tuple(1 / (find_probability(labels) or 1.0) for labels in items)


def explain_sampling(sampling: Sampling) -> list[str]:
    """What a reader of the means must know about it, in sentences; none if all items were equally likely."""
    told = []
    if sampling.is_unequal:
        told.append(
            f"The labelled answers were chosen with unequal probabilities, from {sampling.lowest:.3g} to "
            f"{sampling.highest:.3g}. The corrected mean and that of the labels weigh each by one over its "
            "probability, so that they hold for all answers. The other measures describe the labelled "
            "answers as they were chosen."
        )
    if sampling.is_partly_known:
        told.append(
            f"Only {sampling.known} of {sampling.items} labelled answers have a probability of selection, so all count "
            "alike. The means are biased unless the answers were drawn at random."
        )
    if sampling.lacks_random:
        told.append(
            f"No labelled answer was drawn at random: they are there because of {', '.join(sampling.reasons)}. The "
            "means hold for such answers only. Choose some at random: rageval-spec review select --random 50"
        )
    if sampling.seen:
        told.append(
            f"{sampling.seen} of {count_noun(sampling.labels, 'label')} came from people who had seen what the judge "
            "says. People follow it, so the judge may look better than it is."
        )
    return told


def explain_promise(sampling: Sampling | None) -> str | None:
    """What a reader of a guarantee must know about it; None if nothing says that the items were not drawn at random."""
    if sampling is None or not (sampling.is_unequal or sampling.is_partly_known or sampling.lacks_random):
        return None
    return (
        "The promise holds for answers chosen as the labelled ones were, which is not at random. To promise it for all "
        "answers, label some that are: rageval-spec review select --random 300"
    )
