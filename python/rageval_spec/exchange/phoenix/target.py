"""Writes values to Phoenix as annotations of what they are about, or as experiments on a dataset.

An annotation belongs to a span, a trace or a document. It is named by the metric and by an identifier that has the
evaluation's name, the dataset and the system. Phoenix replaces an annotation with the same span, name and identifier;
those of documents have no identifier.

Each system gets an experiment, and each answer a run. An experiment carries a digest of the answers. Other answers
make another experiment; the values of the same answers replace those that were written before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import UsageError
from rageval_spec.exchange.phoenix.source import OURS, RETRIEVER, TOOL, PhoenixConnection, PhoenixServer
from rageval_spec.exchange.shared.connections import read_object
from rageval_spec.exchange.shared.contracts import Parcel, TargetNode
from rageval_spec.exchange.shared.scores import EvaluationScores, Judgements, Names, Score, ValueTarget
from rageval_spec.exchange.shared.spans.spans import format_moment
from rageval_spec.libraries import compile_later
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class PhoenixTargetNode(PhoenixConnection, TargetNode):
    dataset: str | None = Field(
        default=None,
        min_length=1,
        description="The dataset on which to write an experiment for each system, by name. Default: the values become "
        "annotations of the traces that the answers were read from.",
    )
    experiment: str | None = Field(
        default=None,
        min_length=1,
        description="The name of the experiment, to which the system's name is added if there are several. "
        "Default: the evaluation's name.",
    )
    needs = (("experiment", "dataset"),)


RELEVANCE = "relevance"
"""The name of the annotation with a document's relevance from the dataset."""
_GONE = compile_later(rb"(?:Spans|Traces) with IDs (?P<ids>[0-9a-fA-F, ]+) do not exist")
_OUT_OF_BOUNDS = compile_later(rb"Document position \d+ is out of bounds for span (?P<ids>[0-9a-fA-F]+)")
_SYNC = [("sync", "true")]
"""Without it, Phoenix accepts everything and drops what it cannot use."""


class PhoenixTarget(ValueTarget[PhoenixTargetNode]):
    """Writes what Phoenix replaces when it is written again, so that sending twice changes nothing."""

    node_type = PhoenixTargetNode
    known_as = ("arize", "arize_phoenix")
    summary = "Write values to Arize Phoenix, as annotations of spans and documents or as experiments."
    examples = (
        "export phoenix rageval-results",
        "export phoenix rageval-results --dry-run",
        "export phoenix rageval-results --dataset golden --experiment nightly",
    )
    batch = 50
    named = ("dataset",)
    tool = TOOL
    otel_prefix = ""
    lost = ("annotation", "span", "Phoenix")
    api: PhoenixServer
    api_type = PhoenixServer

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """An experiment's run for each answer, or the annotations of each answer; those of its documents follow."""
        if self._experiments is not None:
            yield from self._experiments.list_parcels(evaluation)
            return
        judgements, names = Judgements(evaluation), Names()
        for scores in self.open_scores(evaluation).answers():
            yield from _list_relevance(scores[0], names)
            for score in scores:
                yield _annotate(score, judgements, evaluation.name)
                yield from _list_documents(score, names)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Write parcels; each replaces what was written under its key. Those of spans that are gone are left out."""
        if self._experiments is not None:
            self._experiments.send(parcels)
            return
        for kind in dict.fromkeys(parcel.kind for parcel in parcels):
            bodies = [parcel.body for parcel in parcels if parcel.kind == kind]
            self._write(f"/v1/{kind.replace(' ', '_')}s", bodies)

    def remarks(self) -> list[str]:
        return super().remarks() if self._experiments is None else self._experiments.remarks()

    @cached_property
    def _experiments(self) -> Experiments | None:
        return None if self.node.dataset is None else Experiments(self.api, self.node.dataset, self.node.experiment)

    def _write(self, path: str, bodies: list[dict[str, Any]]) -> None:
        while bodies:
            try:
                self.api.service.post(path, {"data": bodies}, _SYNC)
            except ServiceError as error:
                gone = _find_gone(error)
                rest = [body for body in bodies if _target_of(body) not in gone]
                if len(rest) == len(bodies):
                    raise
                self.gone.update(place for body in bodies if (place := _target_of(body)) in gone)
                bodies = rest
            else:
                return


def _find_gone(error: ServiceError) -> set[str]:
    """The ids of spans or traces that Phoenix says it does not have, or not with that document."""
    patterns = {404: _GONE, 422: _OUT_OF_BOUNDS}
    found = patterns[error.status].search(error.content) if error.status in patterns else None
    return set() if found is None else {one.strip() for one in found["ids"].decode("ascii").lower().split(",")}


def _target_of(body: Mapping[str, Any]) -> str:
    return str(body.get("span_id", body.get("trace_id"))).lower()


def _annotate(score: Score, judgements: Judgements, name: str) -> Parcel:
    assert score.link is not None, "only answers with a trace are listed"
    level = "trace" if score.link.span_id is None else "span"
    place = score.link.span_id or score.link.trace_id
    identifier = f"{OURS}:{name}/{score.dataset}/{score.system}"
    label, reason = judgements.label(score), judgements.explain(score)
    body = {
        f"{level}_id": place,
        "name": score.metric,
        "annotator_kind": "LLM" if judgements.is_judged(score.metric) else "CODE",
        "identifier": identifier,
        "result": _make_result(score.value, label, reason),
        "metadata": {"evaluation": name, "dataset": score.dataset, "system": score.system, "query_id": score.query_id},
    }
    summary = f"{judgements.summarize(score)} -> {level} {place}"
    return Parcel(f"{level}/{place}/{score.metric}/{identifier}", body, summary, f"{level} annotation")


def _list_documents(score: Score, names: Names) -> Iterator[Parcel]:
    """What a judge said about each context, such as whether it is relevant."""
    if score.link is None or RETRIEVER not in score.link.others:
        return
    for one in score.list_findings():
        if one["part"] == "contexts" and one["source"] is not None:
            result = _make_result(one["score"], one["verdict"], one["reason"])
            if any(part is not None for part in result.values()):
                span_id = score.link.others[RETRIEVER]
                name = names.choose(span_id, score, score.metric)
                yield _annotate_document(span_id, one["source"], name, result, "LLM")


def _list_relevance(score: Score, names: Names) -> Iterator[Parcel]:
    """The relevance of the contexts that the dataset judges."""
    ids, judged = score.sample.get("context_ids"), score.sample.get("relevant")
    if not ids or judged is None or score.link is None or RETRIEVER not in score.link.others:
        return
    span_id = score.link.others[RETRIEVER]
    name = names.choose(span_id, score, RELEVANCE)
    grades = {one["doc_id"]: one["relevance"] for one in judged}
    for position, doc_id in enumerate(ids):
        if doc_id in grades:
            label = "relevant" if grades[doc_id] > 0 else "not relevant"
            result = _make_result(grades[doc_id], label, f"document {doc_id} in the judgements of {score.dataset}")
            yield _annotate_document(span_id, position, name, result, "CODE")


def _annotate_document(span_id: str, position: int, name: str, result: dict[str, Any], kind: str) -> Parcel:
    place = {"span_id": span_id, "document_position": position}
    body = {**place, "name": name, "annotator_kind": kind, "result": result}
    said = result["label"] if result["score"] is None else f"{result['score']:.4g}"
    summary = f"{name} {said} -> document {position} of span {span_id}"
    return Parcel(f"document/{span_id}/{position}/{name}", body, summary, "document annotation")


def _make_result(score: float | None, label: str | None, explanation: str | None) -> dict[str, Any]:
    return {"score": score, "label": label, "explanation": explanation}


DIGEST = "rageval_spec.answers"
_CONFLICT = 409


class Experiments:
    """Lists and writes the experiments of one evaluation."""

    def __init__(self, phoenix: PhoenixServer, dataset: str, name: str | None) -> None:
        """Write nothing yet; `name` is the experiment's, None for the evaluation's."""
        self._phoenix = phoenix
        self._dataset = dataset
        self._dataset_id = ""
        self._name = name
        self._runs: dict[tuple[str, str], tuple[str, dict[str, str]]] = {}
        self._unknown = 0

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """One run for each answer to a question of the dataset, with its values."""
        by_id, by_text = self._read_examples()
        judgements = Judgements(evaluation)
        found: dict[tuple[str, str], dict[str, list[Score]]] = {}
        for scores in EvaluationScores(evaluation, None).answers():
            sample = scores[0].sample
            example = by_id.get(scores[0].query_id) or by_text.get(_normalize(sample["question"]))
            answers = found.setdefault((scores[0].dataset, scores[0].system), {})
            if example is None or example in answers:
                self._unknown += 1
                continue
            answers[example] = scores
        if not any(found.values()):
            raise UsageError(
                f"{self._phoenix.where}: no question of the evaluation is in the dataset {self._dataset!r}, "
                "neither by id nor by text"
            )
        for (dataset, system), answers in found.items():
            name = self._name or evaluation.name
            parts = [name, *([dataset] if len(evaluation.datasets) > 1 else ())]
            parts += [system] if len(evaluation.systems) > 1 else []
            said = [(example, one[0].sample["answer"], one[0].sample["error"]) for example, one in answers.items()]
            digest = hashlib.sha256(json.dumps(sorted(said, key=str)).encode()).hexdigest()[:32]
            for example, scores in answers.items():
                yield _make_run("/".join(parts), digest, example, scores, judgements)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Write runs with their values; the experiment is created with its first run."""
        for parcel in parcels:
            body = parcel.body
            experiment, runs = self._open(body["experiment"], body["digest"])
            example = body["example"]
            if example not in runs:
                runs[example] = self._write_run(experiment, body)
            for evaluation in body["evaluations"]:
                times = _make_times(0.0)
                content = {"experiment_run_id": runs[example], **times, **evaluation}
                self._phoenix.service.post("/v1/experiment_evaluations", content)

    def remarks(self) -> list[str]:
        """How many answers have no example in the dataset."""
        if not self._unknown:
            return []
        return [f"{count_noun(self._unknown, 'answer')} left out: the dataset {self._dataset} has no such example"]

    def _read_examples(self) -> tuple[dict[str, str], dict[str, str]]:
        """The ids of the examples that Phoenix uses, by the ids that people gave them and by the question."""
        self._dataset_id = self._phoenix.find_dataset(self._dataset)
        read = list(self._phoenix.read_examples(self._dataset, self._dataset_id))
        by_text = {_normalize(trace.question): trace.link.trace_id for trace in reversed(read)}
        return {trace.id: trace.link.trace_id for trace in read}, by_text

    def _open(self, name: str, digest: str) -> tuple[str, dict[str, str]]:
        """The id of the experiment with these answers, created if need be, and its runs by example."""
        if (name, digest) not in self._runs:
            path = f"/v1/datasets/{self._dataset_id}/experiments"
            known = self._phoenix.list_items(path, [("limit", "100")])
            named = (one for one in known if one.get("name") == name)
            found = next((one for one in named if read_object(one.get("metadata")).get(DIGEST) == digest), None)
            if found is None:
                content = {"name": name, "metadata": {DIGEST: digest}}
                created = self._phoenix.service.post(path, content, repeatable=False)
                self._runs[name, digest] = self._read_id(created, path), {}
            else:
                self._runs[name, digest] = str(found["id"]), self._list_runs(str(found["id"]))
        return self._runs[name, digest]

    def _list_runs(self, experiment: str) -> dict[str, str]:
        runs = self._phoenix.list_items(f"/v1/experiments/{experiment}/runs", [("limit", "100")])
        return {str(run.get("dataset_example_id")): str(run.get("id")) for run in runs if run.get("error") is None}

    def _write_run(self, experiment: str, body: Mapping[str, Any]) -> str:
        content = {
            "dataset_example_id": body["example"],
            "output": body["output"],
            "error": body["error"],
            "repetition_number": 1,
            **_make_times(body["seconds"]),
        }
        path = f"/v1/experiments/{experiment}/runs"
        try:
            return self._read_id(self._phoenix.service.post(path, content), path)
        except ServiceError as error:
            if error.status != _CONFLICT:
                raise
            # An earlier try wrote it, and its reply was lost.
            return self._list_runs(experiment)[body["example"]]

    def _read_id(self, content: Any, path: str) -> str:
        return str(self._phoenix.read(self._phoenix.read(content, "data", path, Mapping), "id", path, str))


def _normalize(question: str) -> str:
    return " ".join(question.split()).casefold()


def _make_run(name: str, digest: str, example: str, scores: Sequence[Score], judgements: Judgements) -> Parcel:
    sample = scores[0].sample
    contexts = sample.get("contexts")
    output = None if sample["answer"] is None else {"answer": sample["answer"]}
    if output is not None and contexts is not None:
        output |= {"contexts": list(contexts), "context_ids": list(sample.get("context_ids") or ())}
    evaluations = [_make_evaluation(score, judgements) for score in scores]
    body = {
        "experiment": name,
        "digest": digest,
        "example": example,
        "output": output,
        "error": sample["error"],
        "seconds": sample.get("seconds") or 0.0,
        "evaluations": evaluations,
    }
    values = ", ".join(f"{one.metric} {one.status if one.value is None else f'{one.value:.4g}'}" for one in scores)
    summary = f"{values} -> example {scores[0].query_id} of experiment {name}"
    return Parcel(f"{name}/{digest}/{example}", body, summary, "experiment run")


def _make_evaluation(score: Score, judgements: Judgements) -> dict[str, Any]:
    kind = "LLM" if judgements.is_judged(score.metric) else "CODE"
    shared = {"name": score.metric, "annotator_kind": kind}
    reason = judgements.explain(score)
    if score.status == "error":
        return {**shared, "error": reason or "the value could not be computed"}
    return {**shared, "result": {"score": score.value, "label": judgements.label(score), "explanation": reason}}


def _make_times(seconds: float) -> dict[str, str]:
    end = datetime.now(UTC)
    return {"start_time": format_moment(end - timedelta(seconds=seconds)), "end_time": format_moment(end)}
