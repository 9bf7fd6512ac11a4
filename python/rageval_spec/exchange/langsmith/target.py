"""Sends values to LangSmith, as feedback on runs or as an experiment on a dataset.

The runs are those that answers were read from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import Field

from rageval_spec.errors import UsageError
from rageval_spec.exchange.langsmith.connection import LangSmithApi, LangSmithConnection, Paths, find_url
from rageval_spec.exchange.shared.contracts import Parcel
from rageval_spec.exchange.shared.delivery import make_uuid
from rageval_spec.exchange.shared.scores import ExperimentNode, ExperimentTarget, Judgements, Names, Score
from rageval_spec.recorded.values import write_time
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.endpoints.service import ServiceError


TOOL = "langsmith"
DIGITS = 4
"""The decimal places that LangSmith stores of a score; it refuses more."""
LONGEST_COMMENT = 20_000


class LangSmithTargetNode(LangSmithConnection, ExperimentNode):
    """Where to send values in LangSmith."""

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
    """Feedback on runs, and experiments on datasets."""

    node_type = LangSmithTargetNode
    summary = "Send values to LangSmith, as feedback on the runs that the answers came from, or as an experiment."
    examples = (
        "export langsmith",
        "export langsmith rageval-results --dry-run",
        "export langsmith --dataset golden --run v2",
    )
    batch = 20
    tool = TOOL

    @property
    def url(self) -> str:
        """The URL of the node, of the environment, or of LangSmith's cloud."""
        return find_url(self.node)

    def open_sender(self) -> LangSmithSender:
        """The writing side."""
        from rageval_spec.exchange.langsmith.connection import connect

        return LangSmithSender(connect(self.node, TOOL), TOOL, self.node.dataset)

    def remarks(self) -> Sequence[str]:
        """Also how much feedback is on runs that are gone."""
        found = list(super().remarks())
        if self.sender is not None and self.sender.missing:
            rows = count_noun(self.sender.missing, "feedback row")
            found.append(f"{rows} on runs that LangSmith no longer has left out")
        return found

    def make_answer(self, score: Score, run: str) -> Parcel:
        """A run of the experiment.

        Raises:
            UsageError: the question's id is not the id of an example.
        """
        from rageval_spec.recorded.values import clean

        sample, texts = score.sample, score.sample["contexts"]
        _check_example(score.query_id, self.node.dataset or "")
        outputs = {"answer": sample["answer"], **({"contexts": texts} if texts else {})}
        body = {
            "id": _run_of(self.node.dataset or "", run, score.query_id),
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

        link = score.link
        if run is None:
            assert link is not None, "only answers with a trace are listed"
            run_id, session, where = (
                link.span_id or link.trace_id,
                link.others.get("session_id"),
                f"run {link.trace_id}",
            )
            trace_id = link.trace_id
        else:
            run_id = trace_id = _run_of(self.node.dataset or "", run, score.query_id)
            session, where = None, f"example {score.query_id} in '{run}'"
        name = names.choose(run_id, score, score.metric)
        label = judgements.label(score)
        told = {"system": score.system, "dataset": score.dataset, "query_id": score.query_id}
        body = {
            "id": make_uuid("feedback", run_id, name),
            "run_id": run_id,
            "trace_id": trace_id,
            "key": name,
            "score": round(score.value or 0.0, DIGITS),
            "value": label,
            "comment": _shorten(judgements.explain(score)),
            "session_id": session,
            "experiment": run,
            "feedback_source": {
                "type": "model" if judgements.is_judged(score.metric) else "api",
                "metadata": {"source": "rageval-spec", **told},
            },
        }
        known = {key: value for key, value in body.items() if value is not None}
        summary = f"{name} {score.value:.2f}{f' ({label})' if label else ''} -> {where}"
        return Parcel(str(body["id"]), known, summary, "feedback row")


def _run_of(dataset: str, experiment: str, example: str) -> str:

    return make_uuid("run", dataset, experiment, example)


def _check_example(query_id: str, dataset: str) -> None:
    try:
        UUID(query_id)
    except ValueError:
        raise UsageError(
            f"the question '{query_id}' has no id of an example of LangSmith; read the questions from there: "
            f"datasets: {{golden: {{use: langsmith, dataset: {dataset}}}}}"
        ) from None


def _shorten(reason: str | None) -> str | None:
    if reason is None or len(reason) <= LONGEST_COMMENT:
        return reason
    return f"{reason[: LONGEST_COMMENT - 3]}..."


_CONFLICT, _NOT_FOUND = 409, 404
_CHANGEABLE = ("score", "value", "comment")
_NOT_SENT = frozenset({"experiment", "seconds"})
Body = Mapping[str, Any]


class LangSmithSender:
    """The writing side of one workspace."""

    def __init__(self, paths: Paths, where: str, dataset: str | None) -> None:
        """Ask nothing yet. `dataset` is the one that an experiment is about."""
        self._paths = paths
        self._api = LangSmithApi(paths, where)
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
        from concurrent.futures import ThreadPoolExecutor

        from rageval_spec.endpoints.service import LIMITS, ServiceError

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
        from rageval_spec.endpoints.service import ServiceError

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
        from rageval_spec.endpoints.service import ServiceError

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
        from rageval_spec.endpoints.service import ServiceError

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
