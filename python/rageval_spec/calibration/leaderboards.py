"""How well a judge's leaderboard agrees with the true one, for each pair of measures, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rageval_spec.calibration.verdict_sentences import show_number
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import asdict, dataclass
from rageval_spec.diagnostics import dump_visible, suggest
from rageval_spec.drawing.view import Block, Heading, Line, Span, tabulate, write_text
from rageval_spec.errors import UsageError
from rageval_spec.libraries import Floats, np
from rageval_spec.reading.leaderboards import Leaderboard
from rageval_spec.statistics.intervals import bootstrap_interval
from rageval_spec.statistics.raters import rank_correlation
from rageval_spec.wording import count_noun, format_number, list_choices, list_names

TOP = 10
FEWEST = 3
"""The fewest systems for which a correlation says anything."""
_SHOWN = 5
_ROUNDING = 1e-9
_WORDS: Mapping[rank_correlation.RankCorrelation, str] = {
    "tau": "Kendall's tau",
    "tau_b": "Kendall's tau-b (without ties)",
    "tau_ap": "tau_AP (the top counts more)",
    "tau_gap": "tau_GAP (large gaps count more)",
    "spearman": "Spearman's rank correlation",
    "pearson": "Pearson's correlation",
}


@dataclass(frozen=True, slots=True)
class LeaderboardCorrelation:
    """One coefficient, with its interval over topics. `reason` says why there is no value."""

    name: str
    value: float | None
    interval: Interval | None
    reason: str | None = None


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
    correlations: tuple[LeaderboardCorrelation, ...]
    within: LeaderboardCorrelation | None
    within_topics: int = 0


def compare_leaderboards(
    truth: Leaderboard, judged: Leaderboard, measures: Sequence[str] = (), top: int = TOP
) -> list[LeaderboardAgreement]:
    """The agreement for each pair of measures; of measures with the same name, if both have some.

    Raises UsageError: no leaderboard has a measure of this name, or two leaderboards share fewer than three systems.
    """
    return [_compare(truth, judged, *pair, top) for pair in _pair_measures(truth, judged, measures)]


def _pair_measures(truth: Leaderboard, judged: Leaderboard, wanted: Sequence[str]) -> list[tuple[str, str]]:
    known = [*dict.fromkeys((*truth.measures, *judged.measures))]
    for name in wanted:
        if name not in known:
            hint = suggest(name, known) or f"write one of {list_choices(known)}"
            raise UsageError(f"--metric {name}: no leaderboard has this measure; {hint}")
    of_truth, of_judged = ([name for name in one.measures if name in wanted] or one.measures for one in (truth, judged))
    shared = [(name, name) for name in of_truth if name in of_judged]
    return shared or [(first, second) for first in of_truth for second in of_judged]


def _compare(truth: Leaderboard, judged: Leaderboard, first: str, second: str, top: int) -> LeaderboardAgreement:
    means = truth.rank(first), judged.rank(second)
    systems = [name for name in means[0] if name in means[1]]
    alone = tuple(name for name in dict.fromkeys((*means[0], *means[1])) if name not in systems)
    if len(systems) < FEWEST:
        raise UsageError(
            f"{truth.name} and {judged.name} share {count_noun(len(systems), 'system')}; a rank correlation needs at "
            f"least {FEWEST}. {_show_names(truth.name, means[0])}; {_show_names(judged.name, means[1])}"
        )
    topics, every = _share_topics(truth, judged, first, second, systems)
    stated = np.array([[[one[name] for name in systems]] for one in means])
    values = np.stack([_take(one, name, systems, topics) for one, name in ((truth, first), (judged, second))])
    ranked = sorted(((name, means[0][name], means[1][name]) for name in systems), key=lambda one: -one[1])
    within, count = _correlate_within(values) if topics else (None, 0)
    return LeaderboardAgreement(
        first, second, tuple(ranked), len(topics), (alone, every - len(topics)),
        tuple(_correlate_all(stated, values, top)), within, count,
    )  # fmt: skip


def _show_names(leaderboard: str, systems: Mapping[str, float]) -> str:
    return f"{leaderboard} has {list_names([*systems][:_SHOWN])}{' and others' if len(systems) > _SHOWN else ''}"


def _share_topics(
    truth: Leaderboard, judged: Leaderboard, first: str, second: str, systems: Sequence[str]
) -> tuple[list[str], int]:
    """The topics for which all systems have both values, and how many topics there are."""
    known = [one.values.get(name, {}) for one, name in ((truth, first), (judged, second))]
    sets = [{*values.get(system, ())} for values in known for system in systems]
    return sorted(set.intersection(*sets)), len(set.union(*sets))


def _take(one: Leaderboard, measure: str, systems: Sequence[str], topics: Sequence[str]) -> Floats:
    values = one.values.get(measure, {})
    return np.array([[values[system][topic] for system in systems] for topic in topics])


def _correlate_all(stated: Floats, values: Floats, top: int) -> Iterator[LeaderboardCorrelation]:
    """The coefficients of the stated means, (2, 1, systems), with intervals from the values, (2, topics, systems)."""
    asked: list[tuple[rank_correlation.RankCorrelation, int | None]] = [
        (name, None) for name in rank_correlation.COEFFICIENTS
    ]
    if FEWEST <= top < stated.shape[2]:
        asked.append(("tau_b", top))
    for name, most in asked:
        value = float(rank_correlation.correlate_means(name, stated, most)[0])
        label = name if most is None else f"{name}@{most}"
        if not np.isfinite(value):
            yield LeaderboardCorrelation(label, None, None, "all systems are tied")
            continue
        yield _measure(
            label,
            value,
            rank_correlation.compute_correlation_interval(name, values, most) if values.shape[1] > 1 else None,
        )


def _measure(name: str, value: float, interval: Interval | None) -> LeaderboardCorrelation:
    """A coefficient that all resamples share has no interval: that does not make it certain."""
    if interval is not None and interval.high - interval.low < _ROUNDING:
        return LeaderboardCorrelation(name, value, None, "the same in all resamples")
    return LeaderboardCorrelation(name, value, interval, None if interval else "no interval")


def _correlate_within(values: Floats) -> tuple[LeaderboardCorrelation, int]:
    found = rank_correlation.list_topic_correlations(values)
    found = found[np.isfinite(found)]
    if not len(found):
        return LeaderboardCorrelation("tau_b", None, None, "all systems are tied in each topic"), 0
    interval = bootstrap_interval(lambda weights: weights @ found / weights.sum(axis=1), len(found))
    return _measure("tau_b", float(found.mean()), interval), len(found)


def dump_agreements(found: Sequence[tuple[str, Mapping[str, Sequence[LeaderboardAgreement]]]]) -> bytes:
    """The agreements of each true leaderboard with a judge's, as JSON."""
    content: list[dict[str, Any]] = [
        {"truth": truth, "judge": judged, "agreements": [asdict(one) for one in agreements]}
        for truth, judges in found
        for judged, agreements in judges.items()
    ]
    return f"{dump_visible(content)}\n".encode()


def render_agreements(truth: str, found: Mapping[str, Sequence[LeaderboardAgreement]]) -> bytes:
    """The agreements of each judge's leaderboard as text."""
    return write_text(
        block for name, agreements in found.items() for one in agreements for block in _describe(truth, name, one)
    )


def _describe(truth: str, judged: str, one: LeaderboardAgreement) -> Iterator[Block]:
    pair = one.truth if one.truth == one.judged else f"{one.judged} and {one.truth}"
    topics = count_noun(one.topics, "topic") if one.topics else "means only"
    yield Heading(f"{judged} beside {truth}, {pair}: {count_noun(len(one.systems), 'system')}, {topics}")
    alone, topics_left = one.left_out
    if alone:
        yield Line(f"Left out, because only one of the two has them: {list_names(alone)}.")
    if topics_left:
        yield Line(f"Intervals leave out {count_noun(topics_left, 'topic')} that some system lacks.")
    if not one.topics:
        yield Line("There are no intervals: they need a value of each topic, and there are only means.")
    rows = [(_name(each.name), show_number(each.value, each.interval, each.reason)) for each in one.correlations]
    if one.within is not None:
        label = f"tau-b within a topic, mean of {one.within_topics}"
        rows.append((label, show_number(one.within.value, one.within.interval, one.within.reason)))
    yield tabulate(("over systems", "value, 95% interval"), rows, (1,), ())
    yield from _describe_moved(one)


def _name(name: str) -> str:
    base, _, top = name.partition("@")
    return f"tau-b of the {top} best systems" if top else _WORDS[base]  # type: ignore[index]


def _describe_moved(one: LeaderboardAgreement) -> Iterator[Block]:
    """The systems that the judge moves the most."""
    ranked = [sorted(one.systems, key=lambda each: -each[1]), sorted(one.systems, key=lambda each: -each[2])]
    places = [{name: place for place, (name, *_) in enumerate(each, 1)} for each in ranked]
    moved = sorted(one.systems, key=lambda each: -abs(places[0][each[0]] - places[1][each[0]]))[:_SHOWN]
    rows = [
        (name, f"{places[0][name]}", f"{places[1][name]}", format_number(true), format_number(judged))
        for name, true, judged in moved
        if places[0][name] != places[1][name]
    ]
    if not rows:
        yield Line(Span("Both put all systems in the same order.", "good"))
        return
    yield Heading("Moved the most", 3)
    yield tabulate(("system", "rank", "judge's rank", one.truth, f"judge's {one.judged}"), rows, (1, 2, 3, 4))
