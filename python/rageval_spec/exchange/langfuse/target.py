"""Sends values to Langfuse: as scores of the traces that answers were read from, or as a run of a dataset.

Scores and the answers of runs are sent in the forms that the versions of Langfuse take.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from pydantic import Field

from rageval_spec.data.traces import unwrap
from rageval_spec.errors import DataError
from rageval_spec.exchange.langfuse.source import TOOL, LangfuseApi, LangfuseConnection
from rageval_spec.exchange.shared.connections import ABSENT
from rageval_spec.exchange.shared.contracts import PARTLY, Parcel
from rageval_spec.exchange.shared.delivery import make_hex
from rageval_spec.exchange.shared.scores import (
    ExperimentNode,
    ExperimentTarget,
    Judgements,
    Names,
    Score,
    drop_unknown,
    list_contexts,
    shorten_reason,
)
from rageval_spec.recorded.values import clean, write_time
from rageval_spec.wording import count_noun

RESULTS_FILE = "results.json"
Body = Mapping[str, Any]


class LangfuseTargetNode(LangfuseConnection, ExperimentNode):
    dataset: str | None = Field(
        default=None,
        description="Send the answers with their values as a run of this dataset, whose items have the ids of the "
        "questions. Default: send the values as scores of the traces that the answers were read from.",
    )
    run: str | None = Field(
        default=None, description="The name of the run; with several systems, its beginning. Default: the spec's name."
    )


class LangfuseTarget(ExperimentTarget[LangfuseTargetNode]):
    """Scores of traces, and runs of datasets: of version 3 and before one by one, of later versions in batches."""

    node_type = LangfuseTargetNode
    summary = "Send values to Langfuse, as scores of the traces that the answers came from, or as a run of a dataset."
    examples = (
        "export langfuse",
        "export langfuse rageval-results --dry-run",
        "export langfuse --dataset golden --run v2",
    )
    batch = 50
    tool = TOOL
    otel_prefix = ""
    api: LangfuseApi
    api_type = LangfuseApi

    def __init__(self, node: LangfuseTargetNode, context: Any) -> None:
        super().__init__(node, context)
        self._dataset_id: str | None = None
        self._items: set[str] = set()
        self._foreign: set[str] = set()
        """Questions that are no items of the dataset."""
        self._has_sent = False

    def remarks(self) -> list[str]:
        found = super().remarks()
        if self._foreign:
            gone = count_noun(len(self._foreign), "answer")
            found.append(f"{gone} to questions that are no items of the dataset '{self.node.dataset}' left out")
        return found

    def make_answer(self, score: Score, run: str) -> Parcel:
        sample, contexts = score.sample, list_contexts(score.sample)
        body = {
            "traceId": self._trace_of_run(run, score.query_id),
            "item": score.query_id,
            "run": run,
            "input": {"question": sample["question"]},
            "output": {"answer": sample["answer"], **({"contexts": contexts} if contexts else {})},
            "expected": list(sample["references"] or ()),
            "error": sample["error"],
            "seconds": sample["seconds"],
            "usage": {"input": sample["input_tokens"], "output": sample["output_tokens"]},
            "cost": sample["cost"],
        }
        key = f"answer/{self.node.dataset}/{run}/{score.query_id}"
        return Parcel(key, clean(body), f"answer -> item {score.query_id} of the run '{run}'", "answer")

    def make_value(self, score: Score, judgements: Judgements, names: Names, run: str | None) -> Parcel:
        link = score.link
        if run is None:
            assert link is not None, "only answers with a trace are listed"
            trace_id, span_id, others = link.trace_id, link.span_id, link.others
            where = f"trace {trace_id}"
        else:
            trace_id, span_id, others = self._trace_of_run(run, score.query_id), None, {}
            where = f"item {score.query_id} of the run '{run}'"
        told = {"label": judgements.label(score), "system": score.system, "dataset": score.dataset}
        name = names.choose(f"{trace_id}/{span_id or ''}", score, score.metric)
        identity = make_hex(trace_id, span_id or "", name)
        body = {
            "id": identity,
            "traceId": trace_id,
            "observationId": span_id,
            "name": name,
            "value": score.value,
            "dataType": "NUMERIC",
            "comment": shorten_reason(judgements.explain(score)),
            "metadata": {"source": "rageval-spec", **drop_unknown(told), "query_id": score.query_id},
            "environment": others.get("environment"),
            # Langfuse replaces a score only if both its id and its time are the same.
            "timestamp": others.get("started"),
            "item": None if run is None else score.query_id,
        }
        summary = f"{judgements.summarize(score, name, '.2f')} -> {where}"
        return Parcel(identity, drop_unknown(body), summary, "score")

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Send answers (those with a `run`), then scores."""
        bodies = self._drop_foreign([parcel.body for parcel in parcels])
        answers = [body for body in bodies if "run" in body]
        for part in _split(answers):
            self._send_old_answers(part) if self._is_version_3 else self._send_answers(part)
        left_out = ("item", "timestamp") if self._is_version_3 else ("item",)
        scores = [_without(body, *left_out) for body in bodies if "run" not in body]
        if self._is_version_3:
            self._send_each("/scores", scores)
        else:
            for part in _split(scores):
                self._check(self.api.service.post("/scores", part), len(part))

    def _trace_of_run(self, run: str, item: str) -> str:
        return make_hex("langfuse", self.node.dataset or "", run, item)

    def _drop_foreign(self, bodies: list[Body]) -> list[Body]:
        """The bodies without those of questions that are no items of the dataset."""
        dataset = self.node.dataset
        if dataset is None:
            return bodies
        if self._dataset_id is None:
            self._dataset_id = str(self.api.check_dataset(dataset).get("id", ""))
            rows = (row for page in self.api.dataset_items(dataset) for row in page)
            self._items = {str(row.get("id")) for row in rows if isinstance(row, dict)}
        kept = [body for body in bodies if body["item"] in self._items]
        self._foreign |= {body["item"] for body in bodies} - self._items
        if not kept and not self._has_sent:
            raise DataError(
                f"{TOOL}: the question '{min(self._foreign, default='')}' is not an item of the dataset '{dataset}'; "
                f"read the questions from there: datasets: {{golden: {{use: langfuse, dataset: {dataset}}}}}"
            )
        self._has_sent = True
        return kept

    @cached_property
    def _is_version_3(self) -> bool:
        """Whether Langfuse lacks the endpoint that came together with scores in batches."""
        from rageval_spec.endpoints.service import ServiceError

        try:
            self.api.service.get("/v3/scores", [("limit", "1")])
        except ServiceError as error:
            if error.status in ABSENT:
                return True
            raise
        return False

    @cached_property
    def _time(self) -> datetime:
        """When the results in the folder were written, so that a run that is sent again has the same time; else now.

        Langfuse replaces an answer only if it is sent again with a time of the same day.
        """
        with suppress(OSError):
            if self.context.output is not None:
                return datetime.fromtimestamp((self.context.output / RESULTS_FILE).stat().st_mtime, UTC)
        return datetime.now(UTC)

    def _send_each(self, path: str, bodies: Sequence[Body]) -> None:
        from rageval_spec.endpoints.service import LIMITS

        with ThreadPoolExecutor(LIMITS.concurrency) as pool:
            for future in [pool.submit(self.api.service.post, path, body) for body in bodies]:
                future.result()

    def _check(self, reply: Any, count: int) -> None:
        """Langfuse answers 207 with counts if it refused a part of a batch."""
        from rageval_spec.endpoints.service import ServiceError

        rejected = reply.get("rejected") if isinstance(reply, Mapping) else None
        if isinstance(rejected, int) and rejected > 0:
            errors = reply.get("errors")
            first = errors[0] if isinstance(errors, list) and errors else {}
            why = first.get("message", "") if isinstance(first, Mapping) else ""
            raise ServiceError(f"{TOOL}: Langfuse refused {rejected} of {count} scores: {str(why)[:300]}", PARTLY)

    def _send_answers(self, answers: Sequence[Body]) -> None:
        """Send answers as spans of an experiment, as the SDK's `run_experiment` does."""
        spans = [span for answer in answers for span in _make_spans(answer, self._dataset_id or "", self._time)]
        scope = {"scope": {"name": "rageval-spec"}, "spans": spans}
        self.api.service.post(
            "/otel/v1/traces", {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]}
        )

    def _send_old_answers(self, answers: Sequence[Body]) -> None:
        """Send answers as traces, and link them to the items of the dataset."""
        from rageval_spec.endpoints.service import ServiceError

        batch = [_make_event(answer, str(write_time(self._time))) for answer in answers]
        reply = self.api.service.post("/ingestion", {"batch": batch})
        errors = reply.get("errors") if isinstance(reply, Mapping) else None
        if errors:
            raise ServiceError(f"{TOOL}: Langfuse refused {len(errors)} of {len(batch)} traces: {str(errors[0])[:300]}")
        links = [{"runName": one["run"], "datasetItemId": one["item"], "traceId": one["traceId"]} for one in answers]
        self._send_each("/dataset-run-items", links)


def _without(body: Body, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


MOST_BYTES = 900_000
"""The most bytes of a request; Langfuse refuses those of more than 1 MiB."""


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


def _make_event(answer: Body, time: str) -> dict[str, Any]:
    trace = {
        "id": answer["traceId"],
        "name": "rageval-spec",
        "timestamp": time,
        "input": answer["input"],
        "output": answer["output"],
        "metadata": drop_unknown({key: answer[key] for key in ("run", "item", "error")}),
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
    usage = drop_unknown(answer["usage"])
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
    known = [{"key": key, "value": {"stringValue": value}} for key, value in drop_unknown(attributes).items()]
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
