"""The values of an evaluation beside the traces that they belong to, in words that a tool can show.

The words are the reason, the label, and who judged. If several answers of an evaluation were read from the same
trace, the names of their values tell them apart.

A `ValueTarget` sends them. An `ExperimentTarget` takes them in two ways: for the traces of the answers, or with the
answers as an experiment.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rageval_spec.data.findings import list_findings
from rageval_spec.data.traces import TraceLink
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import UsageError
from rageval_spec.exchange.shared.connections import Connection
from rageval_spec.exchange.shared.contracts import Parcel, Target, TargetNode
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class Score:
    """One value of a metric for one answer.

    Attributes:
        link: the answer's trace; None if it was not read from one.
        value: the number; None if the answer could not be scored, and `reason` says why.
        status: `scored`, `unscorable` or `error`.
        details: what the value was computed from, as JSON text; None if the metric keeps none.
        sample: the answer's row of the samples table.
    """

    dataset: str
    system: str
    query_id: str
    metric: str
    value: float | None
    status: str
    reason: str | None
    link: TraceLink | None
    sample: Mapping[str, Any]
    details: str | None = None

    @property
    def answer(self) -> tuple[str, str, str]:
        """The dataset, the system and the question of the answer."""
        return self.dataset, self.system, self.query_id

    @property
    def key(self) -> str:
        """Names the value at a destination: dataset, system, question and metric."""
        return "/".join((*self.answer, self.metric))

    def list_findings(self) -> list[dict[str, Any]]:
        """What a judge found, claim by claim; [] if the metric keeps no details."""
        if self.details is None:
            return []
        value = {"dataset": self.dataset, "system": self.system, "query_id": self.query_id, "metric": self.metric}
        return list(list_findings({**value, "details": self.details}, self.sample))


@dataclass(frozen=True, slots=True)
class Evaluator:
    """What decided the values of a metric, in the words of OpenTelemetry's conventions.

    Attributes:
        id: the word of the metric, and that of its judge if it asks one: `rageval-spec/faithfulness/claims`.
        version: of this package, and a digest of all that gives the values their meaning: the metric's settings and
            code, its judges and their prompts and calibrations, and the models. Values of equal versions are
            comparable. Without a digest if the evaluation did not record its spec.
        kind: `llm_judge` if a chat model is asked, `deterministic` if neither a judge nor a model is, else None.
    """

    id: str
    version: str
    kind: str | None


class EvaluationScores:
    """The values of an evaluation in the order of its samples, then of its metrics.

    Only those whose answer has a trace of `tool`, unless that is None. After iteration, `missing` counts the answers
    that were left out because they have none.
    """

    def __init__(self, evaluation: Evaluation, tool: str | None) -> None:
        self._evaluation = evaluation
        self._tool = tool
        self.missing = 0
        self._tools: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Score]:
        """The values, block by block of the samples.

        Raises:
            UsageError: no answer has a trace of this tool; the message says what to do.
        """
        found, self.missing = False, 0
        for sample, values in list_rows(self._evaluation):
            link = TraceLink.load(sample["trace"])
            if self._tool is not None and (link is None or link.tool != self._tool):
                self.missing += 1
                self._tools.update([] if link is None else [link.tool])
                continue
            found = True
            for metric, row in values.items():
                key = sample["dataset"], sample["system"], sample["query_id"], metric
                yield Score(*key, row["value"], row["status"], row["reason"], link, sample, row.get("details"))
        if not found:
            raise UsageError(self._explain_none())

    def answers(self) -> Iterator[list[Score]]:
        """The values of each answer; raises the same error."""
        for _, group in groupby(self, key=lambda score: score.answer):
            yield list(group)

    def remarks(self) -> list[str]:
        """How many answers were left out because they have no trace of the tool; call it after iterating."""
        if not self.missing:
            return []
        return [f"{count_noun(self.missing, 'answer')} without a trace of {self._tool} left out"]

    def _explain_none(self) -> str:
        others = f"; their traces are of {', '.join(sorted(self._tools))}" if self._tools else ""
        return (
            f"no answer has a trace of {self._tool}{others}; evaluate answers that were read from it: "
            f"systems: {{prod: {{use: {self._tool}}}}}, or a file of: rageval-spec import {self._tool} -o traces.jsonl"
        )


def list_rows(evaluation: Evaluation) -> Iterator[tuple[dict[str, Any], dict[str, dict[str, Any]]]]:
    """Each row of the samples with its values by metric, in the order of the evaluation's metrics."""
    order = {name: place for place, name in enumerate(evaluation.metrics)}
    keys = ["dataset", "system", "query_id"]
    for block in evaluation.iterate_samples():
        rows = evaluation.values.join(block.select(keys), on=keys, how="semi", maintain_order="left")
        values: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for row in rows.iter_rows(named=True):
            values.setdefault(tuple(row[key] for key in keys), []).append(row)
        for sample in block.iter_rows(named=True):
            found = values.get(tuple(sample[key] for key in keys), ())
            ordered = sorted(found, key=lambda row: order.get(row["metric"], len(order)))
            yield sample, {row["metric"]: row for row in ordered}


_MOST_CLAIMS = 5
"""Claims that a reason quotes."""
_MOST_CHARACTERS = 300
"""Characters of a claim or of a judge's remark that a reason quotes."""
_GOOD = "supported"
_SHOWN_DIGITS = 12


class Judgements:
    """Words for the values of one evaluation."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._evaluators: dict[str, Evaluator] = {}

    def explain(self, score: Score) -> str | None:
        """Why the value is what it is: the metric's reason, and the claims that were not supported; None if unknown."""
        told = [score.reason.strip()] if score.reason and score.reason.strip() else []
        if score.status == "scored":
            told += _describe_claims(score.list_findings())
        return "\n".join(told) or None

    def label(self, score: Score) -> str | None:
        """The word of the metric's scale, None without one; the status if there is no value."""
        if score.value is None:
            return score.status
        scale = self._evaluation.bands.get(score.metric)
        return None if scale is None else scale.find(score.value).word

    def summarize(self, score: Score, name: str | None = None, digits: str = ".4g") -> str:
        """A value with its word in a few characters: `faithfulness 0.8 (good)`."""
        name = name or score.metric
        if score.value is None:
            return f"{name} {score.status}"
        label = self.label(score)
        return f"{name} {score.value:{digits}}{f' ({label})' if label else ''}"

    def is_judged(self, metric: str) -> bool:
        """Whether a judge decided the values of a metric: whether its block names one."""
        return bool(self._blocks.get(metric, {}).get("judge"))

    def find_evaluator(self, metric: str) -> Evaluator:
        """What decided the values of a metric."""
        if metric not in self._evaluators:
            self._evaluators[metric] = self._describe_evaluator(metric)
        return self._evaluators[metric]

    def _describe_evaluator(self, metric: str) -> Evaluator:
        from rageval_spec.kernels import version

        evaluation, block = self._evaluation, self._blocks.get(metric)
        if block is None:
            return Evaluator(f"rageval-spec/{metric}", version(), None)
        used = list(self._list_used(block))
        judges = [name for section, name in used if section == "judges"]
        models = {name: evaluation.provenance.models.get(name, {}) for section, name in used if section == "models"}
        meaning = {
            "metric": {key: value for key, value in block.items() if key != "as"},
            "code": evaluation.provenance.implementations.get(metric),
            "blocks": [evaluation.provenance.spec[section][name] for section, name in used],
            "prompts": {
                key: one for key, one in evaluation.provenance.prompts.items() if key.rpartition(".")[0] in judges
            },
            "calibrations": [one.digest for name, one in evaluation.provenance.calibrations.items() if name in judges],
            "weights": {name: facts.get("sha256") or facts.get("revision") for name, facts in models.items()},
        }
        digest = hashlib.sha256(json.dumps(meaning, sort_keys=True, default=str).encode()).hexdigest()
        words = [str(block.get("use"))]
        if judge := block.get("judge"):
            words.append(str(evaluation.provenance.spec["judges"][judges[0]].get("use")) if judges else str(judge))
        is_chat = any(evaluation.provenance.spec["models"][name].get("use") == "chat" for name in models)
        kind = "llm_judge" if is_chat else None if used or judge else "deterministic"
        return Evaluator("/".join(["rageval-spec", *words]), f"{version()}+{digest[:_SHOWN_DIGITS]}", kind)

    def _list_used(self, block: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The judges and models behind a block, each with its section, also those that other judges ask."""
        waiting: list[Any] = [block]
        seen: set[tuple[str, str]] = set()
        while waiting:
            found = waiting.pop(0)
            if isinstance(found, Mapping):
                waiting += [value for key, value in found.items() if key not in ("use", "as")]
            elif isinstance(found, list):
                waiting += found
            elif isinstance(found, str):
                for place in (("judges", found), ("models", found)):
                    if place not in seen and found in (self._evaluation.provenance.spec.get(place[0]) or {}):
                        seen.add(place)
                        waiting.append(self._evaluation.provenance.spec[place[0]][found])
                        yield place

    @cached_property
    def _blocks(self) -> dict[str, dict[str, Any]]:
        """The block of each metric that has one; the blocks are in the order of the evaluation's metrics."""
        blocks, metrics = self._evaluation.provenance.spec.get("metrics") or (), self._evaluation.metrics
        in_order = zip(metrics, blocks, strict=True) if len(blocks) == len(metrics) else ()
        named = {str(block.get("as") or block.get("use")): block for block in blocks if isinstance(block, dict)}
        return named | {metric: block for metric, block in in_order if isinstance(block, dict)}


def _describe_claims(findings: Sequence[dict[str, Any]]) -> list[str]:
    decided = [one for one in findings if one["verdict"] is not None]
    if not decided:
        return [_quote(one["reason"]) for one in findings[:1] if one["reason"]]
    counts = Counter(one["verdict"] for one in decided)
    told = [
        ", ".join(f"{number} {verdict.replace('_', ' ')}" for verdict, number in sorted(counts.items(), key=_order))
    ]
    bad = [one for one in decided if one["verdict"] != _GOOD]
    for one in bad[:_MOST_CLAIMS]:
        because = f": {_quote(one['reason'])}" if one["reason"] else ""
        told.append(f'{one["verdict"].replace("_", " ")}: "{_quote(one["text"] or "")}"{because}')
    if len(bad) > _MOST_CLAIMS:
        told.append(f"and {len(bad) - _MOST_CLAIMS} more")
    return told


def _order(pair: tuple[str, int]) -> tuple[bool, str]:
    return pair[0] != _GOOD, pair[0]


def _quote(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


class Names:
    """Keeps the values of several answers apart at a place that has one value for each name, such as a trace.

    The dataset and system that come first in the evaluation have the plain names. Others that read the same trace get
    their own after it: `faithfulness (hard/v2)`.
    """

    def __init__(self) -> None:
        self._owners: dict[str, tuple[str, str]] = {}

    def choose(self, place: str, score: Score, name: str) -> str:
        """The name of a value of this answer at this place, where `name` is the plain one."""
        owner = score.dataset, score.system
        return name if self._owners.setdefault(place, owner) == owner else f"{name} ({'/'.join(owner)})"


T = TypeVar("T", bound=TargetNode)


class ValueTarget(Target[T]):
    """Sends the values of an evaluation, and counts those that have no place at the destination."""

    tool: ClassVar[str]
    """The word of the tool, which traces name."""
    lost: ClassVar[tuple[str, str, str]] = ("value", "trace", "the tool")
    """What a parcel is called, what holds it, and where that should be, for the remark on what is gone."""
    takes = ("values",)
    otel_prefix: ClassVar[str | None] = None
    """What the tool writes before OpenTelemetry's id of a trace; None if it does not keep those ids."""

    def __init__(self, node: T, context: Any) -> None:
        super().__init__(node, context)
        self.scores: EvaluationScores | None = None
        self.gone: Counter[str] = Counter()
        """The places that were not there, each with the number of the parcels for it."""

    def open_scores(self, evaluation: Evaluation, *, linked: bool = True) -> EvaluationScores:
        """The values of the answers that have a trace of this tool, or of all answers."""
        self.scores = EvaluationScores(evaluation, self.tool if linked else None)
        return self.scores

    def remarks(self) -> list[str]:
        said = [] if self.scores is None else self.scores.remarks()
        if self.gone:
            what, place, where = self.lost
            lost, places = count_noun(self.gone.total(), what), count_noun(len(self.gone), place)
            said.append(f"{lost} left out: {places} not in {where}, such as {min(self.gone)}")
        return said


class ExperimentNode(Connection, TargetNode):
    """Where to send values. A subclass describes both keys in the words of its tool."""

    dataset: str | None = None
    run: str | None = None


E = TypeVar("E", bound=ExperimentNode)
_LONGEST_COMMENT = 20_000


class ExperimentTarget(ValueTarget[E]):
    """Sends values for the traces that the answers were read from; with a dataset, answers and values as an experiment.

    Values that are null are left out and counted in `without_value`.
    """

    named = ("dataset",)

    def __init__(self, node: E, context: Any) -> None:
        super().__init__(node, context)
        self.without_value = 0

    @abstractmethod
    def make_answer(self, score: Score, run: str) -> Parcel:
        """The answer that a score is of, as a part of an experiment."""

    @abstractmethod
    def make_value(self, score: Score, judgements: Judgements, names: Names, run: str | None) -> Parcel:
        """A value: of an experiment's answer, or without `run` of the trace that the score links to."""

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """Each value; in an experiment, after its answer."""
        is_experiment, judgements, names = self.node.dataset is not None, Judgements(evaluation), Names()
        self.without_value = 0
        name = self.node.run or evaluation.name
        for scores in self.open_scores(evaluation, linked=not is_experiment).answers():
            run = f"{name} {scores[0].system}" if len(set(evaluation.systems)) > 1 else name
            if is_experiment:
                yield self.make_answer(scores[0], run)
            for score in scores:
                if score.value is None:
                    self.without_value += 1
                else:
                    yield self.make_value(score, judgements, names, run if is_experiment else None)

    def remarks(self) -> list[str]:
        found = super().remarks()
        if self.without_value:
            found.append(f"{count_noun(self.without_value, 'answer')} that a metric could not score left out")
        return found


def list_contexts(sample: Mapping[str, Any]) -> list[dict[str, str]]:
    """The contexts of an answer as objects: each text, with its id if all have one."""
    texts, ids = sample["contexts"] or (), sample["context_ids"] or ()
    if len(ids) != len(texts):
        return [{"text": text} for text in texts]
    return [{"id": one, "text": text} for one, text in zip(ids, texts, strict=True)]


def shorten_reason(reason: str | None) -> str | None:
    """A reason as long as tools take it."""
    if reason is None or len(reason) <= _LONGEST_COMMENT:
        return reason
    return f"{reason[: _LONGEST_COMMENT - 3]}..."


def drop_unknown(found: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping without its keys that are None."""
    return {key: value for key, value in found.items() if value is not None}
