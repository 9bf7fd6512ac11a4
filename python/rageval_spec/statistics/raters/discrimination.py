"""How well a judge's values tell right from wrong, and where to draw the line, also in the steps of a cascade.

A row is positive if people said yes. Functions take weights of shape (resamples, rows) and return a number for each
resample: not a number where it is undefined, because only one class is there.

A step of a cascade says no up to `low` and yes from `high` on; between them the next step is asked. Each side must
agree with the labels: of the rows that a step decides with no, at least the wanted share are no, and of those with
yes, at least that share are yes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from rageval_spec.dataclass import dataclass
from rageval_spec.libraries import Bools, Floats, Ints, np
from rageval_spec.statistics.intervals import compute_exact_interval, divide
from rageval_spec.statistics.regression import sum_groups

if TYPE_CHECKING:
    from rageval_spec.data.outcomes import Interval
    from rageval_spec.statistics.intervals import Statistic


FEWEST = 10
"""A side of fewer rows does not show how well it agrees."""
_MARGINS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Parts of the way from the wanted agreement to 1 by which the agreement with known labels must exceed it."""


@dataclass(frozen=True, slots=True)
class Band:
    """The scores between which a step is unsure; None if it never says no, or never yes."""

    low: float | None = None
    high: float | None = None

    def decide(self, scores: Floats) -> Ints:
        """1 where the step says yes, -1 where it says no, and 0 where it is unsure or has no score (NaN)."""
        yes = np.zeros(len(scores), dtype=bool) if self.high is None else scores >= self.high
        no = np.zeros(len(scores), dtype=bool) if self.low is None else scores <= self.low
        return yes.astype(np.int64) - (no & ~yes)


@dataclass(frozen=True, slots=True)
class StepChoice:
    """What was chosen for one step, and how it does on questions that had no part in choosing.

    The band is chosen on all rows. The step is asked about `reached` rows; it decides `decided` of them, and `agreeing`
    of these as the labels do. The interval is of the agreement; None if the step decides nothing.
    """

    band: Band
    reached: int
    decided: int
    agreeing: int
    interval: Interval | None

    @property
    def agreement(self) -> float | None:
        """The share of decided rows that agree with the labels."""
        return self.agreeing / self.decided if self.decided else None


def choose_band(scores: Floats, is_yes: Bools, wanted: float) -> Band:
    """The band that decides most rows, with at least the wanted agreement, from 0 to 1, on each side.

    Scores are NaN where the step has none.
    """
    known = ~np.isnan(scores)
    levels, places = np.unique(scores[known], return_inverse=True)
    if not len(levels):
        return Band()
    yes: Floats = np.bincount(places, weights=is_yes[known], minlength=len(levels)).astype(float)
    rows = np.bincount(places, minlength=len(levels))
    below = _find_last(np.cumsum(rows - yes), np.cumsum(rows), wanted)
    above = _find_last(np.cumsum(yes[::-1]), np.cumsum(rows[::-1]), wanted)
    first = None if above is None else len(levels) - 1 - above
    if below is not None and first is not None and below >= first:
        below, first = _divide_scores(yes, rows, first, below)
    low = None if below is None else _between(levels, below, below + 1)
    return Band(low, None if first is None else _between(levels, first, first - 1))


def choose_bands(
    scores: Floats, is_yes: Bools, wanted: float, folds: Ints, questions: Sequence[object]
) -> tuple[StepChoice, ...]:
    """The band of each step but the last, in order; each step gets the rows that the steps before left undecided.

    A band that agrees just enough with known labels agrees less with new ones. So of a few margins the smallest is used
    with which the decisions agree enough on the folds that had no part in choosing. A step that agrees enough with none
    decides nothing. `scores` has the shape (rows, steps), without the last step, and NaN where a step has no score.
    """
    waiting = np.ones(len(is_yes), dtype=bool)
    outside = {int(fold): waiting.copy() for fold in np.unique(folds)}
    chosen = []
    for step in range(scores.shape[1]):
        column = scores[:, step]
        reached = sum(int((waits & (folds == fold)).sum()) for fold, waits in outside.items())
        band, decided = Band(), np.zeros(len(is_yes), dtype=np.int64)
        for margin in _MARGINS:
            target = wanted + margin * (1 - wanted)
            tried, bands = _decide_outside(column, is_yes, target, folds, outside)
            if tried.any() and _agree(tried, is_yes).sum() >= wanted * (tried != 0).sum():
                band, decided = choose_band(np.where(waiting, column, np.nan), is_yes, target), tried
                for fold, waits in outside.items():
                    waits &= bands[fold].decide(column) == 0
                break
        chosen.append(_describe(band, reached, decided, is_yes, questions))
        waiting &= band.decide(column) == 0
    return tuple(chosen)


def _decide_outside(
    scores: Floats, is_yes: Bools, target: float, folds: Ints, outside: dict[int, Bools]
) -> tuple[Ints, dict[int, Band]]:
    """The decisions on each fold by the band that is chosen on the others, and these bands."""
    decided = np.zeros(len(scores), dtype=np.int64)
    bands: dict[int, Band] = {}
    for fold, waits in outside.items():
        inside = folds == fold
        bands[fold] = choose_band(np.where(waits & ~inside, scores, np.nan), is_yes, target)
        decided = np.where(inside & waits, bands[fold].decide(scores), decided)
    return decided, bands


def _describe(band: Band, reached: int, decided: Ints, is_yes: Bools, questions: Sequence[object]) -> StepChoice:
    """With several rows of a question, only the number of questions counts for the interval's width."""
    rows = [place for place, found in enumerate(decided.tolist()) if found]
    agreeing = int(_agree(decided, is_yes).sum())
    distinct = len({questions[place] for place in rows})
    share = agreeing / len(rows) if rows else 0.0
    interval = compute_exact_interval(round(share * distinct), distinct)
    return StepChoice(band, reached, len(rows), agreeing, interval)


def _agree(decided: Ints, is_yes: Bools) -> Bools:
    agreeing: Bools = ((decided == 1) & is_yes) | ((decided == -1) & ~is_yes)
    return agreeing


def _find_last(right: Floats, rows: Ints, wanted: float) -> int | None:
    """The last place up to which enough rows are right; None if there is none, or it has too few rows."""
    enough = np.flatnonzero((right >= wanted * rows - 1e-9) & (rows >= FEWEST))
    return int(enough[-1]) if len(enough) else None


def _divide_scores(yes: Floats, rows: Ints, first: int, last: int) -> tuple[int | None, int | None]:
    """Where both sides could decide the same rows: the last level that is no and the first that is yes."""
    cuts = range(first, last + 2)
    no = np.concatenate([[0], np.cumsum(rows - yes)])
    right = [no[cut] + yes[cut:].sum() for cut in cuts]
    cut = cuts[int(np.argmax(right))]
    return (cut - 1 if cut else None), (cut if cut < len(rows) else None)


def _between(levels: Floats, inside: int, outside: int) -> float:
    """Halfway between the last level that is decided and the next one; at the ends, the level itself."""
    if not 0 <= outside < len(levels):
        return float(levels[inside])
    return float((levels[inside] + levels[outside]) / 2)


Discrimination = Literal["auroc", "average_precision"]
Decision = Literal["balanced_accuracy", "f1", "youden", "precision", "recall", "specificity", "kappa"]
Criterion = Literal["f1", "youden"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)


@dataclass(frozen=True, slots=True)
class ChosenThreshold:
    """A threshold (values from it on are taken as yes) and the criterion's value there."""

    threshold: float
    value: float


def discriminate(values: Floats, is_positive: Bools) -> Mapping[Discrimination, Statistic]:
    """What does not depend on a threshold, as functions of weights.

    | name | |
    |---|---|
    | `auroc` | the probability that a positive row has a higher value than a negative one; ties count half |
    | `average_precision` | the mean precision over the positive rows, best value first; ties are taken together |
    """
    _, places = np.unique(values, return_inverse=True)

    def split(weights: Floats) -> tuple[Floats, Floats]:
        return sum_groups(weights * is_positive, places), sum_groups(weights * ~is_positive, places)

    def compute_auroc(weights: Floats) -> Floats:
        yes, no = split(weights)
        below = np.cumsum(no, axis=1) - no
        return divide((yes * (below + no / 2)).sum(axis=1), yes.sum(axis=1) * no.sum(axis=1))

    def compute_average_precision(weights: Floats) -> Floats:
        yes, no = (part[:, ::-1] for part in split(weights))
        found, taken = np.cumsum(yes, axis=1), np.cumsum(yes + no, axis=1)
        precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
        return divide((yes * precision).sum(axis=1), yes.sum(axis=1))

    return {"auroc": compute_auroc, "average_precision": compute_average_precision}


def decide(values: Floats, is_positive: Bools, threshold: float) -> Mapping[Decision, Statistic]:
    """How good the decisions at a threshold are, as functions of weights.

    | name | |
    |---|---|
    | `precision` | of the rows taken as yes, those that are |
    | `recall`, `specificity` | of the yes, and of the no, those found |
    | `f1` | the harmonic mean of precision and recall |
    | `balanced_accuracy`, `youden` | the mean of recall and specificity; their sum less 1 |
    | `kappa` | Cohen's kappa of the decisions with the labels |
    """
    taken = values >= threshold
    cells = np.stack([taken & is_positive, taken & ~is_positive, ~taken & is_positive, ~taken & ~is_positive], axis=1)

    def find(name: Decision) -> Statistic:
        return lambda weights: _rate_decisions(*(weights @ cells).T)[name]

    return {name: find(name) for name in DECISIONS}


def choose_threshold(values: Floats, is_positive: Bools, criterion: Criterion) -> ChosenThreshold | None:
    """The threshold with the best criterion; of equally good ones, the lowest. None if only one class is there.

    Candidates lie halfway between neighbouring values, and at the lowest value, where everything is taken as yes.
    """
    yes = int(is_positive.sum())
    if not 0 < yes < len(values):
        return None
    levels, found, taken = _count_taken(values, is_positive)
    wrong = taken - found
    scores = _rate_decisions(found, wrong, yes - found, (len(values) - yes) - wrong)[criterion]
    return _choose(levels, scores, int(np.nanargmax(scores)))


def choose_for_precision(values: Floats, is_positive: Bools, wanted: float) -> ChosenThreshold | None:
    """The threshold that finds most positive rows at this precision or a higher one; None if no threshold reaches it.

    The value of the choice is the precision there.
    """
    if not is_positive.any():
        return None
    levels, found, taken = _count_taken(values, is_positive)
    precision = found / taken
    enough = np.flatnonzero(precision >= wanted)
    if not len(enough):
        return None
    return _choose(levels, precision, int(enough[0]))


def choose_highest_precision(values: Floats, is_positive: Bools) -> ChosenThreshold:
    """The threshold with the highest precision; of several, the lowest. There must be a row."""
    levels, found, taken = _count_taken(values, is_positive)
    return _choose(levels, found / taken, int(np.argmax(found / taken)))


def _count_taken(values: Floats, is_positive: Bools) -> tuple[Floats, Floats, Floats]:
    """The different values, ascending; the positive rows, and all rows, if each and those above it are taken as yes."""
    levels, places = np.unique(values, return_inverse=True)
    hits, rows = (np.bincount(places, weights=of, minlength=len(levels)) for of in (is_positive, None))
    found, taken = (np.cumsum(counts[::-1])[::-1].astype(float) for counts in (hits, rows))
    return levels, found, taken


def _choose(levels: Floats, scores: Floats, place: int) -> ChosenThreshold:
    """The threshold that takes the level at a place as yes, and no level below it."""
    threshold = levels[0] if place == 0 else (levels[place - 1] + levels[place]) / 2
    return ChosenThreshold(float(threshold), float(scores[place]))


def _rate_decisions(hits: Floats, wrong: Floats, missed: Floats, rejected: Floats) -> Mapping[Decision, Floats]:
    """How good decisions are, by the rows rightly and wrongly taken as yes, missed, and rightly rejected."""
    recall, specificity = divide(hits, hits + missed), divide(rejected, rejected + wrong)
    chance = (hits + wrong) * (wrong + rejected) + (hits + missed) * (missed + rejected)
    return {
        "balanced_accuracy": (recall + specificity) / 2,
        "f1": divide(2 * hits, 2 * hits + wrong + missed),
        "youden": recall + specificity - 1,
        "precision": divide(hits, hits + wrong),
        "recall": recall,
        "specificity": specificity,
        "kappa": divide(2 * (hits * rejected - wrong * missed), chance),
    }
