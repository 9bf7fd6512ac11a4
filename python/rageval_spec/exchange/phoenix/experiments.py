"""Answers and their values as experiments on one of Phoenix's datasets: one experiment a system, one run an answer.

An experiment carries a digest of the answers. Other answers make another experiment; the values of the same answers
replace those that were written before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import UsageError
from rageval_spec.exchange.phoenix.examples import read_example
from rageval_spec.exchange.shared.judgements import Judgements
from rageval_spec.exchange.shared.scores import Score, Scores
from rageval_spec.exchange.shared.target import Parcel
from rageval_spec.exchange.shared.windows import format_moment
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.trace import Trace
    from rageval_spec.exchange.phoenix.server import Phoenix

DIGEST = "rageval_spec.answers"
_CONFLICT = 409


class Experiments:
    """Lists and writes the experiments of one evaluation."""

    def __init__(self, phoenix: Phoenix, dataset: str, name: str | None) -> None:
        """Write nothing yet; `name` is the experiment's, None for the evaluation's."""
        self._phoenix = phoenix
        self._dataset = dataset
        self._name = name
        self._dataset_id = ""
        self._runs: dict[tuple[str, str], tuple[str, dict[str, str]]] = {}
        self._unknown = 0

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """One run for each answer to a question of the dataset, with its values.

        Raises:
            UsageError: there is no such dataset, or none of its examples is a question of the evaluation.
            ServiceError: Phoenix cannot be asked.
        """
        by_id, by_text = self._read_examples()
        judgements = Judgements(evaluation)
        found: dict[tuple[str, str], dict[str, list[Score]]] = {}
        for scores in _group(Scores(evaluation, None)):
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
            digest = _digest(answers)
            for example, scores in answers.items():
                yield _make_run("/".join(parts), digest, example, scores, judgements)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Write runs with their values; the experiment is created with its first run.

        Raises:
            ServiceError: Phoenix refused them, or cannot be asked.
        """
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
        path = f"/v1/datasets/{self._dataset_id}/examples"
        content = self._phoenix.service.get(path)
        data = content.get("data") if isinstance(content, Mapping) else None
        examples = data.get("examples") if isinstance(data, Mapping) else None
        if not isinstance(examples, list):
            raise ServiceError(f"{self._phoenix.where}: {path} answered without the list 'examples'")
        place = f"{self._phoenix.where}: dataset {self._dataset}"
        read: list[Trace] = [read_example(one, "", "", place) for one in examples]
        by_text = {_normalize(trace.question): trace.link.trace_id for trace in reversed(read)}
        return {trace.id: trace.link.trace_id for trace in read}, by_text

    def _open(self, name: str, digest: str) -> tuple[str, dict[str, str]]:
        """The id of the experiment with these answers, created if need be, and its runs by example."""
        if (name, digest) not in self._runs:
            path = f"/v1/datasets/{self._dataset_id}/experiments"
            known = self._phoenix.list_items(path, [("limit", "100")])
            found = next((one for one in known if _is_ours(one, name, digest)), None)
            if found is None:
                content = {"name": name, "metadata": {DIGEST: digest}}
                created = self._read_data(self._phoenix.service.post(path, content, repeatable=False), path)
                self._runs[name, digest] = str(created["id"]), {}
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
            return str(self._read_data(self._phoenix.service.post(path, content), path)["id"])
        except ServiceError as error:
            if error.status != _CONFLICT:
                raise
            # An earlier try wrote it, and its reply was lost.
            return self._list_runs(experiment)[body["example"]]

    def _read_data(self, content: Any, path: str) -> Mapping[str, Any]:
        data = content.get("data") if isinstance(content, Mapping) else None
        if not isinstance(data, Mapping) or not isinstance(data.get("id"), str):
            raise ServiceError(f"{self._phoenix.where}: {path} answered without an id")
        return data


def _is_ours(experiment: Mapping[str, Any], name: str, digest: str) -> bool:
    metadata = experiment.get("metadata")
    return experiment.get("name") == name and isinstance(metadata, Mapping) and metadata.get(DIGEST) == digest


def _group(scores: Scores) -> Iterator[list[Score]]:
    """The values of each answer."""
    group: list[Score] = []
    for score in scores:
        if group and (score.dataset, score.system, score.query_id) != _answer_of(group[0]):
            yield group
            group = []
        group.append(score)
    if group:
        yield group


def _answer_of(score: Score) -> tuple[str, str, str]:
    return score.dataset, score.system, score.query_id


def _normalize(question: str) -> str:
    return " ".join(question.split()).casefold()


def _digest(answers: Mapping[str, Sequence[Score]]) -> str:
    said = [(example, scores[0].sample["answer"], scores[0].sample["error"]) for example, scores in answers.items()]
    return hashlib.sha256(json.dumps(sorted(said, key=str)).encode()).hexdigest()[:32]


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
    values = ", ".join(
        f"{one.metric} {one.status if one.value is None else format(one.value, '.4g')}" for one in scores
    )
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
