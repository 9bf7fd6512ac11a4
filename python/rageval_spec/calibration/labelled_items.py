"""Joins people's labels with a judge's values of the same answers, and reads the samples behind them.

It also says how the labelled answers were chosen, and what this means for means.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.evidence.citations import load_citations
from rageval_spec.data.findings import is_supported
from rageval_spec.data.labels import (
    RANDOM_REASONS,
    Label,
    LabelScale,
    average_labels,
    digest_answer,
    join_probabilities,
    list_draws,
    order_label,
)
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass, field
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.recorded.answers_and_steps import load_steps
from rageval_spec.statistics.weighted_clusters import lay_out
from rageval_spec.wording import count_noun

_COLUMNS = ("question", "answer", "contexts", "slices", "columns")


def read_item_samples(evaluation: Evaluation, joined: Joined) -> dict[Item, Mapping[str, Any]]:
    """The sample of each labelled item; empty for results without samples."""
    rows = find_rows(evaluation, (item[:3] for item in joined.items), _COLUMNS)
    return {item: rows.get(item[:3], {}) for item in joined.items}


Answered = tuple[str, str, str]
"""Dataset, system and query."""
_PARTS = (
    "query_id", "question", "answer", "contexts", "context_ids", "scores", "references", "reference_contexts",
    "answerable", "group", "condition", "error", "columns", "citations", "steps",
)  # fmt: skip


def find_rows(
    evaluation: Evaluation, wanted: Iterable[Answered], columns: Sequence[str]
) -> dict[Answered, Mapping[str, Any]]:
    """The rows of the samples table of these answers, with those of the columns that the results have.

    In the order of the results; empty for results without samples.
    """
    keys = ("dataset", "system", "query_id")
    table = pl.DataFrame([*wanted], schema=dict.fromkeys(keys, pl.String), orient="row").unique()
    rows = evaluation.find_samples(table)
    chosen = rows.select(name for name in dict.fromkeys((*keys, *columns)) if name in rows.columns)
    return {(row["dataset"], row["system"], row["query_id"]): row for row in chosen.iter_rows(named=True)}


def read_samples(evaluation: Evaluation, wanted: Collection[Answered]) -> dict[Answered, Sample]:
    """The samples of these answers, in the order of the results.

    Raises:
        DataError: the results do not have the texts of some.
    """
    rows = find_rows(evaluation, wanted, _PARTS)
    found = {key: _build(row) for key, row in rows.items() if row["answer"] is not None}
    if lacking := len({*wanted} - found.keys()):
        raise DataError(
            f"the results lack the texts of {lacking} of {len(wanted)} answers, so no judge can read them; "
            "write 'samples: full' in the spec, without 'redact', and run it again"
        )
    return found


def _build(row: Mapping[str, Any]) -> Sample:
    values: dict[str, Any] = {name: row.get(name) for name in _PARTS}
    for name in ("contexts", "context_ids", "scores", "reference_contexts", "references"):
        values[name] = None if values[name] is None else tuple(values[name])
    columns = json.loads(values["columns"]) if values["columns"] else None
    read = {
        "references": values["references"] or (),
        "columns": columns,
        "citations": load_citations(values["citations"]),
        "steps": None if values["steps"] is None else load_steps(values["steps"]),
    }
    return Sample(**values | read)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the labelled items of a metric were chosen.

    Attributes:
        items: the number of labelled items.
        known: how many of them have a probability of selection.
        lowest, highest: the smallest and the largest of these; None without one.
        reasons: why items were chosen, each word once: `random`, `low`; empty if the labels do not say.
        labels, seen: the number of labels, and of those whose annotator had seen what the judge says.
        repeated: how many of the items were chosen by several selections.
    """

    items: int
    known: int
    lowest: float | None
    highest: float | None
    reasons: tuple[str, ...]
    labels: int = 0
    seen: int = 0
    repeated: int = 0

    @property
    def is_unequal(self) -> bool:
        """Whether all items have a probability, and not all the same."""
        return self.known == self.items and self.lowest != self.highest

    @property
    def is_partly_known(self) -> bool:
        """Whether some items have a probability and some do not."""
        return 0 < self.known < self.items

    @property
    def lacks_random(self) -> bool:
        """Whether the labels say how their items were chosen, and none was drawn from all answers at random."""
        return self.known > 0 and bool(self.reasons) and RANDOM_REASONS.isdisjoint(self.reasons)


def describe_sampling(items: Sequence[Sequence[Label]]) -> Sampling:
    known = [found for labels in items if (found := find_probability(labels)) is not None]
    words = (word for labels in items for label in labels for word in label.reasons)
    labels = [label for of in items for label in of]
    return Sampling(
        items=len(items),
        known=len(known),
        lowest=min(known, default=None),
        highest=max(known, default=None),
        reasons=tuple(dict.fromkeys(words)),
        labels=len(labels),
        seen=sum(label.saw_judge for label in labels),
        repeated=sum(len(list_draws(of)) > 1 for of in items),
    )


def find_probability(labels: Sequence[Label]) -> float | None:
    """The probability with which an item was chosen; None if its labels name none.

    If they name several, the item was chosen several times, and could have been by each.
    """
    draws = list_draws(labels)
    return join_probabilities([probability for _, probability in draws]) if draws else None


def weigh(items: Sequence[Sequence[Label]]) -> tuple[float, ...] | None:
    """One over the probability of each item; None if one is not known, or if all are the same."""
    if not describe_sampling(items).is_unequal:
        return None
    return tuple(1 / (find_probability(labels) or 1.0) for labels in items)


def explain_sampling(sampling: Sampling) -> list[str]:
    """What a reader of the means must know about it, in sentences; none if all items were equally likely."""
    told = []
    if sampling.is_unequal:
        told.append(
            f"The labelled answers were chosen with unequal probabilities, from {sampling.lowest:.3g} to "
            f"{sampling.highest:.3g}. The corrected mean and that of the labels weigh each by one over its "
            "probability, so that they hold for all answers. The other measures describe the labelled "
            "answers as they were chosen."
        )
    if sampling.is_partly_known:
        told.append(
            f"Only {sampling.known} of {sampling.items} labelled answers have a probability of selection, so all count "
            "alike. The means are biased unless the answers were drawn at random."
        )
    if sampling.repeated:
        told.append(
            f"{count_noun(sampling.repeated, 'labelled answer')} came from several selections, and count with the "
            "probability that one of them chose them. Each selection records only its own probabilities, "
            "so the means can be biased. Give all reasons to one `rageval-spec review select`."
        )
    if sampling.lacks_random:
        told.append(
            f"No labelled answer was drawn at random: they are there because of {', '.join(sampling.reasons)}. The "
            "means hold for such answers only. Choose some at random: rageval-spec review select --random 50"
        )
    if sampling.seen:
        told.append(
            f"{sampling.seen} of {count_noun(sampling.labels, 'label')} are from people who had seen the judge's "
            "verdict. People follow it, so the judge may look better than it is."
        )
    return told


def explain_promise(sampling: Sampling | None) -> Iterator[str]:
    """A warning that a reader of a guarantee needs if the items were not drawn at random."""
    if sampling is not None and (sampling.is_unequal or sampling.is_partly_known or sampling.lacks_random):
        yield (
            "! The promise holds for answers chosen as the labelled ones were, which is not at random. To promise it "
            "for all answers, label some that are: rageval-spec review select --random 300"
        )


NOT_KEPT = "of an answer whose text the results do not hold"
"""Why a label that names the digest of an answer does not count in results with `samples: none` or `redact`."""
Item = tuple[str, str, str, int | None]
"""Dataset, system, query and claim."""


def question_of(item: Item) -> tuple[str, str]:
    """The dataset and query of an item. Items of one question are not independent."""
    return item[0], item[2]


@dataclass(frozen=True)
class Joined:
    """What a judge and people said of the same answers (or claims), on one metric.

    Attributes:
        metric: the metric.
        items: the labelled items, sorted.
        judged, labelled: the judge's value, and the mean of the labels, from 0 to 1, of each item.
        labels: all labels of these items.
        others: the judge's values of the items without a label, by item; claims if claims were labelled.
        unused: labels that belong to nothing, counted by the reason.
        weights: one over the probability with which each item was chosen for labelling; None if all count alike.
        sampling: how the items were chosen.
        together: the cluster of each question that belongs together with others, by dataset and query.
        bounds: the metric's lowest and highest value, which are 0 and 1 in `judged` and `others`.
        scale: what the labels' worst and best are.
        shares: how much each item counts in means, if the spec weights questions; empty if all count the same.
    """

    metric: str
    items: tuple[Item, ...]
    judged: tuple[float, ...]
    labelled: tuple[float, ...]
    labels: tuple[Label, ...]
    others: Mapping[Item, float]
    unused: Mapping[str, int] = field(default_factory=dict)
    weights: tuple[float, ...] | None = None
    sampling: Sampling | None = None
    together: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    bounds: tuple[float, float] = (0.0, 1.0)
    scale: LabelScale = field(default_factory=LabelScale)
    shares: Mapping[Item, float] = field(default_factory=dict)

    @cached_property
    def clusters(self) -> tuple[tuple[str, str | int], ...]:
        """What of each item is independent of the others: its question, or the cluster that the question belongs to."""
        return tuple(map(self.cluster_of, self.items))

    def cluster_of(self, item: Item) -> tuple[str, str | int]:
        """The cluster of an item's question; a question without one is its own."""
        question = question_of(item)
        return self.together.get(question, question)

    def counts(self, places: Iterable[int]) -> bool:
        """Whether one of the labelled items at these places counts in means."""
        return not self.shares or any(self.shares[self.items[place]] > 0 for place in places)

    @cached_property
    def questions(self) -> tuple[tuple[str, str], ...]:
        return tuple(map(question_of, self.items))


def join_labels(
    evaluation: Evaluation,
    labels: Sequence[Label],
    metric: str,
    scale: LabelScale | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Joined:
    """Join the labels of one metric with an evaluation's values of it.

    A label that names no dataset or no system belongs to the only one that has the metric. A label that names the
    digest of an answer belongs to that text only. If a label names a claim, the judge's decision on it is compared:
    supported is 1, anything else 0, or the score if the judge gives one.

    Args:
        evaluation, labels, metric: the evaluation, the labels, and the metric whose values they are compared with.
        scale: what the labels' worst and best are; by default 0 and 1.
        bounds: the metric's lowest and highest value; they become 0 and 1. The scores of claims are so already.

    Raises:
        DataError: a label is not a number on the scale; some labels are of claims and some of answers; a label does not
            say its dataset or system, and several have the metric; none of the labels belongs to a value.
    """
    labels = [label.put_on(scale or LabelScale()) for label in labels]
    of_claims = {label.claim is not None for label in labels}
    if len(of_claims) > 1:
        raise DataError(
            f"some labels of {metric} are of claims and some of whole answers; calibrate one kind at a time"
        )
    bounds = (0.0, 1.0) if True in of_claims else bounds
    values = _list_claims(evaluation, metric) if True in of_claims else _list_values(evaluation, metric, bounds)
    there = {item[0] for item in values}, {item[1] for item in values}
    answers = _digest_answers(evaluation, labels)
    found: dict[Item, list[Label]] = defaultdict(list)
    unused: Counter[str] = Counter()
    for label in labels:
        item, problem = _place(label, values, there, evaluation, metric, answers)
        if problem is None:
            found[item].append(label)
        else:
            unused[problem] += 1
    if not found:
        told = "; ".join(f"{count} {'is' if count == 1 else 'are'} {reason}" for reason, count in unused.items())
        if NOT_KEPT in unused:
            told += "; name the spec instead of the results, or write 'samples: full' in it, without 'redact'"
        raise DataError(f"none of the {len(labels)} labels of {metric} belongs to a value of these results: {told}")
    # What is drawn later is drawn by place, so the order of the file must not decide it.
    in_order = sorted(found, key=lambda item: (*item[:3], -1 if item[3] is None else item[3]))
    found = {item: sorted(found[item], key=order_label) for item in in_order}
    means = {item: average_labels(of, scale) for item, of in found.items()}
    return Joined(
        metric=metric,
        items=tuple(means),
        judged=tuple(values[item] for item in means),
        labelled=tuple(means.values()),
        labels=tuple(label for of in found.values() for label in of),
        others={item: value for item, value in values.items() if item not in means},
        unused=dict(unused),
        weights=weigh([*found.values()]),
        sampling=describe_sampling([*found.values()]),
        together=find_clusters(evaluation),
        bounds=bounds,
        scale=scale or LabelScale(),
        shares=_share(evaluation, values, metric),
    )


def find_clusters(evaluation: Evaluation) -> dict[tuple[str, str], tuple[str, int]]:
    """The cluster of each question that belongs together with others, by dataset and query."""
    return {
        (dataset, query_id): (dataset, cluster)
        for dataset, design in evaluation.question_designs.items()
        for query_id, cluster in design.clusters.items()
    }


def _share(evaluation: Evaluation, items: Iterable[Item], metric: str) -> dict[Item, float]:
    """How much each item counts by the weights of the spec; on average 1 among the questions of a system.

    The scored questions stand for all that were asked. Empty without weights.
    """
    designs = {name: of for name, of in evaluation.question_designs.items() if of.weights is not None}
    if not designs:
        return {}
    cells: dict[tuple[str, str], dict[str, list[Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        cells[item[0], item[1]][item[2]].append(item)
    shares: dict[Item, float] = {}
    for (dataset, system), of_questions in cells.items():
        scored = [*of_questions]
        counts = dict.fromkeys(scored, 1.0)
        if dataset in designs:
            asked = evaluation.values.filter(dataset=dataset, system=system, metric=metric)["query_id"].to_list()
            layout = lay_out(designs[dataset], scored, asked)
            counts = dict.fromkeys(scored, 0.0) | {
                scored[place]: weight * len(scored)
                for place, weight in zip(layout.rows.tolist(), layout.weights.tolist(), strict=True)
            }
        shares |= {item: counts[query_id] for query_id, of in of_questions.items() for item in of}
    return shares


def _list_values(evaluation: Evaluation, metric: str, bounds: tuple[float, float]) -> dict[Item, float]:
    low, high = bounds
    rows = evaluation.values.filter(metric=metric).drop_nulls("value").select("dataset", "system", "query_id", "value")
    return {
        (dataset, system, query_id, None): value if bounds == (0.0, 1.0) else (value - low) / (high - low)
        for dataset, system, query_id, value in rows.iter_rows()
    }


def _list_claims(evaluation: Evaluation, metric: str) -> dict[Item, float]:
    columns = ("dataset", "system", "query_id", "claim", "verdict", "score")
    claims: dict[Item, float] = {}
    for block in evaluation.iterate_findings():
        for *item, verdict, score in block.filter(metric=metric).select(columns).iter_rows():
            claims[tuple(item)] = score if score is not None else float(is_supported(verdict, 0.0))
    return claims


def _digest_answers(evaluation: Evaluation, labels: Sequence[Label]) -> Mapping[tuple[str, str, str], str | None]:
    """The digests of all answers, if a label names one; None for an answer whose text was not kept."""
    if not any(label.answer for label in labels):
        return {}
    rows = evaluation.select_samples("dataset", "system", "query_id", "answer").iter_rows()
    return {
        (dataset, system, query_id): None if answer is None else digest_answer(answer)
        for dataset, system, query_id, answer in rows
    }


def _place(
    label: Label,
    values: Mapping[Item, float],
    there: tuple[set[str], set[str]],
    evaluation: Evaluation,
    metric: str,
    answers: Mapping[tuple[str, str, str], str | None],
) -> tuple[Item, str | None]:
    """The item of a label, and why it is not used, if it is not. `there` has the datasets and systems with values."""
    for kind, name, known in (
        ("dataset", label.dataset, evaluation.datasets),
        ("system", label.system, evaluation.systems),
    ):
        if name and name not in known:
            return (label.dataset, label.system, label.query_id, None), f"of the unknown {kind} '{name}'"
    dataset = label.dataset or _only(there[0], "dataset", label, evaluation.datasets, metric)
    system = label.system or _only(there[1], "system", label, evaluation.systems, metric)
    item = (dataset, system, label.query_id, label.claim)
    if (dataset, system, f"{label.query_id}#1", label.claim) in values:
        return item, "of a question that was asked several times (write q1#2 for the second answer to q1)"
    if item not in values:
        return item, "of a question, answer or claim without a value"
    if label.answer:
        digest = answers.get((dataset, system, label.query_id))
        if digest is None:
            return item, NOT_KEPT
        if digest != label.answer:
            return item, "of an answer that has changed"
    return item, None


def _only(there: set[str], what: str, label: Label, order: Iterable[str], metric: str) -> str:
    if len(there) > 1:
        names = ", ".join(name for name in order if name in there)
        raise DataError(
            f"{label.place}: the label does not name its {what}, and several have {metric}: {names}; "
            f"add a column '{what}'"
        )
    return next(iter(there), "")
