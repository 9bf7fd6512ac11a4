"""Chooses answers for people to judge, and says for each how likely it was to be chosen.

Answers are chosen for several reasons at once: at random, because the judge is unsure, because their values are low.
Each reason draws from the answers that it concerns, independently of the others, so the probability of an answer is
one minus the product of the probabilities that each reason passes it over. With these probabilities, means stay
unbiased.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from zlib import crc32

from rageval_spec.data.labels import join_probabilities
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.drawing import question_order
from rageval_spec.errors import DataError, UsageError
from rageval_spec.judging.composition import TO_A_PERSON
from rageval_spec.libraries import np, pl
from rageval_spec.review.tasks import KEY, ChosenAnswer, Key

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

Suspicion: TypeAlias = Literal["unsure", "low", "regressed", "person"]
SUSPICIONS: tuple[Suspicion, ...] = ("unsure", "low", "regressed", "person")
REASONS: Mapping[str, str] = {
    "random": "drawn at random from all answers",
    "slice": "drawn at random from each slice",
    "unsure": "the judge is unsure",
    "low": "a low value",
    "regressed": "worse than the baseline",
    "person": "the judge sent it to a person",
}
"""What each reason means, in the order in which reasons are named."""
USUAL_SHARE, USUAL_COUNT = 0.03, 50
"""By default, this share of the answers is drawn at random, and at least this many."""
MOST = 20
"""By default, each suspicion takes at most this many answers."""
FEWEST_OF_SLICE = 5
_DIGITS = 9
"""Ratings that differ only after these are equal."""
Unit: TypeAlias = Hashable


@dataclass(frozen=True)
class WantedSelection:
    """What to choose.

    Attributes:
        random: how many answers to draw at random: a share in (0, 1), or a count, which can be infinite; 0 for none;
            None for the usual (3%, at least 50).
        by_slice: draw them from each slice instead of from all: the share of each slice, at least 5; a count is spread
            over the slices.
        suspicions: the further reasons; None for all that find something.
        most: the most answers that each of these takes, the worst first; None for no limit.
        metrics: the metrics whose values count; by default those that a judge decides.
        below, threshold: what counts as low, for values in [0, 1]; near which values a judge is unsure.
        paired: choose the answers of all systems to a question together, so that systems can be compared.
    """

    random: float | None = None
    by_slice: bool = False
    suspicions: tuple[Suspicion, ...] | None = None
    most: int | None = MOST
    metrics: tuple[str, ...] = ()
    system: str | None = None
    dataset: str | None = None
    slice: str | None = None
    below: float = 0.7
    threshold: float = 0.5
    paired: bool = False
    seed: int = 42


@dataclass(frozen=True, slots=True)
class SelectionReason:
    """What one reason contributed: how many answers it concerns, and how many of them it drew."""

    reason: str
    concerned: int
    drawn: int


@dataclass(frozen=True)
class Selection:
    """The chosen answers, in an order that says nothing about them; the `population` is how many could have been
    chosen.

    `sources` are the reasons in the order of `REASONS`, without those that nobody asked for and that concern no answer.
    """

    chosen: tuple[ChosenAnswer, ...]
    population: int
    sources: tuple[SelectionReason, ...]
    metrics: tuple[str, ...]

    @property
    def is_representative(self) -> bool:
        """Whether every answer could have been chosen, so that means of all answers can be estimated."""
        return any(one.reason in ("random", "slice") and one.drawn for one in self.sources)


@dataclass(frozen=True, slots=True)
class _Population:
    """The answers that can be chosen, by the unit that is drawn (an answer, or a question), and the units' slices."""

    answers: Mapping[Unit, Sequence[Key]]
    slices: Mapping[Unit, Sequence[str]]

    def rate(self, ratings: Mapping[Key, float]) -> dict[Unit, float]:
        """The worst rating of each unit that has one."""
        rated = {unit: [ratings[key] for key in keys if key in ratings] for unit, keys in self.answers.items()}
        return {unit: max(found) for unit, found in rated.items() if found}


@dataclass(frozen=True, slots=True)
class _Draw:
    """What was drawn for one reason, and the probability of each unit that could have been."""

    reason: str
    taken: frozenset[Unit]
    chances: Mapping[Unit, float]


def select_answers(
    evaluation: Evaluation, wanted: WantedSelection, baseline: question_order.BaselineValues | None = None
) -> Selection:
    """Choose answers for review.

    The baseline is what answers regressed from; by default the baselines of gates, then the first system. Raises
    UsageError: a metric, system, dataset or slice is unknown, there is nothing to compare with, or there are no slices.
    Raises DataError: no system answers, or nothing is to be chosen.
    """
    metrics = wanted.metrics or list_judged_metrics(evaluation)
    if not metrics:
        raise UsageError(
            "no metric of these results measures how good an answer is; name what to ask: --ask faithfulness"
        )
    population = _list_population(evaluation, wanted)
    draws = [
        *_draw_random(population, wanted),
        *_draw_suspicions(evaluation, metrics, population, wanted, baseline),
    ]
    found = {unit for draw in draws for unit in draw.taken}
    if not found:
        raise DataError("no answer matches, so there is nothing to review; choose some at random: --random 50")
    units = [unit for unit in population.answers if unit in found]
    shuffled = [units[at] for at in _seed(WantedSelection(seed=wanted.seed), "order").permutation(len(units))]
    chosen = [
        ChosenAnswer(key, tuple(draw.reason for draw in draws if unit in draw.taken), _join_chances(unit, draws))
        for unit in shuffled
        for key in population.answers[unit]
    ]
    sources = tuple(
        SelectionReason(draw.reason, _count(draw.chances, population), _count(draw.taken, population)) for draw in draws
    )
    return Selection(tuple(chosen), sum(map(len, population.answers.values())), sources, tuple(metrics))


def _list_population(evaluation: Evaluation, wanted: WantedSelection) -> _Population:
    chosen = question_order.Filter(system=wanted.system, dataset=wanted.dataset, slice=wanted.slice)
    for metric in wanted.metrics or (None,):
        chosen = question_order.complete_filter(evaluation, replace(chosen, metric=metric))
    samples = evaluation.select_samples(*KEY, "slices", "status")
    if "status" in samples.columns and samples["status"].null_count() < samples.height:
        samples = samples.filter(pl.col("status") == "answered")
    else:  # results of earlier versions; the answers are read only then, because they can be large
        samples = evaluation.select_samples(*KEY, "slices", "answer").filter(pl.col("answer").is_not_null())
    for name, value in (("dataset", wanted.dataset), ("system", wanted.system)):
        samples = samples if value is None else samples.filter(pl.col(name) == value)
    slices = pl.col("slices") if "slices" in samples.columns else pl.lit([], dtype=pl.List(pl.String)).alias("slices")
    rows = samples.select(*KEY, slices.fill_null([]))
    if chosen.slice is not None:
        rows = rows.filter(pl.col("slices").list.contains(chosen.slice))
    answers: dict[Unit, list[Key]] = {}
    of_slices: dict[Unit, list[str]] = {}
    for dataset, system, query_id, names in rows.iter_rows():
        unit = (dataset, query_id) if wanted.paired else (dataset, system, query_id)
        answers.setdefault(unit, []).append((dataset, system, query_id))
        of_slices[unit] = names
    if not answers:
        raise DataError(_explain_nothing(evaluation, wanted))
    return _Population(answers, of_slices)


def _explain_nothing(evaluation: Evaluation, wanted: WantedSelection) -> str:
    if evaluation.provenance.spec.get("samples") == "none":
        return (
            "these results hold no answers, because their spec has 'samples: none'; run it again with 'samples: texts' "
            "or 'full'"
        )
    if wanted.system or wanted.dataset or wanted.slice:
        return "no system, dataset and slice that you chose together have an answer; choose others"
    return "these results hold no answers that people could judge; a system that only retrieves has none"


def _draw_random(population: _Population, wanted: WantedSelection) -> list[_Draw]:
    """The draw at random, from all units or from each slice; none if it is not wanted."""
    if wanted.random == 0:
        return []
    units = [*population.answers]
    if not wanted.by_slice:
        count = _find_size(wanted.random, len(units))
        return [_draw("random", dict.fromkeys(units, 0.0), count, _seed(wanted, "random"))]
    strata: dict[tuple[object, str], list[Unit]] = {}
    for unit in units:
        dataset = population.answers[unit][0][0]
        for name in population.slices[unit] or ("",):
            strata.setdefault((dataset, name), []).append(unit)
    if not any(name for _, name in strata):
        raise UsageError("these results have no slices; declare them in the spec, or leave out --by-slice")
    draws = []
    for stratum, members in strata.items():
        size = _find_size_of_slice(wanted.random, len(members), len(units), len(strata))
        draws.append(_draw("slice", dict.fromkeys(members, 0.0), size, _seed(wanted, f"slice {stratum}")))
    taken = frozenset(unit for draw in draws for unit in draw.taken)
    return [_Draw("slice", taken, {unit: _join_chances(unit, draws) for unit in units})]


def _find_size(wanted: float | None, total: int) -> int:
    if wanted is None:
        return min(total, max(USUAL_COUNT, math.ceil(USUAL_SHARE * total)))
    return max(1, round(wanted * total)) if wanted < 1 else int(min(total, wanted))


def _find_size_of_slice(wanted: float | None, members: int, total: int, strata: int) -> int:
    if wanted is not None and wanted >= 1:
        return math.ceil(min(members, wanted / strata))
    share = wanted if wanted is not None else _find_size(None, total) / total
    return min(members, max(FEWEST_OF_SLICE, round(share * members)))


def _draw_suspicions(
    evaluation: Evaluation,
    metrics: Sequence[str],
    population: _Population,
    wanted: WantedSelection,
    baseline: question_order.BaselineValues | None,
) -> list[_Draw]:
    """The draws of the answers that are suspicious, the worst first."""
    raters: Mapping[Suspicion, Callable[[], Mapping[Key, float]]] = {
        "unsure": lambda: rate_unsure(evaluation, metrics, wanted.threshold),
        "low": lambda: rate_low(evaluation, metrics, wanted.below),
        "regressed": lambda: rate_regressed(evaluation, metrics, baseline),
        "person": lambda: rate_person(evaluation, metrics),
    }
    draws = []
    for reason in SUSPICIONS if wanted.suspicions is None else wanted.suspicions:
        try:
            rated = population.rate(raters[reason]())
        except question_order.NoBaselineError as error:
            if wanted.suspicions is None:
                continue
            raise UsageError(f"{error}; name one: --baseline LABEL") from error
        if rated or wanted.suspicions is not None:
            most = len(rated) if wanted.most is None else wanted.most
            draws.append(_draw(reason, rated, most, _seed(wanted, reason)))
    return sorted(draws, key=lambda draw: [*REASONS].index(draw.reason))


def _draw(reason: str, ratings: Mapping[Unit, float], count: int, random: np.random.Generator) -> _Draw:
    """Take the units with the highest ratings. Units whose ratings are equal are equally likely."""
    groups: dict[float, list[Unit]] = {}
    for unit, rating in ratings.items():
        groups.setdefault(round(rating, _DIGITS), []).append(unit)
    taken: list[Unit] = []
    chances: dict[Unit, float] = {}
    for rating in sorted(groups, reverse=True):
        units = groups[rating]
        size = min(len(units), count - len(taken))
        chances |= dict.fromkeys(units, size / len(units))
        taken += [units[at] for at in random.permutation(len(units))[:size]]
    return _Draw(reason, frozenset(taken), chances)


def _join_chances(unit: Unit, draws: Iterable[_Draw]) -> float:
    """The probability that at least one of independent draws takes a unit."""
    chances = [chance for draw in draws if (chance := draw.chances.get(unit, 0.0)) > 0]
    return join_probabilities(chances)


def _seed(wanted: WantedSelection, what: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([wanted.seed, crc32(what.encode("utf-8", "backslashreplace"))]))


def _count(units: Iterable[Unit], population: _Population) -> int:
    return sum(len(population.answers[unit]) for unit in units)


NEAR = 0.1
"""How near to the threshold a judge's value is unsure."""
CONFIDENT = 0.7
"""A judge that says it is less confident than this is unsure."""
APART = 0.3
"""From which difference on the steps of a cascade disagree."""
_HALF = 0.5


def list_judged_metrics(evaluation: Evaluation) -> tuple[str, ...]:
    """The metrics whose values a judge decided, in their order; without any, those of answers that lie in [0, 1]."""
    values = evaluation.values
    if "details" in values.columns:
        judged = values.filter(pl.col("details").str.contains(r'"(judge|claims|decided_by|confidence)":'))
        found = set(judged["metric"].unique().to_list())
        if found:
            return tuple(metric for metric in evaluation.metrics if metric in found)
    answered = evaluation.select_samples(*KEY, "answer").filter(pl.col("answer").is_not_null()).select(KEY)
    scored = values.join(answered, on=KEY, how="semi").drop_nulls("value").group_by("metric")
    inside = scored.agg(pl.col("value").is_between(0, 1).all().alias("inside")).filter("inside")["metric"].to_list()
    return tuple(name for name in evaluation.metrics if name in inside and name not in evaluation.units)


def rate_low(evaluation: Evaluation, metrics: Sequence[str], below: float) -> dict[Key, float]:
    """How bad the worst value of each answer is, from 0 to 1, where it is below a bound.

    For a metric whose low values are good, the bound is mirrored: values above `1 - below` count. Values that do not
    lie in [0, 1] are placed between the lowest and the highest of their metric.
    """
    rated = pl.concat([question_order.rate_values(evaluation, metric) for metric in metrics])
    bad = rated.filter(pl.col("badness") > 1 - below + 1e-9).group_by(KEY).agg(pl.col("badness").max())
    return _to_dict(bad)


def rate_regressed(
    evaluation: Evaluation, metrics: Sequence[str], baseline: question_order.BaselineValues | None
) -> dict[Key, float]:
    """How far each answer fell below the baseline on any of the metrics that the baseline has, where it did.

    Raises NoBaselineError: there is nothing to compare with. Raises UsageError: the baseline has none of the metrics.
    """
    falls: dict[Key, float] = {}
    lacking: list[UsageError] = []
    for metric in metrics:
        try:
            fallen = question_order.rank_questions(
                evaluation, question_order.Filter(metric=metric, regressed=True), baseline
            )
        except UsageError as error:
            lacking.append(error)
            continue
        for key, fall in _to_dict(fallen.select(*KEY, "fall")).items():
            falls[key] = max(fall, falls.get(key, 0.0))
    if len(lacking) == len(metrics):
        raise lacking[0]
    return falls


def rate_person(evaluation: Evaluation, metrics: Sequence[str]) -> dict[Key, float]:
    """The answers that a `waterfall` sent to a person; all are rated 1."""
    sent = pl.col("reason").str.contains(TO_A_PERSON, literal=True) & pl.col("metric").is_in(list(metrics))
    return dict.fromkeys(_to_dict(evaluation.values.filter(sent).select(KEY).unique().with_columns(rating=1.0)), 1.0)


def rate_unsure(evaluation: Evaluation, metrics: Sequence[str], threshold: float) -> dict[Key, float]:
    """How unsure the judges are of each answer, where they are.

    A judge is unsure if its value, or the score of a claim, lies within `NEAR` of the threshold; if it says that its
    confidence is below `CONFIDENT` (a panel's confidence is how far its members agree); or if the step of a `cascade`
    that decided lies at least `APART` from the step before. Where it is not known how far, it is unsure if a step
    decided that is not the first, because the first was unsure.
    """
    first_steps = _find_first_steps(evaluation)
    rows = evaluation.values.filter(pl.col("metric").is_in(list(metrics)))
    details = pl.col("details") if "details" in rows.columns else pl.lit(None, dtype=pl.String).alias("details")
    found: dict[Key, float] = {}
    for *key, metric, value, text in rows.select(*KEY, "metric", "value", details).iter_rows():
        told = json.loads(text) if text else {}
        rating = max(
            _rate(value, told if isinstance(told, dict) else {}, threshold, first_steps.get(metric)), default=0
        )
        if rating > 0:
            found[tuple(key)] = max(rating, found.get(tuple(key), 0.0))
    return found


def _rate(value: float | None, details: Mapping[str, Any], threshold: float, first: str | None) -> Iterator[float]:
    """Each sign that the judge is unsure, in (0, 1]."""
    found = [claim.get("score") for claim in details.get("claims") or () if isinstance(claim, dict)]
    scores: list[float | None] = [score for score in found if isinstance(score, int | float) and 0 < score < 1]
    for score in scores or [value]:
        distance = abs(score - threshold) if score is not None else NEAR
        if distance < NEAR:
            yield _HALF + _HALF * (1 - distance / NEAR)
    confidence = details.get("confidence")
    if isinstance(confidence, int | float) and confidence < CONFIDENT:
        yield 1 - confidence
    decided_by, apart = details.get("decided_by"), details.get("apart")
    if isinstance(apart, int | float):
        yield apart if apart >= APART else 0.0
    elif first is not None and decided_by is not None and decided_by != first:
        yield _HALF


def _find_first_steps(evaluation: Evaluation) -> dict[str, str]:
    """The first step of each cascade that a metric asks, by the metric."""
    judges = evaluation.provenance.spec.get("judges") or {}
    found: dict[str, str] = {}
    for node in evaluation.provenance.spec.get("metrics") or ():
        judge = judges.get(node.get("judge"), {})
        if judge.get("use") == "cascade" and (steps := judge.get("steps")):
            found[node.get("as") or node["use"]] = steps[0]["judge"] if isinstance(steps[0], dict) else steps[0]
    return found


def _to_dict(rows: pl.DataFrame) -> dict[Key, float]:
    return {(dataset, system, query_id): rating for dataset, system, query_id, rating in rows.iter_rows()}
