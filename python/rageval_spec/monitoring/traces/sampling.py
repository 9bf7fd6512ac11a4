"""Which traces are judged: a sample whose weighted means are those of all traffic.

Whether a trace is in the sample depends on a hash of its id, the same for all metrics, so the sample of a lower rate is
part of that of a higher one. The first traces of each stratum and hour are always in it, and so are those that a rule
keeps. The probability with which a trace is chosen is fixed before its hash is looked at; its weight is 1 over that
probability, so sums over the sample estimate those over all traces without bias (D. G. Horvitz, D. J. Thompson, "A
generalization of sampling without replacement from a finite universe", JASA 47, 1952).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from rageval_spec.data.traces import Trace
from rageval_spec.monitoring.ledger import ClaimedTrace, SampledTrace, hour_of

KeepRule: TypeAlias = Literal["errors", "thumbs_down"]
OTHER = "other"
"""The stratum of traces without a value for the attribute that makes strata."""
_MOST_STRATA = 200
"""The most strata of an hour that have a least number of their own; the traces of all others are one stratum."""


def draw(trace_id: str) -> float:
    """A number in [0, 1) that depends on the id alone, uniform over ids."""
    return int.from_bytes(hashlib.sha256(trace_id.encode("utf-8", "replace")).digest()[:7], "big") / 2**56


class Sampler:
    """Chooses traces one after the other.

    Args:
        rate: the share of traces to judge, in (0, 1].
        at_least: how many of each stratum and hour to judge before the rate decides.
        by: the column of a trace whose values are the strata, such as `route`; None for a single stratum.
        always: rules that keep a trace with certainty.
        kept: how many of each stratum and hour were chosen before, as the ledger counts them.
    """

    def __init__(
        self,
        rate: float = 1.0,
        at_least: int = 0,
        by: str | None = None,
        always: Iterable[KeepRule] = (),
        kept: Mapping[tuple[str, int], int] | None = None,
    ) -> None:
        self._rate = rate
        self._at_least = at_least
        self._by = by
        self._always = tuple(always)
        self._kept = dict(kept or {})

    def choose(self, claimed: ClaimedTrace) -> SampledTrace:
        """Whether a trace is in the sample, and how many traces it stands for. One that was chosen before stays."""
        stratum = self._find_stratum(claimed)
        if claimed.weight is not None:
            return SampledTrace(claimed, claimed.weight, stratum)
        if any(_RULES[rule](claimed.trace) for rule in self._always):
            return SampledTrace(claimed, 1.0, stratum)
        place = stratum, hour_of(claimed.started)
        chance = 1.0 if self._kept.get(place, 0) < self._at_least else self._rate
        if draw(claimed.trace_id) >= chance:
            return SampledTrace(claimed, None, stratum)
        self._kept[place] = self._kept.get(place, 0) + 1
        return SampledTrace(claimed, 1 / chance, stratum)

    def forget(self, before: float) -> None:
        """Forget the hours before a time, so that a monitor that runs for months does not grow."""
        hour = hour_of(before)
        self._kept = {place: count for place, count in self._kept.items() if place[1] >= hour}

    def _find_stratum(self, claimed: ClaimedTrace) -> str:
        if self._by is None:
            return ""
        found = next((value for name, value in claimed.trace.list_columns() if name == self._by), None)
        stratum = OTHER if found is None else str(found)[:100]
        hour = hour_of(claimed.started)
        if (stratum, hour) in self._kept or sum(known == hour for _, known in self._kept) < _MOST_STRATA:
            return stratum
        return OTHER


def _has_error(trace: Trace) -> bool:
    return trace.answer is None


def is_disliked(trace: Trace) -> bool:
    """Whether a user gave a value of 0 or less, or a label that says no."""
    said = [one for one in trace.feedback if one.source != "program"]
    return any(
        (one.value is not None and one.value <= 0) or (one.label or "").strip().lower() in _DISLIKES for one in said
    )


_DISLIKES = frozenset({"thumbs_down", "thumbs-down", "down", "dislike", "negative", "bad", "👎"})
_RULES = {"errors": _has_error, "thumbs_down": is_disliked}
