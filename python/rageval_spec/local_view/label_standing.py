"""What labels say of a judge so far: kappa, the corrected mean, and whether they are enough.

Whether they are enough is asked after each label, so an ordinary interval would be wrong sooner or later by chance.
A confidence sequence of the differences between people and the judge stays valid however often one looks
(`statistics/sequential_analysis.py`). Only answers that were drawn at random count in it, in the order of their labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rageval_spec.calibration.judge_quality import measure_judge
from rageval_spec.calibration.labelled_items import Joined, join_labels
from rageval_spec.calibration.measures import WIDTH
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.labels import Label, LabelScale, find_ends
from rageval_spec.data.outcomes import Interval
from rageval_spec.errors import RagevalError
from rageval_spec.history.metric_definitions import read_ranges
from rageval_spec.statistics.sequential_analysis import compute_sequence_interval
from rageval_spec.wording import count_noun, format_interval, format_number

_RESAMPLES = 400
_BOUNDS = ("min", "max", "target")


def measure_standing(
    evaluation: Evaluation, labels: Sequence[Label], metrics: Mapping[str, LabelScale]
) -> Iterator[dict[str, Any]]:
    """What the page shows of each of these metrics, by its labels' scale, that has labels of the evaluation's answers.

    Texts: the count of labels, the judge's mean, the corrected mean and Cohen's kappa with their intervals, on the
    metric's scale from 0 to 1, and whether the labels are `enough`: whether the confidence sequence of the corrected
    mean is narrow, or excludes the bounds of the metric's gates.
    """
    bounds = {name: find_ends(*ends) for name, ends in read_ranges(evaluation).items()}
    for metric, scale in metrics.items():
        own = [label for label in labels if label.metric == metric]
        if not own:
            continue
        try:
            joined = join_labels(evaluation, own, metric, scale, bounds.get(metric, (0.0, 1.0)))
        except RagevalError:  # all its labels are of other answers
            continue
        yield _measure(evaluation, joined)


def _measure(evaluation: Evaluation, joined: Joined) -> dict[str, Any]:
    found = measure_judge(joined, resamples=_RESAMPLES)
    kappa = next((one for one in found.decisions if one.name == "kappa"), None)
    sequence = _follow(joined, found.mean.judged)
    is_enough, told = _decide(sequence, _list_bounds(evaluation, joined.metric), joined.bounds)
    return {
        "metric": joined.metric,
        "items": count_noun(found.items, "label"),
        "judged": format_number(found.mean.judged),
        "mean": _show(found.mean.value, found.mean.interval),
        "kappa": "–" if kappa is None or kappa.value is None else _show(kappa.value, kappa.interval),
        "enough": is_enough,
        "told": told,
    }


def _show(value: float, interval: Interval | None) -> str:
    return f"{format_number(value)} {format_interval(interval)}".strip()


def _follow(joined: Joined, judged: float) -> Interval | None:
    """The corrected mean by a confidence sequence: the judge's mean, moved by how far people differ from it."""
    times: dict[object, str] = {}
    for label in joined.labels:
        if "random" in label.reasons:
            times.setdefault(label.item[:3], label.time)
    pairs = zip(joined.items, joined.labelled, joined.judged, strict=True)
    rows = [
        (times[place], people - machine)
        for (dataset, system, query_id, _), people, machine in pairs
        if (place := (dataset, query_id, system)) in times
    ]
    if len(rows) < 2 or joined.shares:
        return None
    gaps = [gap for _, gap in sorted(rows, key=lambda row: row[0])]
    population = len(joined.items) + len(joined.others)
    found = compute_sequence_interval(gaps, population, bounds=(-1.0, 1.0))
    return Interval(max(judged + found.low, 0.0), min(judged + found.high, 1.0), found.confidence, found.method)


def _list_bounds(evaluation: Evaluation, metric: str) -> list[float]:
    """The bounds of the metric's gates, if one system alone has the metric, so that its mean is that of all labels."""
    systems = evaluation.values.filter(metric=metric)["system"].n_unique()
    gates = evaluation.provenance.spec.get("gates") or [] if systems == 1 else []
    own = (gate for gate in gates if gate.get("metric") == metric and not gate.get("slice"))
    return [float(gate[name]) for gate in own for name in _BOUNDS if isinstance(gate.get(name), int | float)]


def _decide(sequence: Interval | None, bounds: Sequence[float], ends: tuple[float, float]) -> tuple[bool, str]:
    if sequence is None:
        return False, "Too few answers drawn at random are labelled to say when to stop."
    shown = format_interval(sequence)
    places = [(bound - ends[0]) / (ends[1] - ends[0]) for bound in bounds]
    open_bounds = [bound for bound, place in zip(bounds, places, strict=True) if sequence.low <= place <= sequence.high]
    if sequence.high - sequence.low <= WIDTH:
        return True, f"Enough: whenever you look, the mean is in {shown} with 95% confidence."
    if bounds and not open_bounds:
        return True, f"Enough: the mean is in {shown} whenever you look, which decides the gate."
    if open_bounds:
        return False, f"Go on: {shown} still holds the gate's bound {format_number(open_bounds[0])}."
    return False, f"Go on: {shown} is wider than {WIDTH:g}."
