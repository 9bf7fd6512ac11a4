"""Sends values to LangSmith, as feedback on runs or as an experiment on a dataset.

The runs are those that answers were read from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import Field

from rageval_spec.endpoints.service import LIMITS, ServiceError
from rageval_spec.errors import UsageError
from rageval_spec.exchange.langsmith.source import TOOL, LangSmithApi, LangSmithConnection
from rageval_spec.exchange.shared.contracts import Parcel
from rageval_spec.exchange.shared.delivery import make_uuid
from rageval_spec.exchange.shared.scores import (
    ExperimentNode,
    ExperimentTarget,
    Judgements,
    Names,
    Score,
    drop_unknown,
    shorten_reason,
)
from rageval_spec.recorded.values import clean, write_time
from rageval_spec.wording import count_noun

DIGITS = 4
"""The decimal places that LangSmith stores of a score; it refuses more."""
_CONFLICT, _NOT_FOUND = 409, 404
_CHANGEABLE = ("score", "value", "comment")
Body = Mapping[str, Any]


class LangSmithTargetNode(LangSmithConnection, ExperimentNode):
    dataset: str | None = Field(
        default=None,
        description="Send the answers with their values as an experiment on this dataset, whose examples have the "
        "ids of the questions. Default: send the values as feedback on the runs that the answers were read from.",
    )
    run: str | None = Field(
        default=None,
        description="The name of the experiment; with several systems, its beginning. Default: the spec's name.",
    )


class LangSmithTarget(ExperimentTarget[LangSmithTargetNode]):
    node_type = LangSmithTargetNode
    summary = "Send values to LangSmith, as feedback on the runs that the answers came from, or as an experiment."
    examples = (
        "export langsmith",
        "export langsmith rageval-results --dry-run",
        "export langsmith --dataset golden --run v2",
    )
    batch = 20
    tool = TOOL
    api: LangSmithApi
    api_type = LangSmithApi

    def __init__(self, node: LangSmithTargetNode, context: Any) -> None:
        super().__init__(node, context)
        self._dataset_id: str | None = None
        self._sessions: dict[str, str] = {}
        """The id of each experiment."""
        self._sent = self._missing = 0

    def remarks(self) -> list[str]:
        found = super().remarks()
        if self._missing:
            found.append(f"{count_noun(self._missing, 'feedback row')} on runs that LangSmith no longer has left out")
        return found

    def make_answer(self, score: Score, run: str) -> Parcel:
        """A run of the experiment."""
        sample, texts = score.sample, score.sample["contexts"]
        _check_example(score.query_id, self.node.dataset or "")
        outputs = {"answer": sample["answer"], **({"contexts": texts} if texts else {})}
        body = {
            "id": self._run_of(run, score.query_id),
            "experiment": run,
            "name": score.system,
            "run_type": "chain",
            "inputs": {"question": sample["question"]},
            "outputs": outputs if sample["answer"] is not None else None,
            "error": sample["error"],
            "reference_example_id": score.query_id,
            "seconds": sample["seconds"],
        }
        return Parcel(f"answer/{body['id']}", clean(body), f"answer -> example {score.query_id} in '{run}'", "answer")

    def make_value(self, score: Score, judgements: Judgements, names: Names, run: str | None) -> Parcel:
        """A row of feedback."""
        link, session = score.link, None
        if run is None:
            assert link is not None, "only answers with a trace are listed"
            run_id, trace_id, session = link.span_id or link.trace_id, link.trace_id, link.others.get("session_id")
            where = f"run {trace_id}"
        else:
            run_id = trace_id = self._run_of(run, score.query_id)
            where = f"example {score.query_id} in '{run}'"
        name = names.choose(run_id, score, score.metric)
        told = {"system": score.system, "dataset": score.dataset, "query_id": score.query_id}
        identity = make_uuid("feedback", run_id, name)
        body = {
            "id": identity,
            "run_id": run_id,
            "trace_id": trace_id,
            "key": name,
            "score": round(score.value or 0.0, DIGITS),
            "value": judgements.label(score),
            "comment": shorten_reason(judgements.explain(score)),
            "session_id": session,
            "experiment": run,
            "feedback_source": {
                "type": "model" if judgements.is_judged(score.metric) else "api",
                "metadata": {"source": "rageval-spec", **told},
            },
        }
        summary = f"{judgements.summarize(score, name, '.2f')} -> {where}"
        return Parcel(identity, drop_unknown(body), summary, "feedback row")

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Send answers (those with a `run_type`), then feedback; that on runs that are gone is left out and counted."""
        bodies = [parcel.body for parcel in parcels]
        for experiment in dict.fromkeys(body["experiment"] for body in bodies if "experiment" in body):
            self._open_experiment(experiment)
        if answers := [body for body in bodies if "run_type" in body]:
            self._send_answers(answers)
        feedback = [body for body in bodies if "run_type" not in body]
        gone: list[ServiceError] = []
        with ThreadPoolExecutor(LIMITS.concurrency) as pool:
            for future in [pool.submit(self._send_feedback, body) for body in feedback]:
                try:
                    future.result()
                    self._sent += 1
                except ServiceError as error:
                    if error.status != _NOT_FOUND:
                        raise
                    gone.append(error)
        self._missing += len(gone)
        if gone and not self._sent:
            # Not one run was there: the URL is wrong, or the key is of another workspace.
            raise gone[0]

    def _run_of(self, experiment: str, example: str) -> str:
        return make_uuid("run", self.node.dataset or "", experiment, example)

    def _open_experiment(self, name: str) -> None:
        """Create the project that holds an experiment's runs, unless it is there."""
        if name in self._sessions:
            return
        if self._dataset_id is None:
            self._dataset_id = self.api.find_dataset(self.node.dataset or "")
        body = {
            "id": make_uuid("experiment", self._dataset_id, name),
            "name": name,
            "reference_dataset_id": self._dataset_id,
            "start_time": write_time(datetime.now(UTC)),
            "extra": {"metadata": {"source": "rageval-spec"}},
        }
        try:
            made = self.api.service.post(f"{self.api.older}/sessions", body, [("upsert", "true")])
        except ServiceError as error:
            if error.status != _CONFLICT:
                raise
            made = {"id": self.api.find_project(name)}
        self._sessions[name] = self.api.read(made, "id", "/sessions", str)

    def _send_answers(self, answers: Sequence[Body]) -> None:
        now = datetime.now(UTC)
        runs = [self._make_run(answer, now) for answer in answers]
        try:
            self.api.service.post(f"{self.api.older}/runs/batch", {"post": runs, "patch": []})
        except ServiceError as error:
            if error.status != _CONFLICT:  # they were sent before
                raise

    def _make_run(self, answer: Body, now: datetime) -> dict[str, Any]:
        order = f"{now:%Y%m%dT%H%M%S%fZ}{answer['id']}"
        times = {"start_time": write_time(now), "end_time": write_time(now + timedelta(seconds=answer["seconds"] or 0))}
        place = {"trace_id": answer["id"], "dotted_order": order, "session_id": self._sessions[answer["experiment"]]}
        return {**drop_unknown(_list_sent(answer)), **times, **place}

    def _send_feedback(self, body: Body) -> None:
        """Send feedback, or change it if there is some under its id."""
        kept = _list_sent(body)
        if "experiment" in body:
            kept["session_id"] = self._sessions[body["experiment"]]
        path = f"{self.api.older}/feedback"
        try:
            self.api.service.post(path, kept)
        except ServiceError as error:
            if error.status != _CONFLICT:
                raise
            changed = json.dumps({key: kept.get(key) for key in _CHANGEABLE}, allow_nan=False)
            self.api.service.call("PATCH", f"{path}/{kept['id']}", changed.encode("ascii"))


def _check_example(query_id: str, dataset: str) -> None:
    try:
        UUID(query_id)
    except ValueError:
        raise UsageError(
            f"the question '{query_id}' has no id of an example of LangSmith; read the questions from there: "
            f"datasets: {{golden: {{use: langsmith, dataset: {dataset}}}}}"
        ) from None


def _list_sent(body: Body) -> dict[str, Any]:
    """What LangSmith gets of a parcel's body."""
    return {key: value for key, value in body.items() if key not in ("experiment", "seconds")}
