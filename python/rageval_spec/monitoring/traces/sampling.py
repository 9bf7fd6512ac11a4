"""Which traces are judged: a sample whose weighted means are those of all traffic.

Whether a trace is in the sample depends on a hash of its id, the same for all metrics, so the sample of a lower rate is
part of that of a higher one. The first traces of each stratum and hour are always in it, and so are those that a rule
keeps. The probability with which a trace is chosen is fixed before its hash is looked at; its weight is 1 over that
probability, so sums over the sample estimate those over all traces without bias (D. G. Horvitz, D. J. Thompson, "A
generalization of sampling without replacement from a finite universe", JASA 47, 1952).

A budget limits what judging may cost in a stretch of time. The cheap judge goes first: a trace that needs no call, such
as one that the first step of a cascade is sure of, is judged in any case and keeps its weight. Of the others, a part is
left out at random, so that the rest stand for them: each is judged with a chance that depends only on what came before
it, and counts with 1 over that chance. The chance is what is left of the budget over what the stretch is expected to
need. To prefer traces of which a cheap judge of another metric is unsure would make intervals wider, not narrower
(`benches/sampling.md`). Beyond the budget no call begins. What was spent is in the database, so a monitor that is
started again, or a second one, knows it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf, sqrt
from typing import Literal, NamedTuple, TypeAlias

from rageval_spec.data.traces import Trace
from rageval_spec.dataclass import dataclass, field
from rageval_spec.history.database import Connection, insert_or_add
from rageval_spec.monitoring.ledger import ClaimedTrace, SampledTrace, hour_of, name_group
from rageval_spec.plugin.budget import Budget, CallLimits
from rageval_spec.recorded.log_fields import DISLIKES
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
        self._strata = Counter(hour for _, hour in self._kept)

    def choose(self, claimed: ClaimedTrace) -> SampledTrace:
        """Whether a trace is in the sample, and how many traces it stands for. One that was chosen before stays."""
        if claimed.weight is not None:
            return SampledTrace(claimed, claimed.weight, None)
        if any(_RULES[rule](claimed.trace) for rule in self._always):
            return SampledTrace(claimed, 1.0, None)
        stratum = self._find_stratum(claimed)
        place = stratum, hour_of(claimed.started)
        if not claimed.trace.question:  # it takes no place of those that can be judged
            return SampledTrace(claimed, 1 / self._rate if draw(claimed.trace_id) < self._rate else None, None)
        chance = 1.0 if self._kept.get(place, 0) < self._at_least else self._rate
        if draw(claimed.trace_id) >= chance:
            return SampledTrace(claimed, None, stratum)
        self._strata[place[1]] += place not in self._kept
        self._kept[place] = self._kept.get(place, 0) + 1
        return SampledTrace(claimed, 1 / chance, stratum)

    def forget(self, before: float) -> None:
        """Forget the hours before a time, so that a monitor that runs for months does not grow."""
        hour = hour_of(before)
        self._kept = {place: count for place, count in self._kept.items() if place[1] >= hour}
        self._strata = Counter(hour for _, hour in self._kept)

    def _find_stratum(self, claimed: ClaimedTrace) -> str:
        if self._by is None:
            return ""
        found = name_group(claimed.trace, self._by)
        stratum = OTHER if found is None else found
        hour = hour_of(claimed.started)
        if (stratum, hour) in self._kept or self._strata[hour] < _MOST_STRATA:
            return stratum
        return OTHER


def _has_error(trace: Trace) -> bool:
    return trace.answer is None and trace.question != ""


def is_disliked(trace: Trace) -> bool:
    """Whether a user gave a value of 0 or less, or a label that says no."""
    said = [one for one in trace.feedback if one.source != "program"]
    return any(
        (one.value is not None and one.value <= 0) or (one.label or "").strip().lower() in DISLIKES for one in said
    )


_RULES = {"errors": _has_error, "thumbs_down": is_disliked}


_ADD = insert_or_add("rageval_spending", ("monitor", "minute"), ("calls", "cost", "needed"))
_MINUTE = 60
_SHORTEST = 600.0
"""The least seconds that tell how many calls traces need."""


class Allowance(NamedTuple):
    """What a limit allows until its stretch of time ends, in its unit: calls or US dollars.

    Attributes:
        price: what a call takes on average; 0 if no call has been paid for yet.
        expected: the calls that traces are expected to need until then, if traffic stays as it was.
        usual: what traces needed lately of it, in a stretch of its length.
    """

    rate: Rate
    is_cost: bool
    left: float
    price: float
    expected: float
    usual: float

    @property
    def spare(self) -> float:
        """What usual traffic leaves of a stretch."""
        return max(0.0, self.rate.events - self.usual)


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

    def find_chance(self, calls: float, now: float) -> float:
        """The chance of each trace that needs calls, if those that are due need so many together; from 0 to 1.

        How many are chosen is random; the chance is so low that two standard deviations more than on average still fit.
        """
        chance = 1.0
        for one in self.list_allowances(now):
            left = one.left / one.price if one.price else inf
            if calls + one.expected > left:
                surely = left + 2 - 2 * sqrt(left + 1)  # n + 2 sqrt(n) is what is left
                chance = min(chance, left / (calls + one.expected), surely / calls)
        return chance

    def find_room(self, now: float) -> float:
        """How many calls are left over when the traces that are still expected get theirs."""
        rooms = (one.left / one.price - one.expected for one in self.list_allowances(now) if one.price)
        return max(0.0, min(rooms, default=inf))

    def list_allowances(self, now: float) -> list[Allowance]:
        """What each limit of the spec allows."""
        rates = ((self.node.calls, False), (self.node.cost, True))
        return [self._describe(read_rate(text), is_cost, now) for text, is_cost in rates if text is not None]

    def _describe(self, rate: Rate, is_cost: bool, now: float) -> Allowance:
        passed = now % rate.seconds
        left = max(0.0, rate.events - self._sum(now - passed, now + _MINUTE)[is_cost])
        calls, cost, needed = self._sum(now - rate.seconds, now + _MINUTE)
        price = (cost / calls if calls else 0.0) if is_cost else 1.0
        each_second = needed / min(rate.seconds, max(now - self._find_first(now), _SHORTEST))
        expected, usual = each_second * (rate.seconds - passed), price * each_second * rate.seconds
        return Allowance(rate, is_cost, left, price, expected, usual)

    def limit(self, now: float) -> None:
        """Let no call begin beyond what is left of the present stretch."""
        self.budget.stopped = None
        for one in self.list_allowances(now):
            if one.is_cost:
                self.budget.max_cost = self.budget.cost + one.left
            else:
                self.budget.max_calls = CallLimits(models=self.budget.calls + self.budget.retries + int(one.left))

    def record(self, now: float) -> tuple[int, float]:
        """Write down what was spent since the last time; the calls and the dollars."""
        made, cost = self.budget.calls + self.budget.retries, self.budget.cost
        new = made - self._counted[0], cost - self._counted[1]
        self._counted = made, cost
        if new[0]:
            self.connection.execute(_ADD, (self.monitor, int(now // _MINUTE) * _MINUTE, *new, 0.0))
        return new

    def note_needed(self, calls: float, started: Sequence[float]) -> None:
        """Write down how many calls traces need together that began at these times, whether they get them or not."""
        minutes = sorted(Counter(int(one // _MINUTE) * _MINUTE for one in started).items())
        rows = [(self.monitor, minute, 0, 0.0, calls * count / len(started)) for minute, count in minutes]
        self.connection.execute_many(_ADD, rows)

    def _find_first(self, now: float) -> float:
        """When the first trace began that needed a call; now, if none did yet."""
        ((first,),) = self.connection.execute(
            "SELECT MIN(minute) FROM rageval_spending WHERE monitor = ? AND needed > 0", (self.monitor,)
        )
        return now if first is None else float(first)

    def _sum(self, since: float, until: float) -> tuple[int, float, float]:
        ((calls, cost, needed),) = self.connection.execute(
            "SELECT COALESCE(SUM(calls), 0), COALESCE(SUM(cost), 0), COALESCE(SUM(needed), 0) FROM rageval_spending "
            "WHERE monitor = ? AND minute >= ? AND minute < ?",
            (self.monitor, int(since // _MINUTE) * _MINUTE, until),
        )
        return int(calls), float(cost), float(needed)
