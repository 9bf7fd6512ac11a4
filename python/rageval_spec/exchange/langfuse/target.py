"""Sends values to Langfuse: as scores of the traces that answers were read from, or as a run of a dataset.

Scores and the answers of runs are sent in the forms that the versions of Langfuse take.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from rageval_spec.data.traces import unwrap
from rageval_spec.errors import DataError
from rageval_spec.exchange.langfuse.connection import LangfuseApi, LangfuseConnection, find_url
from rageval_spec.exchange.shared.contracts import Parcel
from rageval_spec.exchange.shared.delivery import make_hex
from rageval_spec.exchange.shared.scores import ExperimentNode, ExperimentTarget, Judgements, Names, Score
from rageval_spec.recorded.values import write_time
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from pathlib import Path

    from rageval_spec.endpoints.service import Service


TOOL = "langfuse"
RESULTS_FILE = "results.json"
LONGEST_COMMENT = 20_000
"""The most characters of a reason that are sent; a request to Langfuse may have 1 MiB."""


class LangfuseTargetNode(LangfuseConnection, ExperimentNode):
    """Where to send values in Langfuse."""

    dataset: str | None = Field(
        default=None,
        description="Send the answers with their values as a run of this dataset, whose items have the ids of the "
        "questions. Default: send the values as scores of the traces that the answers were read from.",
    )
    run: str | None = Field(
        default=None, description="The name of the run; with several systems, its beginning. Default: the spec's name."
    )


class LangfuseTarget(ExperimentTarget[LangfuseTargetNode]):
    """Scores of traces, and runs of datasets (experiments)."""

    node_type = LangfuseTargetNode
    summary = "Send values to Langfuse, as scores of the traces that the answers came from, or as a run of a dataset."
    examples = (
        "export langfuse",
        "export langfuse rageval-results --dry-run",
        "export langfuse --dataset golden --run v2",
    )
    batch = 50
    tool = TOOL

    @property
    def url(self) -> str:
        """The URL of the node, of the environment, or of Langfuse's cloud."""
        return find_url(self.node)

    def open_sender(self) -> LangfuseSender:
        """The writing side, in requests of at most 1 MiB."""
        from rageval_spec.exchange.langfuse.connection import connect

        return LangfuseSender(connect(self.node, TOOL), TOOL, self.node.dataset, _read_time(self.context.output))

    def remarks(self) -> Sequence[str]:
        """Also how many answers are to questions that the dataset does not have."""
        found = list(super().remarks())
        if self.sender is not None and self.sender.foreign:
            gone = count_noun(len(self.sender.foreign), "answer")
            found.append(f"{gone} to questions that are no items of the dataset '{self.node.dataset}' left out")
        return found

    def make_answer(self, score: Score, run: str) -> Parcel:
        """An item of the run of a dataset."""
        from rageval_spec.recorded.values import clean

        sample = score.sample
        body = {
            "traceId": _trace_of_run(self.node.dataset or "", run, score.query_id),
            "item": score.query_id,
            "run": run,
            "input": {"question": sample["question"]},
            "output": _list_output(sample),
            "expected": list(sample["references"] or ()),
            "error": sample["error"],
            "seconds": sample["seconds"],
            "usage": {"input": sample["input_tokens"], "output": sample["output_tokens"]},
            "cost": sample["cost"],
        }
        key = f"answer/{self.node.dataset}/{run}/{score.query_id}"
        return Parcel(key, clean(body), f"answer -> item {score.query_id} of the run '{run}'", "answer")

    def make_value(self, score: Score, judgements: Judgements, names: Names, run: str | None) -> Parcel:
        """A numeric score."""

        link = score.link
        if run is None:
            assert link is not None, "only answers with a trace are listed"
            trace_id, span_id, others = link.trace_id, link.span_id, link.others
            where = f"trace {trace_id}"
        else:
            trace_id, span_id, others = _trace_of_run(self.node.dataset or "", run, score.query_id), None, {}
            where = f"item {score.query_id} of the run '{run}'"
        label = judgements.label(score)
        told = {"label": label, "system": score.system, "dataset": score.dataset, "query_id": score.query_id}
        name = names.choose(f"{trace_id}/{span_id or ''}", score, score.metric)
        identity = make_hex(trace_id, span_id or "", name)
        body = {
            "id": identity,
            "traceId": trace_id,
            "observationId": span_id,
            "name": name,
            "value": score.value,
            "dataType": "NUMERIC",
            "comment": _shorten(judgements.explain(score)),
            "metadata": {"source": "rageval-spec", **{key: value for key, value in told.items() if value is not None}},
            "environment": others.get("environment"),
            # Langfuse replaces a score only if both its id and its time are the same.
            "timestamp": others.get("started"),
        }
        body["item"] = None if run is None else score.query_id
        known = {key: value for key, value in body.items() if value is not None}
        summary = f"{name} {score.value:.2f}{f' ({label})' if label else ''} -> {where}"
        return Parcel(identity, known, summary, "score")


def _read_time(folder: Path | None) -> datetime:
    """When the results in a folder were written, so that a run that is sent again has the same time; else now."""
    from datetime import UTC, datetime

    with suppress(OSError):
        if folder is not None:
            return datetime.fromtimestamp((folder / RESULTS_FILE).stat().st_mtime, UTC)
    return datetime.now(UTC)


def _trace_of_run(dataset: str, run: str, item: str) -> str:

    return make_hex("langfuse", dataset, run, item)


def _shorten(reason: str | None) -> str | None:
    if reason is None or len(reason) <= LONGEST_COMMENT:
        return reason or None
    return f"{reason[: LONGEST_COMMENT - 3]}..."


def _list_output(sample: Any) -> dict[str, Any]:
    texts, ids = sample["contexts"] or (), sample["context_ids"] or ()
    named = len(ids) == len(texts)
    contexts = [{"id": ids[place], "text": text} if named else {"text": text} for place, text in enumerate(texts)]
    return {"answer": sample["answer"], **({"contexts": contexts} if contexts else {})}


MOST_BYTES = 900_000
"""The most bytes of a request; Langfuse refuses those of more than 1 MiB."""
_ABSENT = frozenset({404, 405, 501})
T = TypeVar("T")
Body = Mapping[str, Any]


class LangfuseSender:
    """The writing side of one project: of version 3 and before one by one, of later versions in batches."""

    def __init__(self, service: Service, where: str, dataset: str | None, time: datetime) -> None:
        """Ask nothing yet. `dataset` is the one whose run is sent, and `time` that of its answers.

        Langfuse replaces an answer only if it is sent again with a time of the same day.
        """
        self._service = service
        self._where = where
        self._dataset = dataset
        self._time = time
        self._dataset_id: str | None = None
        self._is_old: bool | None = None
        self._items: set[str] = set()
        self.foreign: set[str] = set()
        self._has_sent = False

    def send(self, bodies: Sequence[Body]) -> None:
        """Send answers (those with a `run`), then scores. `foreign` has questions that are no items of the dataset.

        Raises:
            DataError: there is no such dataset.
            ServiceError: Langfuse did not take all of them.
        """
        if self._dataset is not None and self._dataset_id is None:
            self._read_dataset(self._dataset)
        bodies = self._drop_foreign(bodies)
        answers = [body for body in bodies if "run" in body]
        if self._is_old is None:
            self._is_old = self._is_version_3()
        for part in _split(answers):
            self._send_old_answers(part) if self._is_old else self._send_answers(part)
        scores = [{key: value for key, value in body.items() if key != "item"} for body in bodies if "run" not in body]
        if self._is_old:
            self._send_each(
                "/scores", [{key: value for key, value in one.items() if key != "timestamp"} for one in scores]
            )
        else:
            for part in _split(scores):
                self._check(self._service.post("/scores", part), len(part))

    def close(self) -> None:
        """Close the connections."""
        self._service.close()

    def _read_dataset(self, dataset: str) -> None:
        api = LangfuseApi(self._service, self._where)
        self._dataset_id = str(api.check_dataset(dataset).get("id", ""))
        self._items = {
            str(row.get("id")) for page in api.dataset_items(dataset) for row in page if isinstance(row, dict)
        }

    def _drop_foreign(self, bodies: Sequence[Body]) -> list[Body]:
        """The bodies without those of questions that are no items of the dataset.

        Raises:
            DataError: not one question is an item.
        """
        if self._dataset is None:
            return list(bodies)
        kept = [body for body in bodies if body["item"] in self._items]
        self.foreign |= {body["item"] for body in bodies} - self._items
        if not kept and not self._has_sent:
            example = next(iter(sorted(self.foreign)), "")
            raise DataError(
                f"{self._where}: the question '{example}' is not an item of the dataset '{self._dataset}'; read the "
                f"questions from there: datasets: {{golden: {{use: langfuse, dataset: {self._dataset}}}}}"
            )
        self._has_sent = True
        return kept

    def _is_version_3(self) -> bool:
        """Whether Langfuse lacks the endpoint that came together with scores in batches."""
        from rageval_spec.endpoints.service import ServiceError

        try:
            self._service.get("/v3/scores", [("limit", "1")])
        except ServiceError as error:
            if error.status in _ABSENT:
                return True
            raise
        return False

    def _send_each(self, path: str, bodies: Sequence[Body]) -> None:
        """Send bodies one by one, some at the same time."""
        _call_each(lambda body: self._service.post(path, body), bodies)

    def _check(self, reply: Any, count: int) -> None:
        """Langfuse answers 207 with counts if it refused a part of a batch."""
        from rageval_spec.endpoints.service import ServiceError

        rejected = reply.get("rejected") if isinstance(reply, Mapping) else None
        if isinstance(rejected, int) and rejected > 0:
            errors = reply.get("errors")
            first = errors[0] if isinstance(errors, list) and errors else {}
            why = first.get("message", "") if isinstance(first, Mapping) else ""
            raise ServiceError(f"{self._where}: Langfuse refused {rejected} of {count} scores: {str(why)[:300]}")

    def _send_answers(self, answers: Sequence[Body]) -> None:
        """Send answers as spans of an experiment, as the SDK's `run_experiment` does."""
        spans = [span for answer in answers for span in _make_spans(answer, self._dataset_id or "", self._time)]
        scope = {"scope": {"name": "rageval-spec"}, "spans": spans}
        content = json.dumps({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]})
        self._service.call("POST", "/otel/v1/traces", content.encode("ascii"))

    def _send_old_answers(self, answers: Sequence[Body]) -> None:
        """Send answers as traces, and link them to the items of the dataset."""
        from rageval_spec.endpoints.service import ServiceError

        batch = [_make_event(answer, str(write_time(self._time))) for answer in answers]
        reply = self._service.post("/ingestion", {"batch": batch})
        errors = reply.get("errors") if isinstance(reply, Mapping) else None
        if errors:
            raise ServiceError(
                f"{self._where}: Langfuse refused {len(errors)} of {len(batch)} traces: {str(errors[0])[:300]}"
            )
        links = [{"runName": one["run"], "datasetItemId": one["item"], "traceId": one["traceId"]} for one in answers]
        self._send_each("/dataset-run-items", links)


def _split(bodies: Sequence[Body]) -> Iterator[list[Body]]:
    """Parts whose JSON is no larger than a request may be; a larger body is a part of its own."""
    part: list[Body] = []
    size = 0
    for body in bodies:
        length = len(json.dumps(body))
        if part and size + length > MOST_BYTES:
            yield part
            part, size = [], 0
        part.append(body)
        size += length
    if part:
        yield part


def _call_each(call: Callable[[T], object], bodies: Sequence[T]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from rageval_spec.endpoints.service import LIMITS

    with ThreadPoolExecutor(LIMITS.concurrency) as pool:
        for future in [pool.submit(call, body) for body in bodies]:
            future.result()


def _make_event(answer: Body, time: str) -> dict[str, Any]:
    about = {"run": answer["run"], "item": answer["item"], "error": answer["error"]}
    trace = {
        "id": answer["traceId"],
        "name": "rageval-spec",
        "timestamp": time,
        "input": answer["input"],
        "output": answer["output"],
        "metadata": {key: value for key, value in about.items() if value is not None},
    }
    now = str(write_time(datetime.now(UTC)))  # an event with a known id, or an earlier one, would be ignored
    return {"id": make_hex(answer["traceId"], now), "type": "trace-create", "timestamp": now, "body": trace}


def _make_spans(answer: Body, dataset_id: str, time: datetime) -> Iterator[dict[str, Any]]:
    """The two spans that the SDK makes for an item: the item's run, and in it the task."""
    trace_id = answer["traceId"]
    root, task = make_hex(trace_id, "root", digits=16), make_hex(trace_id, "task", digits=16)
    shared = {
        "langfuse.environment": "sdk-experiment",
        "langfuse.experiment.id": make_hex("langfuse run", dataset_id, answer["run"]),
        "langfuse.experiment.name": answer["run"],
        "langfuse.experiment.dataset.id": dataset_id,
        "langfuse.experiment.item.id": answer["item"],
        "langfuse.experiment.item.expected_output": _write(unwrap(answer["expected"])),
        "langfuse.experiment.item.root_observation_id": task,
        "langfuse.observation.input": _write(answer["input"]),
        "langfuse.observation.output": _write(answer["output"]),
    }
    if answer["error"]:
        shared |= {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": answer["error"]}
    usage = {name: count for name, count in answer["usage"].items() if count is not None}
    own = {"langfuse.observation.type": "span", "langfuse.observation.usage_details": _write(usage) if usage else None}
    if answer["cost"] is not None:
        own["langfuse.observation.cost_details"] = _write({"total": answer["cost"]})
    times = time, time + timedelta(seconds=answer["seconds"] or 0)
    yield _make_span(trace_id, root, "", "experiment-item-run", times, {**shared, "langfuse.observation.type": "span"})
    yield _make_span(trace_id, task, root, "experiment-item-task", times, {**shared, **own})


def _make_span(
    trace_id: str, span_id: str, parent: str, name: str, times: tuple[datetime, datetime], attributes: Body
) -> dict[str, Any]:
    start, end = (str(int(time.timestamp() * 1_000_000) * 1000) for time in times)
    known = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items() if value is not None]
    return {
        "traceId": trace_id,
        "spanId": span_id,
        **({"parentSpanId": parent} if parent else {}),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": start,
        "endTimeUnixNano": end,
        "attributes": known,
        "status": {},
    }


def _write(found: Any) -> str | None:
    return found if isinstance(found, str) or found is None else json.dumps(found, ensure_ascii=False)
