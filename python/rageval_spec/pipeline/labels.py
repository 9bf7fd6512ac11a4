"""People's labels in an evaluation: which belong to which values, and the numbers that they correct."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from rageval_spec.calibration.joining import Joined, join_labels
from rageval_spec.calibration.sampling import explain_sampling
from rageval_spec.data.correction import LABEL, LABEL_WEIGHT, UNNAMED, has_unnamed
from rageval_spec.data.labels import Label, find_ends
from rageval_spec.data.note import Note
from rageval_spec.errors import DataError
from rageval_spec.pipeline.label_checks import choose_labels, list_labelled
from rageval_spec.statistics.corrections import Rule, correct_aggregates, correct_comparisons
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.design import Design
    from rageval_spec.data.evaluation import Aggregate, Evaluation
    from rageval_spec.pipeline.parts import Parts
    from rageval_spec.statistics.aggregate import Comparisons

M = TypeVar("M")
FEW = 50
"""With fewer labels than this a report says so: the interval is wide."""


@dataclass(frozen=True)
class Labelled:
    """Values with the labels of their answers.

    Attributes:
        values: the values; if a metric has labels, with the columns `label` and `label_weight`.
        rules: how each metric that has labels is corrected, by its name.
        notes: what a reader of the corrected numbers must know.
        confidence: the level of intervals.
        designs: the clusters and weights of each dataset's questions, if the spec has any.
    """

    values: pl.DataFrame
    rules: Mapping[str, Rule] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    confidence: float = 0.95
    designs: Mapping[str, Design] = field(default_factory=dict)

    def correct_aggregates(self, aggregates: Sequence[Aggregate], values: pl.DataFrame) -> tuple[Aggregate, ...]:
        """The aggregates of some of the values, those of metrics with labels corrected."""
        return correct_aggregates(aggregates, values, self.rules, self.confidence, self.designs)

    def correct_comparisons(
        self, compared: Comparisons, values: pl.DataFrame, earlier: pl.DataFrame | None = None
    ) -> Comparisons:
        """The comparisons of some of the values with one another or with `earlier` ones, corrected alike."""
        return correct_comparisons(compared, values, self.rules, self.confidence, earlier, self.designs)

    def keep_uncorrected(self, metrics: Mapping[str, M]) -> dict[str, M]:
        """The metrics without labels."""
        return {name: metric for name, metric in metrics.items() if name not in self.rules}


def attach_labels(parts: Parts, evaluation: Evaluation, confidence: float = 0.95) -> Labelled:
    """The values of an evaluation with what people say of their answers.

    Never fails: labels that cannot be used give a rule that says why, because the values may have cost money.
    """
    labelled = list_labelled(parts.metrics)
    if not labelled:
        return Labelled(evaluation.values)
    rules: dict[str, Rule] = {}
    frames: list[pl.DataFrame] = []
    notes: list[Note] = []
    for name, metric in labelled.items():
        source = str(metric.node.labels)
        bounds = find_ends(*metric.bounds)
        problem = None
        try:
            labels = choose_labels(parts.labels[source].read(), name, metric.node.use)
            joined = join_labels(
                evaluation, [one for one in labels if one.claim is None], name, parts.labels[source].scale
            )
        except DataError as error:
            problem = str(error)
        else:
            frames.append(_make_frame(joined, bounds))
            notes += _describe(joined, labels, source)
        rules[name] = Rule(source, bounds, metric.node.correction, problem)
    values = _join(evaluation.values, frames)
    return Labelled(values, rules, tuple(notes), confidence, evaluation.question_designs)


def attach_again(labelled: Labelled, parts: Parts, earlier: Evaluation) -> pl.DataFrame:
    """The values of an earlier evaluation with the labels of its own answers.

    A label that does not name the answer's digest could be of today's answer, so it does not count. If the earlier
    results do not hold the texts of answers, the labels that they were evaluated with count.
    """
    frames: list[pl.DataFrame] = []
    for name, rule in labelled.rules.items():
        metric = parts.metrics[name]
        try:
            labels = choose_labels(parts.labels[rule.source].read(), name, metric.node.use)
            named = [one for one in labels if one.claim is None and one.answer]
            joined = join_labels(earlier, named, name, parts.labels[rule.source].scale)
        except DataError:
            frames += _take_stored(earlier, name)
            continue
        frames.append(_make_frame(joined, rule.bounds))
    values = earlier.values.drop(LABEL, LABEL_WEIGHT, strict=False)
    return _join(values, frames) if labelled.rules else earlier.values


def _take_stored(earlier: Evaluation, name: str) -> list[pl.DataFrame]:
    """The labels of a metric among the values of an evaluation that does not hold the texts of its answers."""
    import polars as pl

    if LABEL not in earlier.values.columns or has_unnamed(earlier.notes, name):
        return []
    if earlier.select_samples("answer")["answer"].drop_nulls().len():
        return []
    rows = earlier.values.filter(pl.col("metric") == name, pl.col(LABEL).is_not_null())
    return [rows.select("dataset", "system", "metric", "query_id", LABEL, LABEL_WEIGHT)]


def _make_frame(joined: Joined, bounds: tuple[float, float]) -> pl.DataFrame:
    import polars as pl

    low, high = bounds
    return pl.DataFrame(
        {
            "dataset": [item[0] for item in joined.items],
            "system": [item[1] for item in joined.items],
            "metric": joined.metric,
            "query_id": [item[2] for item in joined.items],
            LABEL: [low + (high - low) * value for value in joined.labelled],
            LABEL_WEIGHT: joined.weights or [1.0] * len(joined.items),
        }
    )


def _join(values: pl.DataFrame, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    if not frames:
        return values.with_columns(pl.lit(None, pl.Float64).alias(name) for name in (LABEL, LABEL_WEIGHT))
    keys = ["dataset", "system", "metric", "query_id"]
    return values.join(pl.concat(frames), on=keys, how="left", maintain_order="left")


def _describe(joined: Joined, labels: Sequence[Label], source: str) -> Iterator[Note]:
    """What a reader of a corrected number must know of its labels."""
    claims = sum(label.claim is not None for label in labels)
    unused = {**joined.unused, **({"of claims, where labels of whole answers are needed": claims} if claims else {})}
    for reason, count in unused.items():
        told = f"{joined.metric}: {count} of {count_noun(len(labels), 'label')} of '{source}' {_be(count)} {reason}"
        yield Note("unused_labels", f"{told}; {'it does' if count == 1 else 'they do'} not count", count=count)
    if len(joined.items) < FEW:
        told = f"{joined.metric}: only {count_noun(len(joined.items), 'answer')} {_have(len(joined.items))} labels"
        yield Note("few_labels", f"{told}; from {FEW} on, intervals become useful", count=len(joined.items))
    unnamed = sum(not label.answer for label in joined.labels)
    if unnamed:
        told = (
            f"{joined.metric}: {count_noun(unnamed, 'label')} of '{source}' {_do(unnamed)} not name the answer's digest"
        )
        yield Note(UNNAMED, f"{told}, so they count even if the answer has changed since", count=unnamed)
    for sentence in explain_sampling(joined.sampling) if joined.sampling else ():
        yield Note("label_sampling", f"{joined.metric}: {sentence}", level="warning")


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _do(count: int) -> str:
    return "does" if count == 1 else "do"


def digest_labels(parts: Parts) -> dict[str, str]:
    """The sha256 of the files of the labels that metrics name, by the labels' name."""
    named = dict.fromkeys(str(metric.node.labels) for metric in list_labelled(parts.metrics).values())
    sources = {name: parts.labels[name] for name in named}
    return {name: "".join(map(source.context.fingerprint, source.inputs())) for name, source in sources.items()}
