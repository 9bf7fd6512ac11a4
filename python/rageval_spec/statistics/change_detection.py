"""Changes of a mean in a stream without end, found with a known number of false alarms.

An e-detector (J. Shin, A. Ramdas, A. Rinaldo, "E-detectors: a nonparametric framework for sequential change detection",
arXiv 2203.03532) bets at each value that the mean has fallen, and begins to bet anew at each value, because nobody
knows when the change comes. If nothing has changed, a bettor's capital, which begins at 1, is expected to stay at 1 at
most. So the sum of the capitals of all who have begun (Shiryaev and Roberts) is expected to be at most the number of
values. An alarm needs a sum of 1 / alpha, and takes it away. Therefore the expected number of alarms among n values is
at most alpha * n, and the average run length until one is at least 1 / alpha, whatever the values are.

Three things are added to that:

- **Steps.** A capital is shared among one bet for each step that the alert names. A bet on a step loses money while the
  mean has moved by less than half of it, so that alarms are about steps, not about every small difference.
- **The baseline is an estimate.** Each supposed mean has its own sum. It is multiplied by an e-value of the baseline
  against this mean, and the smallest product counts. At the true mean the product is one whose expectation is bounded
  as above; so the smallest one, which is at most that, keeps the bound. The e-value is that of a normally distributed
  mean of the baseline: this part, unlike the rest, needs a baseline of some 30 values.
- **Hours of the week.** Each value is compared with the baseline's mean of its hour, which is shrunk towards the
  overall mean. What its error adds to the variance of a run of values is taken from each bet.

Values with weights (inverse probabilities of being sampled) bet in proportion to them: what a weighted value gains is
0 on average if the mean over all traffic, sampled or not, is the supposed one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rageval_spec.dataclass import dataclass
from rageval_spec.libraries import Bools, Floats, Ints, np

if TYPE_CHECKING:
    Side: TypeAlias = Literal["fall", "rise"]
    Numbers: TypeAlias = Sequence[float] | Floats
    Hours: TypeAlias = Sequence[int] | Ints


HOURS = 168
"""The hours of a week."""
_DAY = 24
_MARGINS = (0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
"""The supposed means, in standard errors of the baseline below its mean."""
_CERTAIN, _DISTANCES = 0.5, (1.5, 3.0)
"""How an e-value of the baseline is shared: a part that is constant, and bets on its being off by so many errors."""
_MOST = 0.9
"""The largest part of a capital that is wagered."""
_DAYS_OF_A_RUN = 3
"""How often a run of values meets the same hour of the day before it is decided."""
_MOST_ALPHA = 0.5
_BLOCK = 256
"""How many values of each stream are replayed at once."""
_LARGEST = 1e200
"""A sum is kept below what a double can hold; a smaller one adds no false alarm."""


class Baseline(NamedTuple):
    """The mean that a stream is compared with, in the units of the values.

    Attributes:
        mean, error: the (weighted) mean over the week and its standard error; 0 for a bound, which is no estimate.
        spread: the mean square of what a value gains, `weight * (mean - value)`, with weights relative to the largest.
        weight: the mean weight, relative to the largest: 1 without weights.
        largest: the largest weight that a value may have.
        offsets: what the mean of each hour of the week (168, from Monday 0:00) has more than `mean`; empty without
            seasonality.
        wobble: what the errors of the offsets add to `spread`, for each value that the stream has in a week.
    """

    mean: float
    error: float
    spread: float
    weight: float = 1.0
    largest: float = 1.0
    offsets: tuple[float, ...] = ()
    wobble: float = 0.0


def fit_baseline(
    values: Numbers,
    weights: Numbers | None = None,
    hours: Hours | None = None,
    *,
    largest: float | None = None,
    span: float = 1.0,
) -> Baseline:
    """The baseline from earlier values.

    Args:
        values: shape (n,), at least 2.
        weights: shape (n,), inverse probabilities, above 0; None if all count the same.
        hours: shape (n,), the number of the hour of each value, counted from a Monday 0:00; None without seasonality.
        largest: the largest weight that a later value may have; by default, that of these values.
        span: the length of the range of values, such as 1 for [0, 1]; as if one value had varied over it, a spread is
            never 0.

    The mean is Hájek's. An offset is a sum of effects of the day, of the hour of the day and of the hour of the week,
    each shrunk as far as the groups do not differ by more than chance (the moment estimator of the variance of random
    effects: R. DerSimonian, N. Laird, "Meta-analysis in clinical trials", 1986). Four weeks of values are enough to
    find steps hardly later than without seasonality; with one week, a small step takes up to twice as long.

    Raises `ValueError` for fewer than two values, and for numbers that are not finite or weights not above 0.
    """
    numbers, own = _check(values), np.ones(len(values)) if weights is None else _check(weights)
    if len(numbers) < 2 or len(own) != len(numbers) or own.min() <= 0:
        raise ValueError("a baseline needs at least two values, each with a weight above 0")
    most = max(float(own.max()), largest or 0.0)
    own = own / most
    mean = float((own * numbers).sum() / own.sum())
    rest, offsets, wobble = numbers - mean, np.zeros(HOURS), 0.0
    places = None if hours is None else np.asarray(hours, dtype=np.int64) % HOURS
    if places is not None:
        rest, offsets, wobble = _fit_offsets(rest, own, places)
    count = len(numbers)
    spread = (float((own**2 * rest**2).sum()) + float((own**2).mean()) * span**2 / 4) / (count + 1)
    error = math.sqrt(spread / (count - 1)) / float(own.mean())
    found = () if places is None else tuple(offsets.tolist())
    return Baseline(mean, error, spread, float(own.mean()), most, found, wobble)


def _check(values: Numbers) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a value or weight is not a finite number")
    return numbers


def _fit_offsets(rest: Floats, weights: Floats, places: Ints) -> tuple[Floats, Floats, float]:
    """What the hours leave of the values, the offsets, and what their errors add for each value in a week."""
    week, shares = np.arange(HOURS), np.bincount(places, weights, HOURS) / weights.sum()
    offsets, wobble = np.zeros(HOURS), 0.0
    for group, visit, times in (
        (week // _DAY, week // _DAY, 1),
        (week % _DAY, week, _DAYS_OF_A_RUN),
        (week, week, 1),
    ):
        effects, variances = _shrink(rest, weights, group[places], int(group.max()) + 1)
        rest, offsets = rest - effects[group[places]], offsets + effects[group]
        # The values of one visit share its error, so that the variance of their sum grows with their number squared.
        in_visit = np.bincount(visit, shares)[visit]
        wobble += times * float((shares * in_visit * variances[group]).sum())
    return rest, offsets - float((shares * offsets).sum()), wobble * float(weights.mean()) ** 2


def _shrink(rest: Floats, weights: Floats, groups: Ints, count: int) -> tuple[Floats, Floats]:
    """The effect of each group of values, shrunk towards 0, and the variance of its error."""
    total = np.bincount(groups, weights, count)
    effective = total**2 / np.maximum(np.bincount(groups, weights**2, count), 1e-300)
    means = np.bincount(groups, weights * rest, count) / np.maximum(total, 1e-300)
    within = float((weights * rest**2).sum() / weights.sum())
    seen, everything = int((total > 0).sum()), float(effective.sum())
    if seen < 2:
        return np.zeros(count), np.zeros(count)
    scale = everything - float((effective**2).sum()) / everything
    excess = float((effective * means**2).sum()) - (seen - 1) * within
    between = max(0.0, excess) / scale
    kept = between * effective / np.maximum(between * effective + within, 1e-300)
    return kept * means, (1 - kept) * between


def share_false_alarms(allowed: float, days: float, looks_per_day: Sequence[float]) -> list[float]:
    """The alpha of each alert, so that all of them together have at most `allowed` false alarms in so many days.

    `looks_per_day` has, for each alert, how many values a day its detector sees; for an alert that tests each window
    anew, how many windows a day there are. Each alert has an equal part of what is allowed, and each of its looks an
    equal part of that: the expected number of alarms adds up over alerts and looks, whether they depend on one another
    or not.

    Raises `ValueError` unless all numbers are above 0.
    """
    if not (allowed > 0 and days > 0 and all(looks > 0 for looks in looks_per_day)):
        raise ValueError("what is allowed, the days and the looks per day must be above 0")
    return [min(_MOST_ALPHA, allowed / (len(looks_per_day) * days * looks)) for looks in looks_per_day]


class State(NamedTuple):
    """What a detector knows; plain numbers, so that `State(*json.loads(json.dumps(state)))` goes on as before.

    Attributes:
        capital: the sums, by side, supposed mean and step.
        changed: for each side, whether the mean has moved and has not come back.
        since: for each side, the logarithm of the capital of Page's best beginning, on the smallest step; and since
            that beginning the number of values, their weights, and what they gained.
    """

    capital: Sequence[Sequence[Sequence[float]]]
    changed: Sequence[bool]
    since: Sequence[Sequence[float]]


class Change(NamedTuple):
    """An alarm, or its end.

    Attributes:
        place: the index of the value, among those of the update, at which it was certain.
        side: to which side the mean moved.
        is_over: whether the mean has come back.
        severity: the name of the largest step that `size` reaches, or of the smallest one.
        size: by how much the mean has moved since the likely beginning, in the units of the values, above 0.
        values: how many values there are since then; a change begins at `place - values + 1`.
    """

    place: int
    side: Side
    is_over: bool
    severity: str
    size: float
    values: int


class _Sums(NamedTuple):
    """The numbers of `State` as arrays; leading axes, if any, are streams."""

    capital: Floats
    changed: Bools
    since: Floats


@dataclass(frozen=True)
class Detector:
    """An e-detector of one stream of values.

    Attributes:
        baseline: what the mean is compared with.
        steps: the size of each step by its name, in the units of the values, above 0.
        alpha: the expected number of false alarms for each value, below 1.
        sides: which moves matter; two sides have half of alpha each.
        bounds: the lowest and the highest possible value.
        per_week: how many values the stream has in a week; needed only with seasonality.
    """

    baseline: Baseline
    steps: Mapping[str, float]
    alpha: float
    sides: tuple[Side, ...] = ("fall",)
    bounds: tuple[float, float] = (0.0, 1.0)
    per_week: float = 0.0

    def __post_init__(self) -> None:
        """Check the settings, so that no update fails later."""
        if not 0 < self.alpha < 1 or not self.steps or not self.sides or min(self.steps.values()) <= 0:
            raise ValueError("a detector needs an alpha in (0, 1), a side, and steps above 0")
        if not self.bounds[0] <= self.baseline.mean <= self.bounds[1] or self.bounds[0] == self.bounds[1]:
            raise ValueError(f"the baseline's mean {self.baseline.mean:g} is outside the bounds of the values")
        if self.baseline.offsets and self.per_week <= 0:
            raise ValueError("a baseline with hours of the week needs the number of values in a week")

    def begin(self) -> State:
        """The state before the first value."""
        return _dump(self._begin(()))

    def update(
        self, state: State, values: Numbers, weights: Numbers | None = None, hours: Hours | None = None
    ) -> tuple[State, list[Change]]:
        """The state after these values, and what changed meanwhile; however they are divided into updates.

        `values`, `weights` and `hours` are as in `fit_baseline`. A value that could not be scored is left out.

        Raises `ValueError` for a value outside the bounds, a weight above the largest, or a baseline with hours of the
        week but values without.
        """
        gains, own = self._measure(values, weights, hours)
        sums, changes = _parse(state), list[Change]()
        for place, (factors, news) in enumerate(zip(*self._bet(gains, own), strict=True)):
            before, sums = sums.changed, self._advance(sums, factors, news)
            if sums.changed is not before:
                moved = np.flatnonzero(sums.changed != before)
                changes += [self._describe(sums, int(side), place) for side in moved]
                sums.since[before & ~sums.changed] = 0.0
        return _dump(sums), changes

    def describe(self, state: State) -> list[Change]:
        """What has moved and has not come back, with its present size; `place` is that of the last value, -1."""
        sums = _parse(state)
        return [self._describe(sums, int(side), -1) for side in np.flatnonzero(sums.changed)]

    def _begin(self, streams: tuple[int, ...]) -> _Sums:
        sides = (*streams, len(self.sides))
        capital = np.zeros((*sides, len(self._margins), len(self.steps)))
        return _Sums(capital, np.zeros(sides, dtype=bool), np.zeros((*sides, 4)))

    @cached_property
    def _span(self) -> float:
        return self.bounds[1] - self.bounds[0]

    @cached_property
    def _sizes(self) -> Floats:
        return np.sort(np.array([*self.steps.values()])) / self._span

    @cached_property
    def _wobble(self) -> float:
        return self.baseline.wobble * self.per_week / self._span**2

    @cached_property
    def _margins(self) -> Floats:
        """How far the supposed means are from the baseline's, towards the step."""
        found: Floats = np.array(_MARGINS if self.baseline.error else _MARGINS[:1]) * self.baseline.error / self._span
        return found

    @cached_property
    def _evidence(self) -> Floats:
        """The e-value of the baseline against the means between each supposed one and the one before it; and the part
        of a capital that each step has.

        It grows with the distance, so that its value at the nearer end bounds it; the constant part bounds it on the
        other side of the mean.
        """
        if not self.baseline.error:
            return np.full(1, 1 / len(self.steps))
        nearer = np.array(_MARGINS[:-1])
        bets = [(1 - _CERTAIN) / len(_DISTANCES) * np.exp(at * nearer - at**2 / 2) for at in _DISTANCES]
        found: Floats = np.concatenate([[_CERTAIN], _CERTAIN + np.sum(bets, axis=0)]) / len(self.steps)
        return found

    @cached_property
    def _wagers(self) -> Floats:
        """What each bet wagers, by side and step: the best for a normal distribution, as far as the range allows."""
        spread = self.baseline.spread / self._span**2 + self._wobble
        offsets = np.array([*self.baseline.offsets, 0.0]) / self._span
        level = (self.baseline.mean - self.bounds[0]) / self._span + offsets
        most = [
            _MOST / (1 - _clip(level if side == "fall" else 1 - level).min() + self._margins.max())
            for side in self.sides
        ]
        found: Floats = np.minimum(self._sizes * self.baseline.weight / spread, np.array(most)[:, None])
        return found

    def _measure(self, values: Numbers, weights: Numbers | None, hours: Hours | None) -> tuple[Floats, Floats]:
        """What each value gains on each side, of shape (..., sides), and its weight relative to the largest."""
        numbers = _check(values)
        own = np.ones(numbers.shape) if weights is None else _check(weights) / self.baseline.largest
        low, high = self.bounds
        if ((numbers < low) | (numbers > high)).any():
            raise ValueError(f"a value is not between {low:g} and {high:g}")
        if (own <= 0).any() or (own > 1).any() or own.shape != numbers.shape:
            raise ValueError(f"each value needs a weight above 0 and at most {self.baseline.largest:g}")
        level = np.full(numbers.shape, self.baseline.mean)
        if self.baseline.offsets:
            if hours is None:
                raise ValueError("the baseline has hours of the week, so that each value needs its hour")
            level = level + np.array(self.baseline.offsets)[np.asarray(hours, dtype=np.int64) % HOURS]
        gained = own * (_clip((level - low) / self._span) - (numbers - low) / self._span)
        return np.stack([gained if side == "fall" else -gained for side in self.sides], axis=-1), own

    def _bet(self, gains: Floats, own: Floats) -> tuple[Floats, Floats]:
        """By what each value multiplies the capitals, of shape (..., sides, supposed means, steps), and what it adds to
        `since`.
        """
        apart = gains[..., None] - own[..., None, None] * self._margins
        paid = np.exp(-(self._wagers**2) * self._wobble / 2)
        factors = (1 + self._wagers[:, None, :] * apart[..., None]) * paid[:, None, :]
        weights = np.broadcast_to(own[..., None], gains.shape)
        return factors, np.stack([np.log(factors[..., 0, 0]), np.ones(gains.shape), weights, gains], axis=-1)

    def _advance(self, sums: _Sums, factors: Floats, news: Floats) -> _Sums:
        """The sums after one value of each stream; `changed` is the same array if nothing has changed.

        Once the mean has moved, nobody begins anew, and the sums are kept at what an alarm needs. It has come back when
        no more than the capital of one bettor is left: the values since then speak as strongly against the change as
        those before the alarm spoke for it.
        """
        changed, limit = sums.changed, len(self.sides) / self.alpha
        capital = sums.capital + ~changed[..., None, None]
        capital *= factors
        total = self._weigh(capital)
        reached, over = total >= limit, changed & (total < 1)
        if reached.any() or over.any():
            capital *= np.where(over, 0.0, limit / np.maximum(total, limit))[..., None, None]
            if (reached != changed).any() or over.any():
                changed = (changed | reached) & ~over
        since = sums.since + news
        since *= ((since[..., 0] > 0) | changed | over)[..., None]
        return _Sums(np.minimum(capital, _LARGEST, out=capital), changed, since)

    def _weigh(self, capital: Floats) -> Floats:
        """The sum that counts, by side: of the supposed means, the one that says least."""
        found: Floats = (np.add.reduce(capital, axis=-1) * self._evidence).min(axis=-1)
        return found

    def _describe(self, sums: _Sums, side: int, place: int) -> Change:
        _, values, weight, gap = sums.since[side].tolist()
        size = max(0.0, gap / weight) * self._span if weight else 0.0
        names = sorted(self.steps, key=lambda name: self.steps[name])
        severity = [name for name in names if self.steps[name] <= size] or names[:1]
        is_over = not bool(sums.changed[side])
        return Change(place, self.sides[side], is_over, severity[-1], size, int(values))


def replay(
    detectors: Sequence[Detector], values: Floats, weights: Floats | None = None, hours: Ints | None = None
) -> Bools:
    """Where alarms begin, on any side, in many streams at once; all arrays have the shape (streams, time).

    For simulations: the same as `Detector.update` with the detector of each stream. The detectors differ only in their
    baselines, which are all estimates or all bounds.
    """
    first, alarms = detectors[0], np.zeros(values.shape, dtype=bool)
    sums = first._begin(values.shape[:1])
    for start in range(0, values.shape[1], _BLOCK):
        block = slice(start, start + _BLOCK)
        parts = (None if of is None else of[:, block] for of in (values, weights, hours))
        rows = zip(detectors, *([None] * len(detectors) if of is None else of for of in parts), strict=True)
        bets = [one._bet(*one._measure(*own)) for one, *own in rows]
        factors, news = (np.stack(of, axis=1) for of in zip(*bets, strict=True))
        for time in range(len(factors)):
            before, sums = sums.changed, first._advance(sums, factors[time], news[time])
            alarms[:, start + time] = (sums.changed & ~before).any(axis=-1)
    return alarms


def _clip(level: Floats) -> Floats:
    clipped: Floats = np.clip(level, 0.0, 1.0)
    return clipped


def _parse(state: State) -> _Sums:
    capital, since = (np.array(part, dtype=np.float64) for part in (state.capital, state.since))
    return _Sums(capital, np.array(state.changed, dtype=bool), since)


def _dump(sums: _Sums) -> State:
    return State(sums.capital.tolist(), sums.changed.tolist(), sums.since.tolist())
