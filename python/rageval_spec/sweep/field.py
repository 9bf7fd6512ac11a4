"""The field of a sweep: which candidate is best, which cannot be told from it, and what each axis does.

All are compared with the best by paired permutation tests with Holm's correction. To rule out the truly best one takes
a false finding in one of the at most K - 1 comparisons that it is in, so it stays with a probability of 1 - alpha. A
sweep with rounds spends alpha / rounds in each. A winner's mean is high partly by luck, so its interval is one of a
family that holds for all means at once: with the correlations of the values (T. Hothorn, F. Bretz, P. Westfall,
Biometrical Journal 50, 2008), or Bonferroni's. A bootstrap of the maximum fails where several are equally good (D. W.
K. Andrews, Econometrica 68, 2000).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rageval_spec.data.evaluation import Aggregate, Comparison
from rageval_spec.dataclass import asdict, dataclass, field, replace
from rageval_spec.diagnostics import dump_visible
from rageval_spec.libraries import np, pl
from rageval_spec.statistics.aggregation import aggregate, compare_systems, count_queries
from rageval_spec.statistics.weighted_clusters import find_spread, lay_out, lay_out_clusters

if TYPE_CHECKING:
    from rageval_spec.data.datasets import Design
    from rageval_spec.spec.blocks.spec_node import StatisticsNode

Scores: TypeAlias = Mapping[str, Mapping[str, float]]
"""The scored values of candidates, by name and by query id."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Placing:
    """What its last round found of a combination. The comparison is with the best of that round.

    With `needed` questions, the difference of a tied one would be significant (power 80 %) if it is as large as it
    seems; None where no number is known. `failed` questions have no value because of an error.
    """

    standing: Literal["best", "tied", "worse", "unscored"]
    round: int
    aggregate: Aggregate | None = None
    comparison: Comparison | None = None
    needed: int | None = None
    failed: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    gates: str = ""


@dataclass(frozen=True)
class Found:
    """What a sweep found, with the keys of its JSON: `outcome` is `unresolvable` if none is worse than the best.

    `corrected` has the interval of the best one's mean that holds although it was chosen. `effects` compare each value
    of an axis with its first.
    """

    dataset: str
    system: str
    metric: str
    rounds: Sequence[int]
    outcome: Literal["best", "shortlist", "unresolvable"]
    best: str | None
    corrected: Aggregate | None
    combinations: Sequence[Placing]
    effects: Sequence[tuple[str, Comparison]]

    def dump(self) -> bytes:
        """The JSON."""
        return dump_visible({"version": 1, **asdict(self)}).encode()


@dataclass(frozen=True)
class Field:
    """What makes numbers of values: the metric that decides, the settings, and which questions belong together."""

    dataset: str
    metric_name: str
    metric: Any
    statistics: StatisticsNode
    design: Design | None = None

    def place(
        self, scores: Scores, number: int = 1, rounds: int = 1, failed: Mapping[str, int] | None = None
    ) -> dict[str, Placing]:
        """The standing of each candidate in a round, by name. The first of equal means is the best.

        To choose it, a `failed` question counts as the worst value of the round: it makes no winner to fail where
        questions are hard.
        """
        alpha, failed = (1 - self.statistics.confidence) / rounds, failed or {}
        means = self.average({name: values for name, values in scores.items() if values})
        sign = -1 if self.metric.higher_is_better is False else 1
        worst = min((sign * value for values in scores.values() for value in values.values()), default=0.0)
        lost = {name: failed.get(name, 0) / (failed.get(name, 0) + len(scores[name])) for name in means}
        counted = {
            name: sign * (one.mean or 0.0) * (1 - lost[name]) + worst * lost[name] for name, one in means.items()
        }
        best = max(counted, key=lambda name: counted[name], default="")
        table, metrics = self._tabulate({name: scores[name] for name in means}), {self.metric_name: self.metric}
        tests = compare_systems(table, best, metrics, self.statistics, designs=self._designs)
        compared = {one.system: one for one in tests.comparisons}
        placings = {name: Placing("unscored", number, failed=failed.get(name, 0)) for name in scores}
        for name, mean in means.items():
            one = compared.get(name)
            is_worse = one is not None and one.p_adjusted <= alpha and sign * one.difference < 0
            standing: Any = "best" if name == best else "worse" if is_worse else "tied"
            pair, share = (scores[name], scores[best]), alpha / max(1, len(compared))
            needed = self._count_needed(*pair, share) if one and not is_worse else None
            placings[name] = replace(placings[name], standing=standing, aggregate=mean, comparison=one, needed=needed)
        return placings

    def sum_up(self, system: str, rounds: Sequence[int], placings: Mapping[str, Placing], scores: Scores) -> Found:
        """What all rounds together show; `scores` are the last ones of each."""
        best = next((name for name, one in placings.items() if one.standing == "best"), None)
        others = {one.standing for one in placings.values()} - {"best"}  # nothing is known of those without values
        outcome: Any = "best" if others == {"worse"} else "shortlist" if "worse" in others else "unresolvable"
        corrected, effects = None, list[tuple[str, Comparison]]()
        if best is not None:
            corrected = self.average({best: scores[best]}, self.find_joint_confidence(scores))[best]
            effects = self.find_effects({name: one.settings for name, one in placings.items()}, scores)
        where = self.dataset, system, self.metric_name
        return Found(*where, rounds, outcome, best, corrected, [*placings.values()], effects)

    def average(self, scores: Scores, confidence: float | None = None) -> dict[str, Aggregate]:
        """The mean of each candidate, with its own interval."""
        settings = self.statistics.model_copy(update={"confidence": confidence or self.statistics.confidence})
        found = aggregate(self._tabulate(scores), {self.metric_name: self.metric}, settings, None, self._designs)
        return {one.system: one for one in found}

    def find_joint_confidence(self, scores: Scores) -> float:
        """The confidence at which the intervals of all means hold at the same time with that of the settings.

        The correlations are those on the questions that all have; with less than three, it is Bonferroni's, and so
        where one varies on other questions alone. Candidates without any variation do not count.
        """
        every = [values for values in scores.values() if values]
        shared, least = sorted(set[str].intersection(*map(set, every))), (1 - self.statistics.confidence) / len(every)
        if len(shared) < 3:
            return 1 - least
        layout = lay_out(self.design, shared, shared) if self.design else lay_out_clusters(shared)
        totals = np.array([layout.total([values[one] for one in shared]) for values in every])
        apart = totals - totals.mean(axis=1, keepdims=True)
        sizes = np.sqrt((apart**2).sum(axis=1, keepdims=True))
        moves = sizes[:, 0] > _ROUNDING
        if any(len({*values.values()}) > 1 and not one for values, one in zip(every, moves, strict=True)):
            return 1 - least
        apart = (apart / np.maximum(sizes, _ROUNDING))[moves]
        roots, axes = np.linalg.eigh(apart @ apart.T)
        draws = np.random.default_rng(self.statistics.seed).standard_normal((self.statistics.resamples, len(roots)))
        drawn = draws @ (axes * np.sqrt(np.maximum(roots, 0))) @ axes.T
        limit = float(np.quantile(np.abs(drawn).max(axis=1, initial=0), self.statistics.confidence))
        return 1 - round(min(len(every) * least, max(least, 2 - 2 * NormalDist().cdf(limit))), 6)

    def find_effects(self, settings: Mapping[str, Mapping[str, str]], scores: Scores) -> list[tuple[str, Comparison]]:
        """Each axis with the paired difference between each of its values and the first, averaged over all other axes.

        `settings` has the value of each axis by candidate. Only questions that are scored for all candidates count.
        """
        shared = set[str].intersection(*map(set, scores.values()))
        bases, tables = next(iter(settings.values())), []
        for axis in bases:
            groups: dict[str, list[Mapping[str, float]]] = {}
            for name, values in scores.items():
                groups.setdefault(settings[name][axis], []).append(values)
            means = {at: {one: fmean(of[one] for of in group) for one in shared} for at, group in groups.items()}
            tables.append(self._tabulate(means, axis))
        # The axes are one family, so each stands for a metric of one table.
        metrics = dict.fromkeys(bases, self.metric)
        found = compare_systems(pl.concat(tables), bases, metrics, self.statistics, designs=self._designs)
        return [(one.metric, replace(one, metric=self.metric_name)) for one in found.comparisons]

    def _count_needed(self, values: Mapping[str, float], best: Mapping[str, float], alpha: float) -> int | None:
        shared = sorted(values.keys() & best.keys())
        sd, mean = find_spread({query: values[query] - best[query] for query in shared}, self.design)
        return None if isnan(sd) else count_queries(sd, abs(mean), alpha)

    @property
    def _designs(self) -> dict[str, Design]:
        return {} if self.design is None else {self.dataset: self.design}

    def _tabulate(self, scores: Scores, metric: str = "") -> pl.DataFrame:
        rows = ((name, query, float(value)) for name, of in scores.items() for query, value in sorted(of.items()))
        schema = {"system": pl.String, "query_id": pl.String, "value": pl.Float64}
        fixed = {"dataset": self.dataset, "metric": metric or self.metric_name, "status": "scored"}
        return pl.DataFrame(rows, schema, orient="row").with_columns(
            pl.lit(one).alias(name) for name, one in fixed.items()
        )
