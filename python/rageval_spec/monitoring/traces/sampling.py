"""Which traces are judged: a sample whose weighted means are those of all traffic.

Whether a trace is in the sample depends on a hash of its id, the same for all metrics, so the sample of a lower rate is
part of that of a higher one. The first traces of each stratum and hour are always in it, and so are those that a rule
keeps. The probability with which a trace is chosen is fixed before its hash is looked at; its weight is 1 over that
probability, so sums over the sample estimate those over all traces without bias (D. G. Horvitz, D. J. Thompson, "A
generalization of sampling without replacement from a finite universe", JASA 47, 1952).

A budget limits what judging may cost in a stretch of time.

Traces are left out at random, so that the others stand for them: each is judged with a chance that depends only on what
came before it, and counts with 1 over that chance. The chance is what is left of the budget over what the traffic of
the stretch is expected to need. Beyond that, no call begins once the budget is spent. What was spent is in the
database, so a monitor that is started again, or a second one, knows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rageval_spec.data.traces import Trace
from rageval_spec.history.database import Connection, insert_or_add
from rageval_spec.monitoring.ledger import ClaimedTrace, SampledTrace, hour_of, name_group
from rageval_spec.plugin.budget import Budget, CallLimits
from rageval_spec.spec.blocks.monitor import HourlyBudgetNode, Rate, read_rate

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
        if not claimed.trace.question:  # it takes no place of those that can be judged
            return SampledTrace(claimed, 1 / self._rate if draw(claimed.trace_id) < self._rate else None, None)
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
        found = name_group(claimed.trace, self._by)
        stratum = OTHER if found is None else found
        hour = hour_of(claimed.started)
        if (stratum, hour) in self._kept or sum(known == hour for _, known in self._kept) < _MOST_STRATA:
            return stratum
        return OTHER


def _has_error(trace: Trace) -> bool:
    return trace.answer is None and trace.question != ""


def is_disliked(trace: Trace) -> bool:
    """Whether a user gave a value of 0 or less, or a label that says no."""
    said = [one for one in trace.feedback if one.source != "program"]
    return any(
        (one.value is not None and one.value <= 0) or (one.label or "").strip().lower() in _DISLIKES for one in said
    )


_DISLIKES = frozenset({"thumbs_down", "thumbs-down", "down", "dislike", "negative", "bad", "👎"})
_RULES = {"errors": _has_error, "thumbs_down": is_disliked}


_ADD = insert_or_add("rageval_spending", ("monitor", "minute"), ("calls", "cost", "traces"))
_MINUTE = 60
_ROUNDING = 1e-9


@dataclass
class Spending:
    """The budget of one monitor. Attributes: `budget` is what models count their calls in."""

    connection: Connection
    monitor: str
    node: HourlyBudgetNode
    budget: Budget
    _counted: tuple[int, float] = field(default=(0, 0.0), init=False)

    @property
    def is_limited(self) -> bool:
        """Whether the spec names a limit at all."""
        return self.node.calls is not None or self.node.cost is not None

    def choose(self, trace_ids: list[str], calls: int, now: float) -> tuple[set[str], float]:
        """The traces to judge of those that would need so many calls together, and the chance that each had.

        Nothing is left out without a limit, or if the traces need no call.
        """
        if not self.is_limited or not calls or not trace_ids:
            return set(trace_ids), 1.0
        chance = min(
            1.0, *(self._find_chance(rate, is_cost, calls, len(trace_ids), now) for rate, is_cost in self._list_rates())
        )
        return {one for one in trace_ids if draw(f"budget {one}") < chance}, chance

    def _find_chance(self, rate: Rate, is_cost: bool, calls: int, traces: int, now: float) -> float:
        """What is left, over what the rest of the stretch is expected to need if its traffic stays as it was."""
        spent_calls, spent_cost, _ = self._sum(now - now % rate.seconds, now + _MINUTE)
        left = rate.events - (spent_cost if is_cost else spent_calls)
        all_calls, all_cost, all_traces = self._sum(now - rate.seconds, now + _MINUTE)
        each = calls / traces
        if is_cost:
            each *= all_cost / all_calls if all_calls else 0.0
        expected = max(traces, all_traces * (1 - now % rate.seconds / rate.seconds))
        return max(0.0, left) / max(each * expected, _ROUNDING)

    def limit(self, now: float) -> None:
        """Let no call begin beyond what is left of the present stretch."""
        self.budget.stopped = None
        for rate, is_cost in self._list_rates():
            calls, cost, _ = self._sum(now - now % rate.seconds, now + _MINUTE)
            if is_cost:
                self.budget.max_cost = self.budget.cost + max(0.0, rate.events - cost)
            else:
                made = self.budget.calls + self.budget.retries
                self.budget.max_calls = CallLimits(models=made + max(0, int(rate.events - calls)))

    def record(self, traces: int, now: float) -> tuple[int, float]:
        """Write down what was spent since the last time, on so many traces; the calls and the dollars."""
        made, cost = self.budget.calls + self.budget.retries, self.budget.cost
        new = made - self._counted[0], cost - self._counted[1]
        self._counted = made, cost
        if self.is_limited and (traces or new[0]):
            self.connection.execute(_ADD, (self.monitor, int(now // _MINUTE) * _MINUTE, *new, traces))
        return new

    def _list_rates(self) -> list[tuple[Rate, bool]]:
        rates = ((self.node.calls, False), (self.node.cost, True))
        return [(read_rate(text), is_cost) for text, is_cost in rates if text is not None]

    def _sum(self, since: float, until: float) -> tuple[int, float, int]:
        ((calls, cost, traces),) = self.connection.execute(
            "SELECT COALESCE(SUM(calls), 0), COALESCE(SUM(cost), 0), COALESCE(SUM(traces), 0) FROM rageval_spending "
            "WHERE monitor = ? AND minute >= ? AND minute < ?",
            (self.monitor, int(since // _MINUTE) * _MINUTE, until),
        )
        return int(calls), float(cost), int(traces)
