"""Sends feedback and experiments to LangSmith."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from rageval_spec.endpoints.service import LIMITS, ServiceError
from rageval_spec.exchange.langsmith.api import Api
from rageval_spec.exchange.langsmith.connection import Paths
from rageval_spec.exchange.shared.identities import make_uuid
from rageval_spec.exchange.shared.payloads import write_time

_CONFLICT, _NOT_FOUND = 409, 404
_CHANGEABLE = ("score", "value", "comment")
_NOT_SENT = frozenset({"experiment", "seconds"})
Body = Mapping[str, Any]


class Sender:
    """The writing side of one workspace."""

    def __init__(self, paths: Paths, where: str, dataset: str | None) -> None:
        """Ask nothing yet. `dataset` is the one that an experiment is about."""
        self._paths = paths
        self._api = Api(paths, where)
        self._where = where
        self._dataset = dataset
        self._dataset_id: str | None = None
        self._sessions: dict[str, str] = {}
        self._sent = 0
        self.missing = 0

    def send(self, bodies: Sequence[Body]) -> None:
        """Send answers (those with a `run_type`), then feedback. `missing` counts feedback on runs that are gone.

        Raises:
            DataError: there is no such dataset.
            ServiceError: LangSmith did not take all of them.
        """
        for experiment in dict.fromkeys(body["experiment"] for body in bodies if "experiment" in body):
            self._open_experiment(experiment)
        answers = [body for body in bodies if "run_type" in body]
        if answers:
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
        self.missing += len(gone)
        if gone and not self._sent:
            # Not one run was there: the URL is wrong, or the key is of another workspace.
            raise gone[0]

    def close(self) -> None:
        """Close the connections."""
        self._paths.service.close()

    def _open_experiment(self, name: str) -> None:
        """Create the project that holds an experiment's runs, unless it is there."""
        if name in self._sessions:
            return
        if self._dataset_id is None:
            self._dataset_id = self._api.find_dataset(self._dataset or "")
        body = {
            "id": make_uuid("experiment", self._dataset_id, name),
            "name": name,
            "reference_dataset_id": self._dataset_id,
            "start_time": write_time(datetime.now(UTC)),
            "extra": {"metadata": {"source": "rageval-spec"}},
        }
        try:
            made = self._paths.service.call(
                "POST", f"{self._paths.older}/sessions", _dump(body), parameters=[("upsert", "true")]
            )
        except ServiceError as error:
            if error.status != _CONFLICT:
                raise
            made = {"id": self._api.find_project(name)}
        if not isinstance(made, Mapping) or not isinstance(made.get("id"), str):
            raise ServiceError(f"{self._where}: /sessions: the reply has no id of the experiment")
        self._sessions[name] = made["id"]

    def _send_answers(self, answers: Sequence[Body]) -> None:
        now = datetime.now(UTC)
        runs = [self._make_run(answer, now) for answer in answers]
        try:
            self._paths.service.post(f"{self._paths.older}/runs/batch", {"post": runs, "patch": []})
        except ServiceError as error:
            if error.status != _CONFLICT:  # they were sent before
                raise

    def _make_run(self, answer: Body, now: datetime) -> dict[str, Any]:
        kept = {key: value for key, value in answer.items() if key not in _NOT_SENT and value is not None}
        order = f"{now:%Y%m%dT%H%M%S%fZ}{answer['id']}"
        times = {"start_time": write_time(now), "end_time": write_time(now + timedelta(seconds=answer["seconds"] or 0))}
        place = {"trace_id": answer["id"], "dotted_order": order, "session_id": self._sessions[answer["experiment"]]}
        return {**kept, **times, **place}

    def _send_feedback(self, body: Body) -> None:
        """Send feedback, or change it if there is some under its id."""
        kept = {key: value for key, value in body.items() if key not in _NOT_SENT}
        if "experiment" in body:
            kept["session_id"] = self._sessions[body["experiment"]]
        service, path = self._paths.service, f"{self._paths.older}/feedback"
        try:
            service.post(path, kept)
        except ServiceError as error:
            if error.status != _CONFLICT:
                raise
            changed = {key: kept.get(key) for key in _CHANGEABLE}
            service.call("PATCH", f"{path}/{kept['id']}", _dump(changed))


def _dump(content: Any) -> bytes:
    import json

    return json.dumps(content, allow_nan=False).encode("ascii")
