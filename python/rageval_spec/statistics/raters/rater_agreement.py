"""How well people (or judges) who rated the same items agree, with bootstrap intervals.

| coefficient | what it compares |
|---|---|
| `percent` | the share of pairs of ratings that are equal, without a correction for chance |
| `kappa`, `kappa-linear`, `kappa-quadratic` | two raters: Cohen's kappa (1960), weighted kappa (1968) |
| `fleiss` | equally many ratings of each item: Fleiss' kappa (1971) |
| `ac1` | Gwet's AC1 (2008), which stays high where one category dominates and kappa collapses |
| `alpha-nominal`, `alpha-ordinal`, `alpha-interval` | Krippendorff's alpha (2011); ratings may be missing |

Each coefficient is a function of sums over the items: of counts, shares or squares. A resample of the items is
therefore a product of matrices, and 2,000 resamples of 2,000 items take less than a second.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass
from rageval_spec.libraries import Bools, Floats, Ints, np
from rageval_spec.statistics.intervals import bootstrap_interval, divide

Coefficient = Literal[
    "percent", "kappa", "kappa-linear", "kappa-quadratic", "fleiss", "ac1", "alpha-nominal", "alpha-ordinal",
    "alpha-interval",
]  # fmt: skip
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
MISSING = -1
"""The code of an item that a rater did not rate."""


@dataclass(frozen=True, slots=True)
class AgreementCoefficient:
    """A coefficient of agreement.

    Attributes:
        value: 1 for perfect agreement, 0 for what chance gives (except `percent`), negative below that; None if it is
            not defined, for a `reason`.
        interval: its BCa bootstrap interval over the items, or over their clusters; None if there is none.
        items: the items that count: those with at least two ratings.
    """

    coefficient: Coefficient
    value: float | None
    interval: Interval | None
    items: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings of items by raters.

    Attributes:
        codes: shape (items, raters): the place of each rating in `categories`, or `MISSING`.
        categories: all categories in ascending order, those that nobody used included. Weights and ordinal distances
            count places; `alpha-interval` needs numbers.
    """

    codes: Ints
    categories: tuple[float | str, ...]

    @classmethod
    def of(
        cls,
        ratings: Mapping[tuple[Hashable, Hashable], float | str],
        items: Sequence[Hashable],
        raters: Sequence[Hashable],
        categories: Sequence[float | str] | None = None,
    ) -> Ratings:
        """The ratings by item and rater, which become rows and columns in the order of `items` and `raters`.

        `categories` is the scale in ascending order; by default the ratings that there are, numbers before texts.
        """
        if categories is None:
            categories = sorted({*ratings.values()}, key=lambda one: (isinstance(one, str), one))
        known = tuple(categories)
        places = {category: place for place, category in enumerate(known)}
        rows = {item: row for row, item in enumerate(items)}
        columns = {rater: column for column, rater in enumerate(raters)}
        codes = np.full((len(items), len(raters)), MISSING, dtype=np.int64)
        for (item, rater), rating in ratings.items():
            codes[rows[item], columns[rater]] = places[rating]
        return cls(codes, known)

    @property
    def is_scale(self) -> bool:
        """Whether there are more than two categories, all of them numbers, so that their order counts."""
        return len(self.categories) > 2 and not any(isinstance(one, str) for one in self.categories)

    def pair(self, first: int, second: int) -> Ratings:
        return Ratings(self.codes[:, [first, second]], self.categories)


def measure_agreement(
    ratings: Ratings,
    coefficient: Coefficient,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 2000,
    seed: int = 42,
) -> AgreementCoefficient:
    """A coefficient of agreement and its 95 % interval.

    It has no value, and says why, if no item has two ratings, if the raters gave only one category (there is then
    nothing to correct for chance), or if the coefficient does not fit the ratings. Items with fewer than two ratings do
    not count, except that AC1 takes from them, as Gwet defines it, how often each category is used.

    `clusters` has what each item belongs to (its question), and whole clusters are resampled; by default each item is
    its own. With 0 resamples, there is no interval.
    """
    rated = (ratings.codes != MISSING).sum(axis=1) >= 2
    count = int(rated.sum())
    problem = _describe_problem(ratings, rated, coefficient)
    if problem is not None:
        return AgreementCoefficient(coefficient, None, None, count, problem)
    used = (ratings.codes != MISSING).any(axis=1) if coefficient == "ac1" else rated
    sums, combine = _prepare(Ratings(ratings.codes[used], ratings.categories), coefficient)
    value = float(combine(sums.sum(axis=0, keepdims=True))[0])
    if not np.isfinite(value):
        return AgreementCoefficient(
            coefficient, None, None, count, "all ratings are of one category, so chance explains them too"
        )
    interval = _compute_interval(sums, combine, used, clusters, resamples, seed)
    return AgreementCoefficient(coefficient, value, interval, count)


def measure_rater(
    ratings: Ratings,
    rater: int,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 2000,
    seed: int = 42,
) -> AgreementCoefficient:
    """How often the other raters of an item gave the same category as one rater: a `percent` of these pairs.

    `items` are those that this rater and at least one other rated. Otherwise like `measure_agreement`.
    """
    own = ratings.codes[:, rater]
    others = (ratings.codes != MISSING).sum(axis=1) - 1
    counts = (own != MISSING) & (others > 0)
    if not counts.any():
        return AgreementCoefficient("percent", None, None, 0, "nobody else rated the same items")
    equal = (ratings.codes == own[:, None]).sum(axis=1) - 1
    shares = equal[counts] / others[counts]
    sums = np.column_stack([shares, np.ones_like(shares)])
    interval = _compute_interval(sums, lambda totals: totals[:, 0] / totals[:, 1], counts, clusters, resamples, seed)
    return AgreementCoefficient("percent", float(shares.mean()), interval, int(counts.sum()))


def count_confusion(ratings: Ratings, first: int = 0, second: int = 1) -> Ints:
    """How often each pair of categories was given to the same item: rows of one rater, columns of the other."""
    size = len(ratings.categories)
    a, b = ratings.codes[:, first], ratings.codes[:, second]
    both = (a != MISSING) & (b != MISSING)
    return np.bincount(a[both] * size + b[both], minlength=size * size).reshape(size, size)


_Combine: TypeAlias = "Callable[[Floats], Floats]"


def _describe_problem(ratings: Ratings, rated: Bools, coefficient: Coefficient) -> str | None:
    if not rated.any():
        return "no item has two ratings"
    raters = (ratings.codes != MISSING).sum(axis=1)[rated]
    if coefficient.startswith("kappa") and ratings.codes.shape[1] != 2:
        return "kappa compares two raters; use fleiss, ac1 or alpha for more"
    if coefficient == "fleiss" and raters.min() != raters.max():
        return "fleiss needs the same number of ratings for each item; use ac1 or alpha"
    if coefficient == "alpha-interval" and any(isinstance(one, str) for one in ratings.categories):
        return "alpha-interval needs numbers"
    return None


def _prepare(ratings: Ratings, coefficient: Coefficient) -> tuple[Floats, _Combine]:
    """What is summed over the items, and the coefficient of rows of such sums; not a number where it is undefined."""
    if coefficient.startswith("kappa"):
        return _prepare_kappa(ratings, coefficient.partition("-")[2])
    if coefficient == "alpha-interval":
        return _prepare_interval_alpha(ratings)
    places = range(len(ratings.categories))
    counts = np.stack([(ratings.codes == place).sum(axis=1) for place in places], axis=1) * 1.0
    return _PREPARED[coefficient](counts)


def _share_agreeing(counts: Floats) -> Floats:
    """For each item, the share of its pairs of ratings that are equal; 0 if it has no pair."""
    raters = counts.sum(axis=1)
    shares: Floats = (counts * (counts - 1)).sum(axis=1) / np.maximum(raters * (raters - 1), 1)
    return shares


def _prepare_percent(counts: Floats) -> tuple[Floats, _Combine]:
    shares = _share_agreeing(counts)
    return np.column_stack([shares, np.ones_like(shares)]), lambda sums: sums[:, 0] / sums[:, 1]


def _prepare_kappa(ratings: Ratings, weighting: str) -> tuple[Floats, _Combine]:
    size = len(ratings.categories)
    first, second = ratings.codes[:, 0], ratings.codes[:, 1]
    places = np.arange(size)
    apart = np.abs(places[:, None] - places[None, :]).astype(float)
    costs = {"": (apart > 0) * 1.0, "linear": apart, "quadratic": apart**2}[weighting]

    def combine(sums: Floats) -> Floats:
        observed, by_first, by_second = sums[:, 0], sums[:, 1 : 1 + size], sums[:, 1 + size :]
        return _correct(observed, ((by_first @ costs) * by_second).sum(axis=1) / by_first.sum(axis=1))

    used = [(codes[:, None] == places).astype(float) for codes in (first, second)]
    return np.column_stack([costs[first, second], *used]), combine


def _prepare_fleiss(counts: Floats) -> tuple[Floats, _Combine]:
    shares = _share_agreeing(counts)

    def combine(sums: Floats) -> Floats:
        items, agreeing = sums[:, 0], sums[:, 1]
        used = sums[:, 2:] / sums[:, 2:].sum(axis=1, keepdims=True)
        return _correct(1 - agreeing / items, 1 - (used**2).sum(axis=1))

    return np.column_stack([np.ones_like(shares), shares, counts]), combine


def _prepare_ac1(counts: Floats) -> tuple[Floats, _Combine]:
    raters = counts.sum(axis=1, keepdims=True)
    size = counts.shape[1]

    def combine(sums: Floats) -> Floats:
        items, shared, agreeing = sums[:, 0], sums[:, 1], sums[:, 2]
        used = sums[:, 3:] / items[:, None]
        chance = (used * (1 - used)).sum(axis=1) / (size - 1) if size > 1 else np.ones_like(items)
        with np.errstate(invalid="ignore"):
            return _correct(1 - agreeing / shared, 1 - chance)

    return np.column_stack([np.ones(len(counts)), raters > 1, _share_agreeing(counts), counts / raters]), combine


def _prepare_nominal_alpha(counts: Floats) -> tuple[Floats, _Combine]:
    """Without a table of pairs of categories, so that labels can be free texts."""
    raters = counts.sum(axis=1, keepdims=True)
    within = (counts * (raters - counts)).sum(axis=1, keepdims=True) / (raters - 1)

    def combine(sums: Floats) -> Floats:
        used = sums[:, 1:]
        total = used.sum(axis=1)
        return _correct(sums[:, 0], (used * (total[:, None] - used)).sum(axis=1) / (total - 1))

    return np.hstack([within, counts]), combine


def _prepare_ordinal_alpha(counts: Floats) -> tuple[Floats, _Combine]:
    size = counts.shape[1]
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, np.arange(size), np.arange(size)] -= counts
    coincidences = (pairs / (raters - 1)[:, None, None]).reshape(len(counts), size * size)

    def combine(sums: Floats) -> Floats:
        tables = sums.reshape(-1, size, size)
        used = tables.sum(axis=2)
        total = used.sum(axis=1)
        distances = _rank_distances(used)
        by_chance = used[:, :, None] * used[:, None, :] / (total - 1)[:, None, None]
        return _correct((tables * distances).sum(axis=(1, 2)), (by_chance * distances).sum(axis=(1, 2)))

    return coincidences, combine


_PREPARED: Mapping[str, Callable[[Floats], tuple[Floats, _Combine]]] = {
    "percent": _prepare_percent,
    "fleiss": _prepare_fleiss,
    "ac1": _prepare_ac1,
    "alpha-nominal": _prepare_nominal_alpha,
    "alpha-ordinal": _prepare_ordinal_alpha,
}
"""What works on the number of raters who gave each item each category."""


def _rank_distances(used: Floats) -> Floats:
    """The squared ordinal distances of Krippendorff: between two categories lie those of the ratings between them."""
    upto = np.cumsum(used, axis=1) - used / 2
    distances: Floats = (upto[:, :, None] - upto[:, None, :]) ** 2
    return distances


def _prepare_interval_alpha(ratings: Ratings) -> tuple[Floats, _Combine]:
    """Squared differences are sums of squares, so no table of categories is needed, however many numbers there are."""
    there = ratings.codes != MISSING
    numbers = np.array([float(one) for one in ratings.categories])
    centred = numbers - numbers[ratings.codes[there]].mean()
    given = np.where(there, centred[ratings.codes], 0.0)
    raters, total, squares = there.sum(axis=1).astype(float), given.sum(axis=1), (given**2).sum(axis=1)
    within = 2 * (raters * squares - total**2) / (raters - 1)

    def combine(sums: Floats) -> Floats:
        observed, pairable, total, squares = sums.T
        by_chance = 2 * (pairable * squares - total**2) / (pairable - 1)
        return _correct(observed, np.where(by_chance > _NOTHING * pairable, by_chance, 0.0))

    return np.column_stack([within, raters, total, squares]), combine


_NOTHING = 1e-20
"""What rounding can leave of squared differences that are 0."""


def _correct(observed: Floats, by_chance: Floats) -> Floats:
    """Agreement corrected for chance: 1 less the disagreement there is as a part of the one that chance gives."""
    return 1 - divide(observed, by_chance)


def _compute_interval(
    sums: Floats,
    combine: _Combine,
    used: Bools,
    clusters: Sequence[Hashable] | None,
    resamples: int,
    seed: int,
) -> Interval | None:
    """The interval over the items that are used, whose rows `sums` has."""
    kept = clusters and [cluster for cluster, counts in zip(clusters, used, strict=True) if counts]
    return bootstrap_interval(
        lambda weights: combine(weights @ sums), len(sums), clusters=kept, resamples=resamples, seed=seed
    )
