"""How well a judge's leaderboard agrees with the true one, for each pair of measures, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rageval_spec.calibration.measures import CalibrationMeasure, Name
from rageval_spec.calibration.verdict_sentences import show_measure
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import asdict, dataclass
from rageval_spec.diagnostics import dump_visible, suggest
from rageval_spec.drawing.view import Block, Heading, Line, Span, tabulate, write_text
from rageval_spec.errors import UsageError
from rageval_spec.libraries import Floats, np
from rageval_spec.reading.leaderboards import Leaderboard
from rageval_spec.statistics.intervals import bootstrap_interval
from rageval_spec.statistics.raters import rank_correlation
from rageval_spec.statistics.regression import rank
from rageval_spec.wording import count_noun, format_number, list_choices, list_names

_TOP = 10
FEWEST = 3
"""The fewest systems for which a correlation says anything."""
_SHOWN = 5
_ROUNDING = 1e-9
_WORDS: Mapping[Name, str] = {
    "tau": "Kendall's tau",
    "tau_b": "Kendall's tau-b (without ties)",
    "tau_ap": "tau_AP (the top counts more)",
    "tau_gap": "tau_GAP (large gaps count more)",
    "spearman": "Spearman's rank correlation",
    "pearson": "Pearson's correlation",
    "tau_b@10": "tau-b of the 10 best systems",
}


@dataclass(frozen=True, slots=True)
class LeaderboardAgreement:
    """A measure of the judge beside one of the truth.

    Attributes:
        systems: each system's name with its true value and the judge's, best first.
        topics: how many topics have a value for all systems in both; 0 if there are only means.
        left_out: systems that only one of the two has, and topics that some system lacks.
        within: tau-b within a topic, as the mean of the topics where it is defined (`within_topics`).
    """

    truth: str
    judged: str
    systems: tuple[tuple[str, float, float], ...]
    topics: int
    left_out: tuple[tuple[str, ...], int]
    correlations: tuple[CalibrationMeasure, ...]
    within: CalibrationMeasure | None
    within_topics: int = 0


def take_values(name: str, evaluation: Evaluation) -> Leaderboard:
    """The leaderboard of an evaluation; with several datasets, a topic is a query of one of them."""
    scored = evaluation.question_values
    several = scored["dataset"].n_unique() > 1
    values: dict[str, dict[str, dict[str, float]]] = {}
    for dataset, system, metric, query, value in scored.iter_rows():
        topic = f"{dataset}/{query}" if several else query
        values.setdefault(metric, {}).setdefault(system, {})[topic] = value
    return Leaderboard(name, values, {})


Compared: TypeAlias = tuple[str, str, Sequence[LeaderboardAgreement]]
"""The names of a true leaderboard and of a judge's, and how well they agree."""


def compare_leaderboards(
    truth: Leaderboard, judged: Leaderboard, measures: Sequence[str] = ()
) -> list[LeaderboardAgreement]:
    """The agreement for each pair of measures; of measures with the same name, if both have some.

    Raises UsageError: no leaderboard has a measure of this name, or two leaderboards share fewer than three systems.
    """
    return [_compare(truth, judged, *pair) for pair in _pair_measures(truth, judged, measures)]


def _pair_measures(truth: Leaderboard, judged: Leaderboard, wanted: Sequence[str]) -> list[tuple[str, str]]:
    known = [*dict.fromkeys((*truth.measures, *judged.measures))]
    for name in wanted:
        if name not in known:
            hint = suggest(name, known) or f"write one of {list_choices(known)}"
            raise UsageError(f"--metric {name}: no leaderboard has this measure; {hint}")
    of_truth, of_judged = ([name for name in one.measures if name in wanted] or one.measures for one in (truth, judged))
    shared = [(name, name) for name in of_truth if name in of_judged]
    return shared or [(first, second) for first in of_truth for second in of_judged]


def _compare(truth: Leaderboard, judged: Leaderboard, first: str, second: str) -> LeaderboardAgreement:
    means = truth.rank(first), judged.rank(second)
    systems = [name for name in means[0] if name in means[1]]
    alone = tuple(name for name in dict.fromkeys((*means[0], *means[1])) if name not in systems)
    if len(systems) < FEWEST:
        raise UsageError(
            f"{truth.name} and {judged.name} share {count_noun(len(systems), 'system')}; a rank correlation needs at "
            f"least {FEWEST}. {_show_names(truth.name, means[0])}; {_show_names(judged.name, means[1])}"
        )
    known = truth.values.get(first, {}), judged.values.get(second, {})
    topics, every = _share_topics(known, systems)
    values = np.array([[[one[system][topic] for system in systems] for topic in topics] for one in known])
    stated = np.array([[[one[name] for name in systems]] for one in means])
    if 0 < len(topics) < every:  # means over different topics would not be those that the intervals are of
        stated = values.mean(axis=1, keepdims=True)
    ranked = sorted(zip(systems, *stated[:, 0].tolist(), strict=True), key=lambda one: -one[1])
    within, count = _correlate_within(values) if topics else (None, 0)
    return LeaderboardAgreement(
        first, second, tuple(ranked), len(topics), (alone, every - len(topics)),
        tuple(_correlate_all(stated, values)), within, count,
    )  # fmt: skip


def _show_names(leaderboard: str, systems: Mapping[str, float]) -> str:
    return f"{leaderboard} has {list_names([*systems][:_SHOWN])}{' and others' if len(systems) > _SHOWN else ''}"


def _share_topics(known: Iterable[Mapping[str, Mapping[str, float]]], systems: Sequence[str]) -> tuple[list[str], int]:
    """The topics for which all systems have both values, and how many topics there are."""
    sets = [{*values.get(system, ())} for values in known for system in systems]
    return sorted(set.intersection(*sets)), len(set.union(*sets))


def _correlate_all(stated: Floats, values: Floats) -> Iterator[CalibrationMeasure]:
    """The coefficients of the stated means, (2, 1, systems), with intervals from the values, (2, topics, systems)."""
    asked: list[tuple[Name, rank_correlation.RankCorrelation, int | None]]
    asked = [(name, name, None) for name in rank_correlation.COEFFICIENTS]
    if stated.shape[2] > _TOP:
        asked.append(("tau_b@10", "tau_b", _TOP))
    find_interval = rank_correlation.compute_intervals(values)
    for label, name, top in asked:
        value = float(rank_correlation.correlate_means(name, stated, top)[0])
        if np.isfinite(value):
            yield _measure(label, value, find_interval(name, top))
        else:
            yield CalibrationMeasure(label, None, None, "all systems are tied")


def _measure(name: Name, value: float, interval: Interval | None) -> CalibrationMeasure:
    """A coefficient that all resamples share has no interval: that does not make it certain."""
    if interval is not None and interval.high - interval.low < _ROUNDING:
        return CalibrationMeasure(name, value, None, "the same in all resamples")
    return CalibrationMeasure(name, value, interval, None if interval else "no interval")


def _correlate_within(values: Floats) -> tuple[CalibrationMeasure, int]:
    found = rank_correlation.list_topic_correlations(values)
    found = found[np.isfinite(found)]
    if not len(found):
        return CalibrationMeasure("tau_b", None, None, "all systems are tied in each topic"), 0
    interval = bootstrap_interval(lambda weights: weights @ found / weights.sum(axis=1), len(found))
    return _measure("tau_b", float(found.mean()), interval), len(found)


def dump_agreements(found: Iterable[Compared]) -> bytes:
    """The agreements of each true leaderboard with a judge's, as JSON."""
    content: list[dict[str, Any]] = [
        {"truth": truth, "judge": judged, "agreements": [asdict(one) for one in agreements]}
        for truth, judged, agreements in found
    ]
    return f"{dump_visible(content)}\n".encode()


def render_agreements(found: Iterable[Compared]) -> bytes:
    """The same as text."""
    return b"\n".join(
        write_text(block for one in agreements for block in _describe(truth, judged, one))
        for truth, judged, agreements in found
    )


def _describe(truth: str, judged: str, one: LeaderboardAgreement) -> Iterator[Block]:
    pair = one.truth if one.truth == one.judged else f"{one.judged} and {one.truth}"
    topics = count_noun(one.topics, "topic") if one.topics else "means only"
    yield Heading(f"{judged} beside {truth}, {pair}: {count_noun(len(one.systems), 'system')}, {topics}")
    alone, topics_left = one.left_out
    if alone:
        yield Line(f"Left out, because only one of the two has them: {list_names(alone)}.")
    if topics_left:
        told = f"{count_noun(topics_left, 'topic')} that some system lacks"
        yield Line(f"Left out, from the means too: {told}." if one.topics else f"No topic counts: {told}.")
    if not one.topics:
        yield Line("There are no intervals: they need a value of each topic, and there are only means.")
    rows = [(_WORDS[each.name], show_measure(each)) for each in one.correlations]
    if one.within is not None:
        rows.append((f"tau-b within a topic, mean of {one.within_topics}", show_measure(one.within)))
    yield tabulate(("over systems", "value, 95% interval"), rows, (1,), ())
    yield from _describe_moved(one)


def _describe_moved(one: LeaderboardAgreement) -> Iterator[Block]:
    """The systems that the judge moves the most."""
    names, *means = zip(*one.systems, strict=True)
    once = np.ones((1, len(names)))
    places = [dict(zip(names, rank(-np.array(values), once)[0].tolist(), strict=True)) for values in means]
    moved = sorted(one.systems, key=lambda each: -abs(places[0][each[0]] - places[1][each[0]]))[:_SHOWN]
    rows = [
        (name, f"{places[0][name]:g}", f"{places[1][name]:g}", format_number(true), format_number(judged))
        for name, true, judged in moved
        if places[0][name] != places[1][name]
    ]
    if not rows:
        yield Line(Span("Both put all systems in the same order.", "good"))
        return
    yield Heading("Moved the most", 3)
    yield tabulate(("system", "rank", "judge's rank", one.truth, f"judge's {one.judged}"), rows, (1, 2, 3, 4))
