"""What `calibrate` found, as text, as JSON and in files: entries of `calibration.json`, or frozen answers.

The text says in words what the numbers mean, and then shows the numbers. A reliability diagram shows what people say
of the answers with each value. A table shows how close the judge comes to people on each system and slice.

`calibrate -o` writes `calibration.json`, from which a spec's judges take what was found about them. Frozen answers keep
their labels and what the judge said of them. The judge behind a metric's values is read from what an evaluation
recorded of its spec.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from rageval_spec import registry
from rageval_spec.calibration import verdict_sentences
from rageval_spec.calibration.judge_quality import FEWEST, Calibration, SliceCalibration
from rageval_spec.calibration.judge_reports import (
    CalibrationSettings,
    CalibrationValues,
    CriterionReport,
    JudgeReport,
    explain_other,
)
from rageval_spec.calibration.labelled_items import Joined, explain_sampling, read_samples
from rageval_spec.calibration.measures import CalibrationMeasure
from rageval_spec.calibration.reliability import MapChoice, Reliability, choose_map
from rageval_spec.calibration.thresholds import Promise
from rageval_spec.calibration.verdict_sentences import list_told, show_measure, show_number
from rageval_spec.data import judge_calibration
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.findings import Criterion
from rageval_spec.data.json_documents import FORMAT_VERSION
from rageval_spec.data.labels import Anchor, AnchorSet
from rageval_spec.diagnostics import dump_visible
from rageval_spec.drawing.sections import describe_worth
from rageval_spec.drawing.view import Block, Grid, Heading, Inline, Line, Span, tabulate, write_text
from rageval_spec.errors import DataError, UsageError
from rageval_spec.history.metric_definitions import read_recorded_spec
from rageval_spec.kernels import version
from rageval_spec.plugin import AnswerMetric, Judge
from rageval_spec.plugin.block_names import names_in
from rageval_spec.plugin.judge_identity import Surroundings, digest_criterion, digest_identity, identify_judge
from rageval_spec.statistics.raters.reliability_curves import Bin
from rageval_spec.store.disk import write_atomically
from rageval_spec.wording import agree, count_noun, format_number, list_choices, list_names

_YES = 0.5


def keep_calibration(
    evaluation: Evaluation, joined: Joined, measured: Calibration, promised: Promise | None = None
) -> judge_calibration.JudgeCalibration:
    """The entry of one metric's judge, with the guarantee that was asked for; errors are those of `find_judge`.

    Raises:
        UsageError: the values are not the scores of one judge.
    """
    behind = find_judge(evaluation, joined.metric)
    check_scores(evaluation, joined)
    low, high = (0.0, 1.0) if joined.bounds == behind.scale else behind.scale
    choice = measured.map
    if (low, high) != (0.0, 1.0):
        choice = choose_map(replace(joined, judged=tuple((value - low) / (high - low) for value in joined.judged)))
    threshold = guarantee = None
    if measured.threshold is not None and measured.threshold.threshold is not None:
        place = (measured.threshold.threshold - low) / (high - low)
        threshold = judge_calibration.CalibratedThreshold(place, measured.threshold.criterion)
    if promised is not None and (kept := promised.wanted) is not None:
        place = (kept.threshold - low) / (high - low)
        counts = (kept.limit, kept.sent, kept.wrong, kept.labels, kept.confidence)
        guarantee = judge_calibration.Guaranteed(*counts, place)
    return judge_calibration.JudgeCalibration(
        judge=behind.judge.context.name,
        metric=joined.metric,
        criterion=digest_criterion(behind.criterion),
        of="answers" if joined.items[0][3] is None else "claims",
        scale=behind.scale,
        identity=dict(behind.identity),
        digest=digest_identity(behind.identity),
        labelled=count_labels(joined),
        map=choice.chosen,
        threshold=threshold,
        guarantee=guarantee,
        held_out=tuple(_list_figures(measured, choice)),
    )


def count_labels(joined: Joined) -> judge_calibration.CalibrationLabels:
    sides = [label for label in joined.labelled if label != _YES]
    yes = sum(label > _YES for label in sides)
    people = {label.annotator for label in joined.labels}
    # The same digest whatever the order of the files is.
    rows = sorted([*map(str, label.item), label.annotator, str(label.value)] for label in joined.labels)
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return judge_calibration.CalibrationLabels(
        "people", digest, len(joined.items), yes, len(sides) - yes, len({*joined.questions}),
        len(joined.labels), len(people),
    )  # fmt: skip


def _list_figures(measured: Calibration, choice: MapChoice) -> Iterator[judge_calibration.Figure]:
    for one in measured.decisions:
        ends = (None, None) if one.interval is None else (one.interval.low, one.interval.high)
        yield judge_calibration.Figure(one.name, one.value, *ends)
    for trial in choice.trials:
        if trial.kind == (choice.chosen.kind if choice.chosen else "none"):
            yield judge_calibration.Figure("brier", trial.brier)
            yield judge_calibration.Figure("calibration_error", trial.error.value)


_MOST_OTHER = 0.1
"""The share of values that may differ from the judge's score: those of answers that the metric decides by itself."""
_ROUNDING = 1e-9


class RecordedJudge(NamedTuple):
    """The judge that a metric asked, what the metric asked it, and what its scores depend on."""

    judge: Judge[Any]
    metric: AnswerMetric[Any]
    criterion: Criterion
    identity: Mapping[str, Any]

    @property
    def scale(self) -> tuple[float, float]:
        is_grade = self.criterion.kind == "grade" and self.criterion.scale is not None
        return self.criterion.scale if is_grade and self.criterion.scale else (0.0, 1.0)


def find_judge(evaluation: Evaluation, metric: str) -> RecordedJudge:
    """The judge behind a metric.

    Raises:
        UsageError: the metric asks no judge, or several things; the judge is calibrated already.
        DataError: the results do not say how they were made.
    """
    recorded = read_recorded_spec(evaluation)
    if recorded is None or metric not in recorded.metrics:
        raise DataError(f"the results do not record how {metric} was computed; run the spec again")
    named = names_in(recorded.metrics[metric].node, "judges")
    if len(named) != 1 or named[0] not in recorded.judges:
        raise UsageError(f"{metric} asks no judge, so there is nothing to calibrate")
    judges: dict[str, Judge[Any]] = {}
    context = replace(recorded.metrics[metric].context, judges=judges, models=recorded.models)
    for name, judge in recorded.judges.items():
        judges[name] = judge.copy_with(replace(judge.context, judges=judges, models=recorded.models))
    asking: Any = type(recorded.metrics[metric])(recorded.metrics[metric].node, context)
    judge = judges[named[0]]
    if judge.node.calibrated is not None:
        raise UsageError(
            f"the judge '{named[0]}' has a calibration already, so these values are not its own scores; remove "
            "'calibration:', run the spec again and calibrate these results"
        )
    criteria = asking.criteria()
    if len(criteria) != 1:
        raise UsageError(f"{metric} asks its judge {len(criteria)} questions; a calibration is for one")
    used = {name: f"{one.score}:{one.digest}" for name, one in evaluation.provenance.calibrations.items()}
    around = Surroundings(judges, recorded.models, evaluation.provenance.prompts, used)
    return RecordedJudge(judge, asking, criteria[0], identify_judge(judge, around))


def check_scores(evaluation: Evaluation, joined: Joined) -> None:
    """Check that the labelled values are the judge's own scores: a UsageError if they are computed from them."""
    if any(item[3] is not None for item in joined.items):
        return
    rows = evaluation.values.filter(metric=joined.metric).select("dataset", "system", "query_id", "value", "details")
    wanted = {item[:3] for item in joined.items}
    found = [(value, details) for *item, value, details in rows.iter_rows() if tuple(item) in wanted]
    other = sum(not _is_score(value, details) for value, details in found)
    if other > _MOST_OTHER * len(found):
        raise UsageError(
            f"{other} of {len(found)} labelled values of {joined.metric} are not the judge's scores but computed from "
            "them, so a calibration of the judge cannot be made of them; label its claims, or another metric"
        )


def _is_score(value: float, details: str | None) -> bool:
    score = json.loads(details).get("score") if details else None
    return isinstance(score, (int, float)) and abs(value - score) <= _ROUNDING * max(1.0, abs(value))


def freeze_anchors(evaluation: Evaluation, joined: Joined, measured: Calibration) -> AnchorSet:
    """The labelled answers of one metric as anchors.

    A yes is a score from the best threshold on, or from 0.5 on if the labels show none.

    Raises:
        UsageError: claims are labelled; the values are not the scores of one judge, or the judge has a calibration.
        DataError: the results lack the answers' texts.
    """
    if any(item[3] is not None for item in joined.items):
        raise UsageError("labels of claims cannot be frozen; label whole answers")
    behind = find_judge(evaluation, joined.metric)
    check_scores(evaluation, joined)
    low, high = (0.0, 1.0) if joined.bounds == behind.scale else behind.scale
    samples = read_samples(evaluation, [item[:3] for item in joined.items])
    chosen = None if measured.threshold is None else measured.threshold.threshold
    anchors = []
    for item, value, label in zip(joined.items, joined.judged, joined.labelled, strict=True):
        sample = samples[item[:3]]
        anchors.append(
            Anchor(
                *item[:3],
                sample.question,
                sample.answer or "",
                label,
                (value - low) / (high - low),
                sample.contexts,
                sample.context_ids,
                sample.references,
                sample.reference_contexts,
                None if sample.columns is None else dict(sample.columns),
            )
        )
    return AnchorSet(
        FORMAT_VERSION,
        behind.judge.context.name,
        joined.metric,
        digest_criterion(behind.criterion),
        dict(behind.identity),
        digest_identity(behind.identity),
        _YES if chosen is None else (chosen - low) / (high - low),
        tuple(anchors),
    )


VERSION = 1
"""The version of the JSON's structure."""


def dump(groups: Sequence[CriterionReport], others: Mapping[str, int]) -> bytes:
    """Everything as JSON.

    A `version`, `calibrations` with one object a metric, `comparisons` of judges, and `criteria_without_metric` with
    the number of labels of each.
    """
    content = {
        "version": VERSION,
        "calibrations": [_dump_judge(one) for group in groups for one in group.found],
        "comparisons": [asdict(group.comparison) for group in groups if group.comparison is not None],
        "criteria_without_metric": dict(others),
    }
    return dump_visible(content).encode()


def _dump_judge(one: JudgeReport) -> dict[str, Any]:
    content = asdict(one.calibration)
    chosen = one.calibration.map.chosen
    if chosen is not None:
        content["map"]["chosen"] = {key: value for key, value in asdict(chosen).items() if value not in (None, ())}
    content["biases"] = [
        asdict(bias) | {"is_significant": bias.is_significant, "said": str(bias), "explained": bias.explain()}
        for bias in one.biases.found
    ]
    content["properties_left_out"] = [asdict(left) for left in one.biases.left_out]
    content["why_no_biases"] = one.biases.reason
    content["bounds"] = one.joined.bounds
    content["slices"] = [asdict(part) for part in one.slices]
    if one.joined.together:
        content["clusters"] = len({*one.joined.clusters})
    return content | {"promise": None if one.promise is None else asdict(one.promise)}


def write_anchors(path: Path, evaluation: Evaluation, measured: Sequence[tuple[Joined, Calibration]]) -> str:
    """Freeze the labelled answers of a metric, and return a sentence on how to use them.

    Raises:
        UsageError: several metrics are labelled, or claims are.
    """
    if len(measured) != 1:
        metrics = list_choices([joined.metric for joined, _ in measured])
        raise UsageError(f"anchors are frozen for one metric at a time; name it with --metric: {metrics}")
    frozen = freeze_anchors(evaluation, *measured[0])
    _write(path, frozen.dump())
    return f"Wrote {path}. To ask the judge again: rageval-spec drift {path} spec.yaml"


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


def check_place(path: Path, key: str = "judges") -> None:
    """Check that a file can be written: in a folder that exists, over nothing but a file that holds the same.

    Such a file, of whatever version, holds `judges` or `anchors`, which is the key. Anything else is a UsageError.
    """
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to write {path.name} to")
    if not path.exists():
        return
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict) or not {"format_version", key} <= content.keys():
        what = "a calibration" if key == "judges" else "a set of anchors"
        raise UsageError(f"{path} exists and is not {what}; choose another name")


def write_calibrations(
    path: Path, evaluation: Evaluation, entries: Sequence[judge_calibration.JudgeCalibration]
) -> str:
    """Write the file, and return a sentence on how to use it."""
    file = judge_calibration.CalibrationFile(
        FORMAT_VERSION, version(), evaluation.name, evaluation.provenance.spec_digest, tuple(entries)
    )
    _write(path, file.dump())
    names = list(dict.fromkeys(entry.judge for entry in entries))
    if len(names) == 1 and names[0] in registry.words("judges"):
        return (
            f"Wrote {path}. To use it, declare a judge, and name it in the metric: "
            f"judges: {{calibrated: {{use: {names[0]}, calibration: {path.name}}}}}"
        )
    quoted = list_names([f"'{name}'" for name in names])
    return f"Wrote {path}. To use it, add 'calibration: {path.name}' to the judge {quoted} in the spec."


_NAMES: Mapping[str, str] = {
    "pearson": "Pearson's correlation",
    "spearman": "Spearman's rank correlation",
    "kendall": "Kendall's tau-b",
    "mae": "mean absolute error",
    "bias": "bias (judge less people)",
    "auroc": "AUROC",
    "average_precision": "average precision",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "kappa": "Cohen's kappa with people",
    "brier": "Brier score",
    "log_loss": "log loss",
}
_OWN: Mapping[str, str] = {
    "kappa": "people's own kappa",
    "fleiss": "people's own kappa (Fleiss')",
    "alpha-nominal": "people's own decisions (alpha)",
}
"""What the agreement of people's yes and no is called."""
_CRITERIA: Mapping[str, str] = {"youden": "the highest Youden index", "f1": "the highest F1"}
_DETAILS = ("pearson", "spearman", "kendall", "average_precision", "balanced_accuracy", "f1")
"""What only `--details` shows: others say nearly the same, and all tables should fit on one screen."""


def render(
    values: CalibrationValues,
    groups: Iterable[CriterionReport],
    settings: CalibrationSettings,
    told: Iterable[str] = (),
) -> bytes:
    """Everything as text; at its end the labels that were left out, and what else is `told`."""
    blocks = (block for group in groups for block in describe_group(group, settings))
    notes = [*(explain_other(name, count, values.known) for name, count in values.others.items()), *told]
    return write_text([*blocks, *map(Line, notes)])


def describe_group(group: CriterionReport, settings: CalibrationSettings) -> Iterator[Block]:
    """What labels of one criterion show. Several judges are compared first, and then described in words."""
    if group.comparison is not None:
        yield from verdict_sentences.describe_comparison(group.comparison, details=settings.details)
    is_short = len(group.found) > 1 and not settings.details
    for found in group.found:
        calibration = found.calibration
        yield from _describe_head(calibration, found.joined)
        if not is_short:
            yield from _describe_all(found, details=settings.details)
        if found.promise is not None and settings.limit is not None:
            yield from verdict_sentences.describe_promise(
                found.promise, settings.limit, settings.confidence, calibration.sampling, calibration.items
            )
    if group.found and not settings.details:
        told = "--details adds the reliability diagram, all measures, slices and the effects of biases."
        yield Line(Span(told, "dim"))


def _describe_head(found: Calibration, joined: Joined) -> Iterator[Block]:
    people = count_noun(found.annotators, "person", "people")
    items = count_noun(found.items, "labelled item")
    yield Heading(f"{found.metric}: {items}, {count_noun(found.labels, 'label')} by {people}")
    low, high = joined.bounds
    if (low, high) != (0.0, 1.0):
        yield Line(f"Shown from 0 (worst) to 1 (best); values of the metric go from {low:g} to {high:g}.")
    yield list_told(verdict_sentences.conclude_judge(found))
    if joined.together:
        questions, clusters = (len({*of}) for of in (joined.questions, joined.clusters))
        told = f"{count_noun(questions, 'labelled question')} in {count_noun(clusters, 'cluster')}"
        yield Line(Span(f"Intervals: {told}.", "dim"))


def _describe_all(found: JudgeReport, *, details: bool) -> Iterator[Block]:
    calibration = found.calibration
    shown = (*calibration.discrimination, *calibration.association)
    left_out = () if details else _DETAILS if calibration.discrimination else ("pearson", "kendall")
    yield _tabulate("measure", [_measure_row(one) for one in shown if one.name not in left_out])
    yield from _describe_decisions(calibration, details=details)
    if calibration.reliability is not None and details:
        yield from _describe_reliability(calibration.reliability, calibration.map)
    yield from _describe_means(calibration, is_weighted=bool(found.joined.shares))
    if calibration.learning is not None:
        yield Heading("Labels to buy")
        needs = verdict_sentences.say_needs(calibration.learning, calibration.items)
        yield list_told(needs)
        if details:
            yield verdict_sentences.describe_curve(calibration.learning)
    yield from verdict_sentences.describe_biases(found.biases, details=details)
    if details or any(part.kind != "slice" for part in found.slices):
        yield from describe_slices(found.slices)


def _tabulate(what: str, rows: Sequence[tuple[str, Inline]]) -> Grid:
    return tabulate((what, "value, 95% interval"), rows, (1,), ())


def _measure_row(one: CalibrationMeasure) -> tuple[str, Inline]:
    return _NAMES[one.name], show_measure(one)


def _describe_decisions(found: Calibration, *, details: bool) -> Iterator[Block]:
    if found.threshold is None or found.threshold.threshold is None:
        return
    criterion = found.threshold.criterion
    best = _CRITERIA.get(criterion, f"the lowest with a {criterion.replace('>=', ' of ')} or more")
    yield Heading(f"Yes from {format_number(found.threshold.threshold)} on ({best}, on all labels)")
    if not found.decisions:
        yield Line(
            "There are too few questions, or too few good or bad answers, to hold some out, so it is not known how "
            "good such decisions are."
        )
        return
    rows = [_measure_row(one) for one in found.decisions if details or one.name not in _DETAILS]
    if found.people_decisions.value is not None:
        rows.append((_OWN[found.people_decisions.coefficient], show_measure(found.people_decisions)))
    if found.people.value is not None:
        rows.append(("people with one another (alpha)", show_measure(found.people)))
    yield _tabulate("on questions held out", rows)


def _describe_reliability(found: Reliability, maps: MapChoice) -> Iterator[Block]:
    yield Heading("Do the values mean what they say?")
    yield describe_diagram(found.bins)
    parts = found.brier_parts
    rows = [
        ("calibration error, equal widths", show_number(found.error.value, found.error.interval)),
        ("calibration error, equal counts", show_number(found.error_by_mass.value, found.error_by_mass.interval)),
        ("calibration error with chance", show_number(found.error.plain)),
        *map(_measure_row, found.losses),
        ("  miscalibration", show_number(parts.miscalibration)),
        ("  less discrimination", show_number(parts.discrimination)),
        ("  plus uncertainty", show_number(parts.uncertainty)),
    ]
    yield _tabulate("measure", rows)
    trials = [
        (
            one.kind,
            show_number(one.error.value, one.error.interval),
            format_number(one.brier),
            format_number(one.log_loss),
            show_number(one.gain, one.gain_interval, signed=True),
        )
        for one in maps.trials
    ]
    if trials:
        header = ("map, on questions held out", "calibration error", "Brier", "log loss", "gain (Brier)")
        yield tabulate(header, trials, range(1, 5), ())
    used = "none" if maps.chosen is None else maps.chosen.kind
    yield Line(f"Use {used}" + (f": {maps.reason}." if maps.reason else "."))


def _describe_means(found: Calibration, *, is_weighted: bool) -> Iterator[Block]:
    mean = found.mean
    rows = [
        ("judge alone", show_number(mean.judged), f"{mean.rows:,}"),
        ("judge corrected by labels", show_number(mean.value, mean.interval), f"{mean.rows:,}"),
        ("labels alone", show_number(mean.labelled, mean.labelled_interval), f"{mean.labels:,}"),
    ]
    yield tabulate(("mean of what people would say", "value, 95% interval", "items"), rows, (1, 2), ())
    told = []
    if worth := describe_worth(mean.labels, mean.worth, mean.rows, mean.degrees + 1):
        told.append(f"With this judge, {mean.labels:,} labels are worth {worth} without it.")
    if is_weighted:
        weighted = "In these means, questions count as the spec's weights say; other measures count all alike."
        told.append(weighted)
    told += [f"! {sentence}" for sentence in (explain_sampling(found.sampling) if found.sampling else ())]
    yield list_told(told)


_WIDTH = 30
_SAID, _EMPTY, _JUDGED = "█", "·", "│"


def describe_diagram(bins: Sequence[Bin]) -> Grid:
    """A row for each bin: how many answers, what the judge and people say of them, and a bar."""
    rows = [
        (f"{one.low:.1f} to {one.high:.1f}", str(one.count), *map(format_number, (one.value, one.label)), draw_bar(one))
        for one in bins
    ]
    header = ("judge's values", "items", "judge", "people", f"people {_SAID}, judge {_JUDGED}")
    return tabulate(header, rows, range(1, 5), ())


def draw_bar(one: Bin) -> str:
    """A bar as long as what people say, with a mark at what the judge says."""
    said, judged = round(one.label * _WIDTH), min(round(one.value * _WIDTH), _WIDTH - 1)
    return "".join(_JUDGED if place == judged else _SAID if place < said else _EMPTY for place in range(_WIDTH))


def describe_slices(parts: Sequence[SliceCalibration]) -> Iterator[Block]:
    """A row for each part with enough labelled items, and a sentence on the others."""
    rows = [
        (
            f"{part.kind} {part.name}",
            str(part.items),
            *map(format_number, (part.judged, part.labelled)),
            show_measure(part.bias, signed=True),
            show_measure(part.auroc),
        )
        for part in parts
        if part.bias is not None
    ]
    if rows:
        yield tabulate(("part", "items", "judge", "people", "bias", "AUROC"), rows, range(1, 6))
    if few := [f"{part.kind} {part.name} ({part.items})" for part in parts if part.bias is None]:
        named = ", ".join([*few[:5], *(["..."] if len(few) > 5 else [])])
        told = f"{count_noun(len(few), 'part')} {agree(len(few), 'has')} fewer than {FEWEST} labelled items: {named}"
        yield Line(Span(told, "dim"))
