"""Sends scores and the answers of dataset runs in the forms that the versions of Langfuse take."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from rageval_spec.endpoints.service import LIMITS, Service, ServiceError
from rageval_spec.errors import DataError
from rageval_spec.exchange.langfuse.api import Api
from rageval_spec.exchange.shared.identities import make_hex
from rageval_spec.exchange.shared.payloads import write_time

MOST_BYTES = 900_000
"""The most bytes of a request; Langfuse refuses those of more than 1 MiB."""
_ABSENT = frozenset({404, 405, 501})
T = TypeVar("T")
Body = Mapping[str, Any]


class Sender:
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
        api = Api(self._service, self._where)
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
                f"{self._where}: the question '{example}' is no item of the dataset '{self._dataset}'; read the "
                f"questions from there: datasets: {{golden: {{use: langfuse, dataset: {self._dataset}}}}}"
            )
        self._has_sent = True
        return kept

    def _is_version_3(self) -> bool:
        """Whether Langfuse lacks the endpoint that came together with scores in batches."""
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
        "langfuse.experiment.item.expected_output": _write(_unwrap(answer["expected"])),
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


def _unwrap(texts: Sequence[str]) -> Any:
    return None if not texts else texts[0] if len(texts) == 1 else list(texts)


def _write(found: Any) -> str | None:
    return found if isinstance(found, str) or found is None else json.dumps(found, ensure_ascii=False)
