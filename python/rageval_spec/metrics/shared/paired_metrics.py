"""Base classes for metrics that compare answers to one question under several conditions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from pydantic import Field

from rageval_spec.data import arithmetic
from rageval_spec.data.outcomes import Note, remark, writes_notes
from rageval_spec.data.samples import Part, Sample
from rageval_spec.metrics.shared.answer_metrics import EMPTY_ANSWER, EMPTY_REFERENCE, is_blank
from rageval_spec.metrics.shared.judged_metrics import (
    REFERENCE_IN_ANSWER,
    ConditionalJudge,
    OptionallyJudgedNode,
    ask_about,
)
from rageval_spec.metrics.shared.reference_metrics import exact_match, token_f1, tokenize_answer
from rageval_spec.plugin import Measured, Measurement
from rageval_spec.wording import count_noun

Rule = Literal["contains", "exact", "token_f1", "judge"]


class PairedNode(OptionallyJudgedNode):
    """The keys of a metric that rates the rightness of answers before it compares them."""

    by: Rule = Field(
        default="contains",
        description="How to rate the rightness of an answer. contains: it contains a reference word for word; exact: "
        "it equals a reference; token_f1: how many words they share; judge: how much of the reference it says.",
    )


P = TypeVar("P", bound=PairedNode)


RIGHT = ask_about("rightness", "grade", "Does the answer say what the reference answer says?", "reference", "answer")


class PairedMetric(ConditionalJudge[P]):
    """A metric of pairs: one value per group of queries, which the first query of the group has."""

    able = (frozenset({"support"}), frozenset({"grade"}))
    ways = ((REFERENCE_IN_ANSWER,), (RIGHT,))

    @property
    def is_partial(self) -> bool:
        return True

    @property
    def needs(self) -> frozenset[Part]:  # type: ignore[override]
        return frozenset({"answer", "reference", "group", "condition"})

    def ask(self, samples: Sequence[Sample]) -> Measured:
        if self.asks_judge:
            return super().ask(samples)
        return Measured([_rate(self.node.by, sample.answer or "", sample.references) for sample in samples])

    def settle(self, sample: Sample) -> Measurement | None:
        if all(is_blank(reference) for reference in sample.references):
            return Measurement.unscorable(EMPTY_REFERENCE)
        if is_blank(sample.answer):
            return Measurement.scored(0.0, EMPTY_ANSWER)
        return None

    def rate(self, samples: Sequence[Sample]) -> Measured:
        """The rightness of each answer, in [0, 1], or why it is unknown."""
        return super().compute(samples)

    def compare(self, samples: Sequence[Sample], first: str, second: str) -> Measured:
        """One measurement per group, of its answers under two conditions, at the first of its queries."""
        groups = _gather(samples, (first, second))
        whole = [group for group in groups.values() if all(group.places.values())]
        wanted = sorted(place for group in whole for places in group.places.values() for place in places)
        rated = self.rate([samples[place] for place in wanted]) if wanted else Measured(())
        rightness = dict(zip(wanted, rated.measurements, strict=True))
        neither = f"neither {first!r} nor {second!r}"
        measurements = [Measurement.unscorable(f"its condition '{one.condition}' is {neither}") for one in samples]
        pairs: list[tuple[float, ...]] = []
        for group in groups.values():
            for place in group.members:
                measurements[place] = Measurement.unscorable(
                    f"the value of group '{group.name}' is at its query {samples[group.members[0]].query_id}"
                )
            measurements[group.members[0]] = self._measure_group(group, samples, rightness, pairs)
        return Measured(measurements, (*rated.notes, remark(_write_pairs, pairs, first, second)))

    @abstractmethod
    def measure_pair(self, first: float, second: float) -> Measurement:
        """The value of a group, from the rightness of its answers under two conditions; means of several answers."""

    def _measure_group(
        self,
        group: _Group,
        samples: Sequence[Sample],
        rightness: Mapping[int, Measurement],
        pairs: list[tuple[float, ...]],
    ) -> Measurement:
        lacking = [condition for condition, places in group.places.items() if not places]
        if lacking:
            return Measurement.unscorable(f"group '{group.name}' has no answer under '{lacking[0]}'")
        for place in group.members:
            if rightness[place].value is None:
                reason = f"query {samples[place].query_id}: {rightness[place].reason}"
                return Measurement(None, rightness[place].status, reason, rightness[place].details)
        means = [arithmetic.average(rightness[p].value or 0.0 for p in places) for places in group.places.values()]
        pairs.append(tuple(means))
        measured = self.measure_pair(*means)
        answers = [
            {"query_id": samples[p].query_id, "condition": samples[p].condition, "right": rightness[p].value}
            for p in group.members
        ]
        details = {"group": group.name, "right": dict(zip(group.places, means, strict=True)), "answers": answers}
        return Measurement(measured.value, measured.status, measured.reason, details)


class _Group(NamedTuple):
    name: str
    members: list[int]
    places: dict[str, list[int]]


def _gather(samples: Sequence[Sample], conditions: tuple[str, str]) -> dict[str, _Group]:
    """The queries of each group under one of the conditions, in their order."""
    groups: dict[str, _Group] = {}
    for place, sample in enumerate(samples):
        if sample.group is not None and sample.condition in conditions:
            new = _Group(sample.group, [], {condition: [] for condition in conditions})
            group = groups.setdefault(sample.group, new)
            group.members.append(place)
            group.places[sample.condition].append(place)
    return groups


@writes_notes
def _write_pairs(pairs: Sequence[tuple[float, ...]], first: str, second: str) -> Iterator[Note]:
    """A note on how right the answers are under each condition, over the groups that have both."""
    if pairs:
        means = (arithmetic.average(pair[side] for pair in pairs) for side in (0, 1))
        shown = ", ".join(f"{mean:.3f} under '{name}'" for mean, name in zip(means, (first, second), strict=True))
        yield Note("right_by_condition", f"answers are right: {shown}, over {count_noun(len(pairs), 'group')}")


def _rate(by: Rule, answer: str, references: Sequence[str]) -> Measurement:
    if by == "token_f1":
        right = token_f1(answer, references)
    else:
        right = float(exact_match(answer, references) if by == "exact" else holds(answer, references))
    return Measurement.scored(right, details={"by": by, "right": right})


def holds(answer: str, references: Sequence[str]) -> bool:
    """Whether an answer contains the words of one of the references, in their order and without gaps.

    Case, punctuation and English articles do not matter. A reference that has nothing else is in no answer.
    """
    words = f" {' '.join(tokenize_answer(answer))} "
    return any((wanted := " ".join(tokenize_answer(one))) != "" and f" {wanted} " in words for one in references)
