"""What judging may cost in a stretch of time, and which traces are judged where it does not suffice for all.

Traces are left out at random, so that the others stand for them: each is judged with a chance that depends only on what
came before it, and counts with 1 over that chance. The chance is what is left of the budget over what the traffic of
the stretch is expected to need. Beyond that, no call begins once the budget is spent. What was spent is in the
database, so a monitor that is started again, or a second one, knows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rageval_spec.history.database import Connection, insert
from rageval_spec.monitoring.sampling import draw
from rageval_spec.plugin.budget import Budget, CallLimits
from rageval_spec.spec.blocks.monitor import HourlyBudgetNode, Rate, read_rate

_COLUMNS = ("monitor", "minute", "calls", "cost", "traces")
_ADD = f"{insert('rageval_spending', _COLUMNS)} ON CONFLICT (monitor, minute) DO UPDATE SET " + ", ".join(
    f"{name} = rageval_spending.{name} + excluded.{name}" for name in _COLUMNS[2:]
)
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
