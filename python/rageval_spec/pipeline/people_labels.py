"""People's labels in an evaluation: which belong to which values, and the numbers that they correct.

How many labels match answers is also counted before an evaluation runs, as far as it is known then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rageval_spec.data.outcomes import LABEL, LABEL_WEIGHT, UNNAMED, Note, has_unnamed
from rageval_spec.dataclass import asdict, dataclass, field
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.pipeline.planning.preflight import choose_labels, list_labelled
from rageval_spec.pipeline.planning.question_selection import queries_to_ask, repeat_questions
from rageval_spec.plugin import RankingMetric
from rageval_spec.wording import agree, count_noun

if TYPE_CHECKING:
    from rageval_spec.calibration.labelled_items import Joined
    from rageval_spec.data.datasets import Design
    from rageval_spec.data.evaluation import Aggregate, Evaluation
    from rageval_spec.data.labels import Label
    from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
    from rageval_spec.statistics.aggregation import PairedTests
    from rageval_spec.statistics.raters.label_correction import Rule


M = TypeVar("M")
_KEYS = ("dataset", "system", "metric", "query_id")
FEW = 50
"""With fewer labels than this a report says so: the interval is wide."""


@dataclass(frozen=True)
class LabelledValues:
    """Values with the labels of their answers.

    If a metric has labels, the values have the columns `label` and `label_weight`, and the rules how it is corrected,
    by its name. The notes are what a reader of the corrected numbers must know.
    """

    values: pl.DataFrame
    rules: Mapping[str, Rule] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    confidence: float = 0.95
    designs: Mapping[str, Design] = field(default_factory=dict)

    def correct_aggregates(self, aggregates: Sequence[Aggregate], values: pl.DataFrame) -> tuple[Aggregate, ...]:
        """The aggregates of some of the values, those of metrics with labels corrected."""
        from rageval_spec.statistics.raters.label_correction import correct_aggregates

        return correct_aggregates(aggregates, values, self.rules, self.confidence, self.designs)

    def correct_comparisons(
        self, compared: PairedTests, values: pl.DataFrame, earlier: pl.DataFrame | None = None
    ) -> PairedTests:
        """The comparisons of some of the values with one another or with `earlier` ones, corrected alike."""
        from rageval_spec.statistics.raters.label_correction import correct_comparisons

        return correct_comparisons(compared, values, self.rules, self.confidence, earlier, self.designs)

    def keep_uncorrected(self, metrics: Mapping[str, M]) -> dict[str, M]:
        return {name: metric for name, metric in metrics.items() if name not in self.rules}


def attach_labels(parts: SpecPlugins, evaluation: Evaluation, confidence: float = 0.95) -> LabelledValues:
    """The values of an evaluation with what people say of their answers.

    Never fails: labels that cannot be used give a rule that says why, because the values may have cost money.
    """
    labelled = list_labelled(parts.metrics)
    if not labelled:
        return LabelledValues(evaluation.values)
    from rageval_spec.calibration.labelled_items import join_labels
    from rageval_spec.data.labels import find_ends
    from rageval_spec.pipeline.pair_labels import correct_rankings
    from rageval_spec.statistics.raters.label_correction import Rule

    rules: dict[str, Rule] = {}
    frames: list[pl.DataFrame] = []
    notes: list[Note] = []
    for name, metric in labelled.items():
        source, bounds, problem = str(metric.node.labels), find_ends(*metric.bounds), None
        if isinstance(metric, RankingMetric):
            cells, problem, told = correct_rankings(parts.labels[source], name, metric.measure(), evaluation)
            rules[name] = Rule(source, bounds, "imputation", problem, cells)
            notes += told
            continue
        try:
            labels = choose_labels(parts.labels[source].read(), name, metric.node.use)
            whole = [one for one in labels if one.claim is None]
            joined = join_labels(evaluation, whole, name, parts.labels[source].scale)
        except DataError as error:
            problem = str(error)
        else:
            frames.append(_make_frame(joined, bounds))
            notes += _describe(joined, labels, source)
        rules[name] = Rule(source, bounds, metric.node.correction, problem)
    values = _join(evaluation.values, frames)
    return LabelledValues(values, rules, tuple(notes), confidence, evaluation.question_designs)


def attach_again(labelled: LabelledValues, parts: SpecPlugins, earlier: Evaluation) -> pl.DataFrame:
    """The values of an earlier evaluation with the labels of its own answers.

    A label that does not name the answer's digest could be of today's answer, so it does not count. If the earlier
    results do not hold the texts of answers, the labels that they were evaluated with count.
    """
    from rageval_spec.calibration.labelled_items import join_labels

    frames: list[pl.DataFrame] = []
    for name, metric in list_labelled(parts.answer_metrics).items():
        rule = labelled.rules[name]
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
    if LABEL not in earlier.values.columns or has_unnamed(earlier.notes, name):
        return []
    if earlier.select_samples("answer")["answer"].drop_nulls().len():
        return []
    rows = earlier.values.filter(pl.col("metric") == name, pl.col(LABEL).is_not_null())
    return [rows.select(*_KEYS, LABEL, LABEL_WEIGHT)]


def _make_frame(joined: Joined, bounds: tuple[float, float]) -> pl.DataFrame:
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
    if not frames:
        return values.with_columns(pl.lit(None, pl.Float64).alias(name) for name in (LABEL, LABEL_WEIGHT))
    return values.join(pl.concat(frames), on=_KEYS, how="left", maintain_order="left")


def _describe(joined: Joined, labels: Sequence[Label], source: str) -> Iterator[Note]:
    """What a reader of a corrected number must know of its labels."""
    from rageval_spec.calibration.labelled_items import explain_sampling

    claims = sum(label.claim is not None for label in labels)
    unused = {**joined.unused, **({"of claims, where labels of whole answers are needed": claims} if claims else {})}
    for reason, count in unused.items():
        of = f"{count} of {count_noun(len(labels), 'label')} of '{source}' {agree(count, 'is')}"
        told = f"{joined.metric}: {of} {reason}; {agree(count, 'it does')} not count"
        yield Note("unused_labels", told, count=count)
    if (few := len(joined.items)) < FEW:
        told = f"{joined.metric}: only {count_noun(few, 'answer')} {agree(few, 'has')} labels"
        yield Note("few_labels", f"{told}; from {FEW} on, intervals become useful", count=few)
    unnamed = sum(not label.answer for label in joined.labels)
    if unnamed:
        told = f"{joined.metric}: {count_noun(unnamed, 'label')} of '{source}' {agree(unnamed, 'does')} not name"
        message = f"{told} the answer's digest, so they count even if the answer has changed since"
        yield Note(UNNAMED, message, count=unnamed)
    for sentence in explain_sampling(joined.sampling) if joined.sampling else ():
        yield Note("label_sampling", f"{joined.metric}: {sentence}", level="warning")


def digest_labels(parts: SpecPlugins) -> dict[str, str]:
    """The sha256 of the files of the labels that metrics name, by the labels' name."""
    named = dict.fromkeys(str(metric.node.labels) for metric in list_labelled(parts.metrics).values())
    sources = {name: parts.labels[name] for name in named}
    return {name: "".join(map(source.context.fingerprint, source.inputs())) for name, source in sources.items()}


_Answers = Mapping[tuple[str, str, str], str | None]
"""The digest of each answer, by dataset, system and query; None for one that is not known yet."""


@dataclass(frozen=True, slots=True)
class LabelMatches:
    """Where the labelled answers of one metric are, by the counts that `__str__` describes.

    `changed` are earlier texts of answers, and `unknown` are to questions that the systems are still to be asked.
    """

    metric: str
    source: str
    answers: int
    matching: int
    changed: int
    unknown: int
    absent: int

    def __str__(self) -> str:
        """`faithfulness: 120 answers with labels of 'people': 110 as they are now, 10 changed`."""
        counts = (
            (self.matching, "as they are now"),
            (self.changed, "changed"),
            (self.unknown, "not known before the systems are asked"),
            (self.absent, "of other questions or systems"),
        )
        told = ", ".join(f"{count} {what}" for count, what in counts if count)
        return f"{self.metric}: {count_noun(self.answers, 'answer')} with labels of '{self.source}': {told}"


def render_matches(matches: Sequence[LabelMatches]) -> str:
    return "".join(f"{one}\n" for one in matches)


def dump_matches(matches: Sequence[LabelMatches]) -> dict[str, Any]:
    return {"labels": [asdict(one) for one in matches]} if matches else {}


def match_labels(parts: SpecPlugins, limit: int | None = None, repeat: int = 1) -> tuple[LabelMatches, ...]:
    """How many labels belong to the answers of an evaluation, for each metric that has labels. Asks nothing.

    Only the first `limit` queries of each dataset are evaluated, each of them `repeat` times.
    """
    labelled = list_labelled(parts.answer_metrics)
    if not labelled:
        return ()
    answers = dict(_list_all(parts, limit, repeat))
    found = []
    for name, metric in labelled.items():
        source = str(metric.node.labels)
        labels = [one for one in choose_labels(parts.labels[source].read(), name, metric.node.use) if one.claim is None]
        found.append(_match(name, source, labels, answers))
    return tuple(found)


def _list_all(parts: SpecPlugins, limit: int | None, repeat: int) -> Iterator[tuple[tuple[str, str, str], str | None]]:
    from rageval_spec.data.labels import digest_answer

    for dataset, plugin in parts.datasets.items():
        answering = {name: one for name, one in parts.systems.items() if one.answers_on(dataset)}
        asked = repeat_questions(queries_to_ask(plugin.open(), limit), repeat) if answering else None
        if asked is None or asked.queries is None:
            continue
        for name, system in answering.items():
            yield from (((dataset, name, query_id), None) for query_id in asked.queries["query_id"])
            for query_id, text in system.find_answers(asked).select("query_id", "answer").iter_rows():
                yield (dataset, name, query_id), digest_answer(text or "")


def _match(name: str, source: str, labels: list[Label], answers: _Answers) -> LabelMatches:
    several = ([*dict.fromkeys(key[part] for key in answers)] for part in (0, 1))
    dataset, system = (names[0] if len(names) == 1 else "" for names in several)
    items = dict.fromkeys((one.dataset or dataset, one.system or system, one.query_id, one.answer) for one in labels)
    counts = dict.fromkeys(("matching", "changed", "unknown", "absent"), 0)
    for dataset, system, query_id, digest in items:
        known = answers.get((dataset, system, query_id), "absent")
        found = "unknown" if known is None else "matching" if digest in ("", known) else "changed"
        counts["absent" if known == "absent" else found] += 1
    return LabelMatches(name, source, len(items), **counts)
