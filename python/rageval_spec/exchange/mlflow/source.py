"""Reads traces from MLflow: those of an experiment, a dataset, or a table of a run.

A trace's spans have attributes; its information has expectations and feedback. In a
table that a run logged, such as `eval_results.json`, one row is one question.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from pydantic import Field, model_validator

from rageval_spec.data.traces import Document, Feedback, Trace, TraceLink
from rageval_spec.endpoints.service import ServiceError, quote_part
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.connections import (
    Connection,
    ToolApi,
    bear,
    describe_url,
    explain_unknown,
    find_key,
    list_cursor_pages,
    pair,
    read_object,
)
from rageval_spec.exchange.shared.contracts import WindowNode
from rageval_spec.exchange.shared.delivery import split
from rageval_spec.exchange.shared.row_groups import SpanSource
from rageval_spec.exchange.shared.spans.json_spans import JsonSpanError, read_span
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import Span
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded.questions_and_answers import (
    ANSWER_KEYS,
    QUESTION_KEYS,
    find_answer,
    find_question,
    read_document,
)
from rageval_spec.recorded.values import dump_text, find_version, load_json, read_count, read_number

V2, V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
_NOT_THERE = 404


class MlflowConnection(Connection):
    url_variables = ("MLFLOW_TRACKING_URI",)
    usual_url = "http://localhost:5000"
    url: str | None = describe_url("the tracking server", url_variables, usual_url)
    token: Secret | None = Field(
        default=None,
        description="The token: `${secret:VAR}`. Default: `$MLFLOW_TRACKING_TOKEN`, else a user and a password: "
        "`$MLFLOW_TRACKING_USERNAME` and `$MLFLOW_TRACKING_PASSWORD`.",
    )

    def find_url(self) -> str:
        try:
            return super().find_url()
        except UsageError as error:  # MLflow also takes a database or a folder there
            raise UsageError(f"{error}; start a server with: mlflow server") from None

    def find_headers(self) -> dict[str, Secret]:
        """The header with the token, or with the environment's user; {} without any."""
        if (token := find_key(self.token, "MLFLOW_TRACKING_TOKEN")) is not None:
            return bear(token)
        user, password = (os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD"))
        return pair(user, password) if user else {}


class MlflowServer(ToolApi):
    product = "MLflow"
    cursor = "page_token"
    following = ("next_page_token",)
    ends_empty = False
    omits_empty = True

    def __init__(self, node: MlflowConnection, where: str) -> None:
        super().__init__(node.find_url(), where, node.find_headers())

    def find_experiment(self, name: str) -> str:
        """The id of an experiment.

        Raises:
            UsageError: there is no experiment of that name; the message has the names of those that are there.
        """
        try:
            content = self.service.get(f"{V2}/experiments/get-by-name", [("experiment_name", name)])
        except ServiceError as error:
            if not is_missing(error):
                raise
            raise self._explain_missing(name) from None
        return str(self.read(self.read(content, "experiment", "experiment", dict), "experiment_id", "experiment", str))

    def open_experiment(self, name: str) -> str:
        """The id of an experiment, which is created if it is not there."""
        try:
            return self.find_experiment(name)
        except UsageError:
            content = self.service.post(f"{V2}/experiments/create", {"name": name})
            return str(self.read(content, "experiment_id", "experiment", str))

    def _explain_missing(self, name: str) -> UsageError:
        found = self.list_objects(f"{V2}/experiments/search", {"max_results": 1000}, "experiments", posts=True)
        return explain_unknown(self.where, "experiment", name, (str(one.get("name")) for one in found))


def is_missing(error: ServiceError) -> bool:
    """Whether the server said that something does not exist, not that it does not know the path."""
    return error.status == _NOT_THERE and b"RESOURCE_DOES_NOT_EXIST" in error.content


TOOL = "mlflow"
_TRACES_A_PAGE = 500
_TRACES_AT_ONCE = 25
"""Traces whose spans are asked for at once: a page with long texts must stay under the limit for a reply."""
_RECORDS_A_PAGE = 500


class MlflowSourceNode(MlflowConnection, WindowNode):
    experiment: str | None = Field(
        default=None, min_length=1, description="The experiment whose traces, or whose dataset, to read, by name."
    )
    dataset: str | None = Field(
        default=None, min_length=1, description="The evaluation dataset to read in place of traces, by name."
    )
    run: str | None = Field(
        default=None, min_length=1, description="Only the traces of this run, by id. With `table`: the run's table."
    )
    table: str | None = Field(
        default=None, min_length=1, description="The table of the run to read in place of traces: `eval_results.json`."
    )

    needs = (("table", "run"), ("dataset", "experiment"))
    excludes = (("table", "dataset", "since", "until"), ("dataset", "since", "until"))

    @model_validator(mode="after")
    def _check_choice(self) -> MlflowSourceNode:
        if self.table is None and self.experiment is None:
            raise ValueError("name `experiment`, whose traces or `dataset` are read, or `run` and its `table`")
        return self


class MlflowSource(SpanSource[MlflowSourceNode]):
    """Reads traces newest first, with their spans and assessments."""

    node_type = MlflowSourceNode
    summary = "Read the traces of an experiment, an evaluation dataset, or the table of a run from MLflow."
    examples = (
        "import mlflow --experiment support --since 7d -o traces.jsonl",
        "import mlflow --experiment support --dataset golden -o golden.jsonl",
        "import mlflow --run 6942007429ae4c70a25acd5b52d52086 --table eval_results.json",
    )

    tool = TOOL
    api: MlflowServer

    def find_page(self, link: TraceLink) -> str | None:
        if (experiment := link.others.get("experiment_id")) is None:
            return None
        shown = f"selectedEvaluationId={quote_part(link.trace_id)}"
        return f"{self.node.find_url()}/#/experiments/{quote_part(experiment)}/traces?{shown}"

    api_type = MlflowServer

    def read_all(self) -> Iterator[Trace]:
        if self.node.table is not None:
            return self._read_table(str(self.node.run), self.node.table)
        return self._read_traces() if self.node.dataset is None else self._read_dataset(self.node.dataset)

    def _read_traces(self) -> Iterator[Trace]:
        for batch in split(self._list_infos(), min(_TRACES_AT_ONCE, self.node.limit or _TRACES_AT_ONCE)):
            spans = self._read_spans([str(info.get("trace_id")) for info in batch])
            for info in batch:
                found = spans.get(str(info.get("trace_id")))
                yield from read_trace(info, found, self.reader, str(self.node.experiment), self.context.name)

    def _list_infos(self) -> Iterator[dict[str, Any]]:
        """The information of the traces in the window, newest first, each once.

        MLflow counts its pages from the newest trace, so a trace that comes meanwhile shows others twice.
        """
        experiment = self.api.find_experiment(str(self.node.experiment))
        body = {
            "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}],
            "max_results": min(self.node.limit or _TRACES_A_PAGE, _TRACES_A_PAGE),
            "order_by": ["timestamp_ms DESC"],
            "filter": " AND ".join(self._list_conditions()),
        }
        seen: set[str] = set()
        for info in self.api.list_objects(f"{V3}/traces/search", body, "traces", posts=True):
            trace_id = str(info.get("trace_id"))
            if trace_id not in seen:
                seen.add(trace_id)
                yield info

    def _list_conditions(self) -> Iterator[str]:
        for sign, moment in zip((">=", "<"), self.node.window, strict=True):
            if moment is not None:
                yield f"timestamp_ms {sign} {int(moment.timestamp() * 1000)}"
        if self.node.run is not None:
            if not self.node.run.isalnum():
                raise UsageError(f"{self.context.name}: {self.node.run!r} is not the id of a run")
            yield f"run_id = '{self.node.run}'"

    def _read_spans(self, trace_ids: Sequence[str]) -> dict[str, Any]:
        """The spans of some traces, by trace; asked for in two halves if they are too large for a reply."""
        wanted = [("trace_ids", one) for one in trace_ids]
        try:
            content = self.api.service.get(f"{V3}/traces/batchGet", wanted)
        except ServiceError as error:
            if not error.is_too_large or len(trace_ids) == 1:
                raise
            half = len(trace_ids) // 2
            return self._read_spans(trace_ids[:half]) | self._read_spans(trace_ids[half:])
        traces = map(read_object, self.api.read(content, "traces", f"{V3}/traces/batchGet"))
        infos = [(trace.get("trace_info"), trace.get("spans")) for trace in traces]
        return {str(info.get("trace_id")): spans for info, spans in infos if isinstance(info, dict)}

    def _read_dataset(self, name: str) -> Iterator[Trace]:
        path = f"{V3}/datasets/{quote_part(self._find_dataset(name))}/records"

        def fetch(cursor: dict[str, str]) -> tuple[list[Any], Any]:
            content = self.api.service.get(path, [("max_results", str(_RECORDS_A_PAGE)), *cursor.items()])
            found = read_object(content)
            return load_records(found.get("records"), place), found.get("next_page_token")

        place = f"{self.context.name}: dataset {name}"
        pages = list_cursor_pages(fetch, self.context.name, "page_token")
        for number, record in enumerate(chain.from_iterable(pages), 1):
            yield read_record(record, name, f"{place}, record {number}")

    def _find_dataset(self, name: str) -> str:
        experiment = self.api.find_experiment(str(self.node.experiment))
        body = {"experiment_ids": [experiment], "max_results": 50}
        names = []
        for dataset in self.api.list_objects(f"{V3}/datasets/search", body, "datasets", posts=True):
            if dataset.get("name") == name and isinstance(dataset.get("dataset_id"), str):
                return str(dataset["dataset_id"])
            names.append(str(dataset.get("name")))
        raise explain_unknown(f"{self.context.name}: experiment {self.node.experiment}", "dataset", name, names)

    def _read_table(self, run: str, path: str) -> Iterator[Trace]:
        try:
            content = self.api.service.get("/get-artifact", [("run_uuid", run), ("path", path)])
        except ServiceError as error:
            if not is_missing(error):
                raise
            raise UsageError(f"{self.context.name}: {self._explain_missing(run, path)}") from None
        yield from read_table(content, run, path, f"{self.context.name}: run {run}, {path}")

    def _explain_missing(self, run: str, path: str) -> str:
        try:
            content = self.api.service.get(f"{V2}/artifacts/list", [("run_id", run)])
        except ServiceError:
            return f"there is no run {run!r}"
        files = [str(file.get("path")) for file in read_object(content).get("files", [])]
        return f"the run {run} has no file {path!r}; it has {', '.join(files) or 'none'}"


_QUESTIONS = ("inputs", "request", *QUESTION_KEYS)
_ANSWERS = ("outputs", "predictions", "prediction", *(key for key in ANSWER_KEYS if key != "messages"))
_REFERENCES = ("targets", "target", "ground_truth", "expected_response", "expected_answer", "reference", "expected")
_CONTEXTS = ("contexts", "context", "retrieved_contexts", "retrieved_context", "documents")
_IDS = ("query_id", "id", "trace_id", "request_id")


def read_table(content: Any, run: str, path: str, place: str) -> Iterator[Trace]:
    """The rows of a table as MLflow's `log_table` writes it: `{"columns": [...], "data": [[...]]}`."""
    columns, data = (content.get(key) if isinstance(content, Mapping) else None for key in ("columns", "data"))
    if not isinstance(columns, list) or not isinstance(data, list):
        raise DataError(f"{place}: not a table of MLflow: it has no 'columns' and 'data'")
    question = _find(columns, _QUESTIONS)
    if question is None:
        raise DataError(f"{place}: no column holds the question; the columns are {', '.join(map(str, columns))}")
    for number, row in enumerate(data):
        if not isinstance(row, list) or len(row) != len(columns):
            raise DataError(f"{place}: row {number + 1} does not have {len(columns)} values")
        yield _read_row(dict(zip(map(str, columns), row, strict=True)), question, number, run, path, place)


def _read_row(row: dict[str, Any], question: str, number: int, run: str, path: str, place: str) -> Trace:
    text = find_question(row[question]) or dump_text(row[question])
    if text is None:
        raise DataError(f"{place}: row {number + 1} has no text in {question!r}")
    columns = list(row)
    answer, reference, contexts, key = (_find(columns, names) for names in (_ANSWERS, _REFERENCES, _CONTEXTS, _IDS))
    used = {question, answer, reference, contexts, key}
    expected = None if reference is None else find_answer(row[reference]) or dump_text(row[reference])
    return Trace(
        TraceLink("mlflow", f"{run}/{number}", others={"run": run, "table": path}),
        text,
        query_id=(dump_text(row[key]) if key else None) or f"{path}:{number + 1}",
        answer=None if answer is None else find_answer(row[answer]),
        documents=None if contexts is None else _read_documents(row[contexts]),
        references=() if expected is None else (expected,),
        metadata={name: value for name, value in row.items() if name not in used and value is not None},
    )


def _read_documents(value: Any) -> tuple[Document, ...] | None:
    found = load_json(value)
    if found is None:
        return None
    read = map(read_document, found if isinstance(found, list) else [found])
    return tuple(one for one in read if one is not None)


def _find(columns: list[Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in columns), None)


OURS = "rageval-spec"
"""How the sources of our own assessments begin; they are not feedback."""
REFERENCES = ("expected_response", "expected_answer", "expected_output", "reference", "ground_truth", "expected_facts")
_RELEVANT = ("expected_retrieved_context", "expected_documents", "relevant_doc_ids")
_DOCUMENT_IDS = ("doc_uri", "doc_id", "document_id", "id")
_SOURCES = {"HUMAN": "annotator", "LLM_JUDGE": "program", "AI_JUDGE": "program", "CODE": "program"}
_EXTRA = {
    "mlflow.chat.tokenUsage": {"input_tokens": "llm.token_count.prompt", "output_tokens": "llm.token_count.completion"},
    "mlflow.llm.cost": {"total_cost": "llm.cost.total"},
}
"""Attributes that hold several numbers, and OpenInference's name for each."""


def read_trace(info: Mapping[str, Any], spans: Any, reader: SpanReader, experiment: str, place: str) -> Iterator[Trace]:
    """The questions of a trace, from its information and its spans.

    Without spans, as for traces whose spans MLflow stored elsewhere, the information's inputs and outputs count.
    """
    trace_id = info.get("trace_id")
    if not isinstance(trace_id, str):
        raise DataError(f"{place}: a trace without a trace_id")
    place = f"{place}: trace {trace_id}"
    found = list(_read_spans(spans, place)) or [_read_summary(info, trace_id)]
    location = read_object(info.get("trace_location"))
    number = read_object(location.get("mlflow_experiment")).get("experiment_id")
    for trace in reader.read(found):
        is_only = trace.query_id != ""
        others = {} if number is None else {"experiment_id": str(number)}
        link = TraceLink(TOOL, trace_id, None if is_only else trace.link.span_id, experiment, others)
        is_open = info.get("state") == "IN_PROGRESS"
        yield _complete(replace(trace, link=link, query_id=trace_id if is_only else "", is_open=is_open), info)


def _read_spans(spans: Any, place: str) -> Iterator[Span]:
    if not isinstance(spans, list) or not spans:
        return
    for number, one in enumerate(spans):
        try:
            span = read_span(one, place)
        except JsonSpanError as error:
            raise DataError(f"{place}: spans[{number}].{error}") from None
        yield span._replace(attributes=_rename(span.attributes))


def _rename(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, with the numbers that MLflow keeps together under OpenInference's names too."""
    named = dict(attributes)
    for name, parts in _EXTRA.items():
        found = load_json(attributes.get(name))
        if isinstance(found, Mapping):
            named |= {new: found[old] for old, new in parts.items() if found.get(old) is not None and new not in named}
    if (model := load_json(attributes.get("mlflow.llm.model"))) is not None:
        named.setdefault("llm.model_name", model)
    return named


def _read_summary(info: Mapping[str, Any], trace_id: str) -> Span:
    metadata = read_object(info.get("trace_metadata"))
    ends = {
        "mlflow.spanInputs": metadata.get("mlflow.traceInputs") or info.get("request_preview"),
        "mlflow.spanOutputs": metadata.get("mlflow.traceOutputs") or info.get("response_preview"),
    }
    status = 2 if info.get("state") == "ERROR" else 0
    return Span(trace_id, "", name="trace", attributes={"mlflow.spanType": "CHAIN", **ends}, status=status)


def _complete(trace: Trace, info: Mapping[str, Any]) -> Trace:
    """The trace with what its information adds: whose it is, what it took, and its feedback."""
    metadata, tags = read_object(info.get("trace_metadata")), info.get("tags")
    own = _list_own(tags) | _list_own(metadata)
    tokens, cost = (read_object(load_json(metadata.get(f"mlflow.trace.{name}"))) for name in ("tokenUsage", "cost"))
    said = [one for one in info.get("assessments") or () if isinstance(one, Mapping) and one.get("valid", True)]
    duration = info.get("execution_duration")  # such as `0.026s`
    measured = read_number(duration.removesuffix("s")) if isinstance(duration, str) else None
    completed = replace(
        trace,
        seconds=measured if trace.seconds is None else trace.seconds,
        started=trace.started or dump_text(info.get("request_time")),
        input_tokens=read_count(tokens.get("input_tokens")) if trace.input_tokens is None else trace.input_tokens,
        output_tokens=read_count(tokens.get("output_tokens")) if trace.output_tokens is None else trace.output_tokens,
        cost=read_number(cost.get("total_cost")) if trace.cost is None else trace.cost,
        session=trace.session or dump_text(metadata.get("mlflow.trace.session")),
        user=trace.user or dump_text(metadata.get("mlflow.trace.user")),
        version=find_version(metadata, tags) or trace.version,
        metadata={**trace.metadata, **own},
    )
    expected = {str(one.get("assessment_name")): _value_of(one["expectation"]) for one in said if "expectation" in one}
    feedback = tuple(_read_feedback(one) for one in said if "feedback" in one and not _is_ours(one))
    return add_expectations(replace(completed, feedback=(*completed.feedback, *feedback)), expected)


def add_expectations(trace: Trace, expected: Mapping[str, Any]) -> Trace:
    """The trace with its references and relevant documents, from what people expected; the rest is metadata."""
    name = next((name for name in REFERENCES if dump_text(expected.get(name)) is not None), None)
    documents = next((name for name in _RELEVANT if isinstance(expected.get(name), list)), None)
    relevant = trace.relevant if documents is None else tuple(_list_ids(expected[documents]))
    others = {f"expectation.{key}": value for key, value in expected.items() if key not in (name, documents)}
    trace = replace(trace, relevant=relevant, metadata={**trace.metadata, **others})
    if name is None:
        return trace
    facts = expected[name]  # those that an answer must have are joined to one reference
    is_list = isinstance(facts, list) and all(isinstance(item, str) for item in facts)
    return replace(trace, references=(" ".join(facts) if is_list else str(dump_text(facts)),))


def _list_ids(documents: Sequence[Any]) -> Iterator[str]:
    for document in documents:
        if isinstance(document, str):
            yield document
        elif isinstance(document, Mapping):
            yield from [str(document[key]) for key in _DOCUMENT_IDS if document.get(key) is not None][:1]


def _read_feedback(assessment: Mapping[str, Any]) -> Feedback:
    """A number as value, yes and no as 1 and 0; any other value is the label."""
    value = _value_of(assessment["feedback"])
    source = read_object(assessment.get("source"))
    number = float(value) if isinstance(value, bool) else None if isinstance(value, str) else read_number(value)
    return Feedback(
        str(assessment.get("assessment_name") or "feedback"),
        number,
        str(value).lower() if isinstance(value, bool) else dump_text(value) if number is None else None,
        dump_text(assessment.get("rationale")),
        _SOURCES.get(str(source.get("source_type")), "unknown"),  # type: ignore[arg-type] # one of its four words
        dump_text(source.get("source_id")),
    )


def _is_ours(assessment: Mapping[str, Any]) -> bool:
    return str(read_object(assessment.get("source")).get("source_id") or "").startswith(OURS)


def _value_of(found: Any) -> Any:
    """The value of a feedback or an expectation; structured values are JSON in a text."""
    serialized = read_object(found).get("serialized_value")
    return load_json(serialized.get("value")) if isinstance(serialized, Mapping) else read_object(found).get("value")


def _list_own(found: Any) -> dict[str, Any]:
    """What programs and people wrote among tags or metadata, without what MLflow did."""
    return {key: value for key, value in read_object(found).items() if not key.startswith("mlflow.")}


def read_record(found: Mapping[str, Any], dataset: str, place: str) -> Trace:
    """A record of an evaluation dataset as a trace: its inputs, its expectations, and its outputs if it has any."""
    record_id = found.get("dataset_record_id")
    question = find_question(found.get("inputs")) or dump_text(found.get("inputs"))
    if not isinstance(record_id, str) or question is None:
        raise DataError(f"{place}: {'it has no inputs' if isinstance(record_id, str) else 'it has no id'}")
    answer = find_answer(found.get("outputs"))
    inputs = read_object(found.get("inputs")).items()
    others = {f"input.{key}": value for key, value in inputs if value != question}
    link = TraceLink(TOOL, record_id, others={"dataset": dataset})
    trace = Trace(
        link, question, query_id=record_id, answer=answer, metadata={**others, **_list_own(found.get("tags"))}
    )
    return add_expectations(trace, read_object(found.get("expectations")))


def load_records(text: Any, place: str) -> list[dict[str, Any]]:
    """The records in the text of JSON that the server answers with."""
    found = load_json(text)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise DataError(f"{place}: its records are not a list of objects")
    return found
