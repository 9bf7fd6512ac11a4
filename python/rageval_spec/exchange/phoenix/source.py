"""Reads the traces of a project, or the examples of a dataset, from Phoenix."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.endpoints.service import ServiceError, quote_part
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.connections import (
    Connection,
    ToolApi,
    bear,
    describe_key,
    describe_url,
    explain_unknown,
    find_key,
    read_object,
)
from rageval_spec.exchange.shared.contracts import WindowNode
from rageval_spec.exchange.shared.delivery import split
from rageval_spec.exchange.shared.row_groups import SpanSource
from rageval_spec.exchange.shared.spans import json_spans
from rageval_spec.exchange.shared.spans.spans import Span, documents_of, format_moment
from rageval_spec.libraries import compile_later
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded.questions_and_answers import RecordedPaths, find_question
from rageval_spec.recorded.values import dump_text

RETRIEVER = "retriever"
"""The name of the span that retrieved an answer's documents, in the link to a trace."""


class PhoenixConnection(Connection):
    url_variables = ("PHOENIX_COLLECTOR_ENDPOINT",)
    usual_url = "http://localhost:6006"
    url: str | None = describe_url("Phoenix", url_variables, usual_url)
    api_key: Secret | None = describe_key("API key", "PHOENIX_API_KEY")

    def find_url(self) -> str:
        return super().find_url().removesuffix("/v1/traces")

    def find_headers(self) -> dict[str, Secret]:
        """The header with the key; {} without one."""
        key = find_key(self.api_key, "PHOENIX_API_KEY")
        return {} if key is None else bear(key)


Pairs = list[tuple[str, str]]


class PhoenixServer(ToolApi):
    product = "Phoenix"
    following = ("next_cursor",)
    ends_empty = False

    def __init__(self, node: PhoenixConnection, where: str) -> None:
        super().__init__(node.find_url(), where, node.find_headers())

    def list_items(self, path: str, parameters: Pairs) -> Iterator[dict[str, Any]]:
        """The objects in `data` of all pages of a path."""
        return self.list_objects(path, parameters, "data")

    def read_examples(self, dataset: str, identity: str) -> Iterator[Trace]:
        path = f"/v1/datasets/{identity}/examples"
        content = self.service.get(path)
        data = self.read(content, "data", path, Mapping)
        version = str(data.get("version_id") or "")
        for number, example in enumerate(self.read(data, "examples", path), 1):
            yield read_example(example, dataset, version, f"{self.where}: dataset {dataset}, example {number}")

    def find_dataset(self, name: str) -> str:
        for found in self.list_items("/v1/datasets", [("name", name), ("limit", "100")]):
            if found.get("name") == name and isinstance(found.get("id"), str):
                return str(found["id"])
        raise UsageError(f"{self.where}: there is no dataset {name!r}")


PROJECT = "openinference.project.name"
OURS = "rageval-spec"
"""How the identifiers of our own annotations begin; they are not feedback."""
_SPREAD = compile_later(
    r"(?P<whole>metadata|(?:retrieval|reranker)\.\w+\.\d+\.document\.metadata)\.(?P<key>.+)", re.DOTALL
)


def read_span(found: Mapping[str, Any], project: str, place: str) -> Span:
    """A span of the REST API; `place` names it in messages."""
    place = f"{place}: span {read_object(found.get('context')).get('span_id')}"
    try:
        span = json_spans.read_span(found, place)
    except json_spans.JsonSpanError as error:
        raise DataError(f"{place}: {error}") from None
    return span._replace(attributes=gather_metadata(span.attributes), resource={PROJECT: project})


def gather_metadata(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, with those below `metadata` and a document's `metadata` gathered into one object again."""
    gathered: dict[str, Any] = {}
    for name, value in attributes.items():
        spread = _SPREAD.fullmatch(name)
        if spread is None:
            gathered[name] = value
            continue
        whole = gathered.setdefault(spread["whole"], {})
        if isinstance(whole, dict):
            whole[spread["key"]] = value
    return gathered


def add_annotations(span: Span, annotations: list[Mapping[str, Any]]) -> Span:
    """The span with what people and programs said about it; what this program wrote is left out."""
    others = [one for one in annotations if not str(one.get("identifier") or "").startswith(OURS)]
    said = {
        f"annotations.{number}.annotation.{name}": value
        for number, one in enumerate(others)
        for name, value in _read_annotation(one).items()
        if value is not None
    }
    return span._replace(attributes={**span.attributes, **said}) if said else span


def _read_annotation(annotation: Mapping[str, Any]) -> dict[str, Any]:
    found = read_object(annotation.get("result"))
    said = {name: found.get(name) for name in ("score", "label", "explanation")}
    names = ("name", "annotator_kind", "identifier")
    return {**said, **{name: annotation.get(name) or None for name in names}}


def read_example(found: Any, dataset: str, version: str, place: str) -> Trace:
    """The question of an example: the usual keys of its input, and the reference from those of its output."""
    node_id = found.get("node_id", found.get("id")) if isinstance(found, Mapping) else None
    if not isinstance(node_id, str):
        raise DataError(f"{place}: it has no id")
    question = find_question(found.get("input")) or dump_text(found.get("input"))
    if question is None:
        raise DataError(f"{place}: it has no input")
    listed = read_object(found.get("input")).items()
    inner = {f"input.{key}": value for key, value in listed if value != question and dump_text(value) is not None}
    others = {key: value for key, value in {"dataset": dataset, "version": version}.items() if value}
    return Trace(
        TraceLink("phoenix", node_id, others=others),
        question,
        query_id=str(found.get("id") or node_id),
        references=RecordedPaths().references(found.get("output")),
        metadata={**inner, **read_object(found.get("metadata"))},
    )


TOOL = "phoenix"
_TRACES_A_PAGE = 1000
_TRACES_AT_ONCE = 50
"""Traces whose spans are asked for at once: their ids stand in the URL."""
_SPANS_A_PAGE = 200
"""Few, because a page of spans with long texts must stay under the limit for a reply."""
_ANNOTATIONS_A_PAGE = 1000
_NOT_THERE = 404


class PhoenixSourceNode(PhoenixConnection, WindowNode):
    project: str | None = Field(default=None, min_length=1, description="The project whose traces to read, by name.")
    dataset: str | None = Field(
        default=None, min_length=1, description="The dataset to read in place of traces, by name; it has no answers."
    )
    one_of = ("project", "dataset")
    excludes = (("dataset", "since", "until"),)


class PhoenixSource(SpanSource[PhoenixSourceNode]):
    """Reads traces newest first, each with all its spans and their annotations."""

    node_type = PhoenixSourceNode
    known_as = ("arize", "arize_phoenix")
    summary = "Read the traces of a project, or the examples of a dataset, from Arize Phoenix."
    examples = (
        "import phoenix --project support --since 7d -o traces.jsonl",
        "import phoenix --dataset golden -o golden.jsonl",
    )

    tool = TOOL
    api: PhoenixServer

    def find_page(self, link: TraceLink) -> str | None:
        return f"{self.node.find_url()}/redirects/traces/{quote_part(link.trace_id)}"

    api_type = PhoenixServer

    def read_all(self) -> Iterator[Trace]:
        if (name := self.node.dataset) is not None:
            yield from self.api.read_examples(name, self.api.find_dataset(name))
            return
        for batch in split(self._list_traces(), min(_TRACES_AT_ONCE, self.node.limit or _TRACES_AT_ONCE)):
            spans = self._read_spans(batch)
            for trace_id in batch:
                for trace in self.reader.read(spans[trace_id]):
                    yield _check_retriever(trace, spans[trace_id])

    def _list_traces(self) -> Iterator[str]:
        """The ids of the traces in the window, newest first, each once."""
        seen: set[str] = set()
        limit = min(self.node.limit or _TRACES_A_PAGE, _TRACES_A_PAGE)
        asked = [("sort", "start_time"), ("order", "desc"), ("limit", str(limit))]
        bounds = zip(("start_time", "end_time"), self.node.window, strict=True)
        asked += [(name, format_moment(moment)) for name, moment in bounds if moment is not None]
        for trace in self._ask_project("traces", asked):
            trace_id = trace.get("trace_id")
            if isinstance(trace_id, str) and trace_id not in seen:
                seen.add(trace_id)
                yield trace_id

    def _read_spans(self, trace_ids: Sequence[str]) -> dict[str, list[Span]]:
        """The spans of some traces, by trace, with their annotations."""
        project = str(self.node.project)
        place = f"{self.context.name}: project {project}"
        spans = [read_span(span, project, place) for span in self._list_spans(trace_ids, _SPANS_A_PAGE)]
        said = self._read_annotations("span", [span.span_id for span in spans])
        of_traces = self._read_annotations("trace", trace_ids)
        by_trace: dict[str, list[Span]] = defaultdict(list)
        for span in spans:
            is_root = span.parent_id is None
            annotations = [*said[span.span_id], *(of_traces.pop(span.trace_id, ()) if is_root else ())]
            by_trace[span.trace_id].append(add_annotations(span, annotations))
        return by_trace

    def _list_spans(self, trace_ids: Sequence[str], limit: int) -> list[dict[str, Any]]:
        """The spans of some traces in pages of `limit`, or of less if a page is too large for a reply."""
        wanted = [("trace_id", one) for one in trace_ids]
        try:
            return list(self._ask_project("spans", [*wanted, ("limit", str(limit))]))
        except ServiceError as error:
            if not error.is_too_large or limit == 1:
                raise
            return self._list_spans(trace_ids, max(1, limit // 10))

    def _read_annotations(self, kind: str, ids: Sequence[str]) -> dict[str, list[Mapping[str, Any]]]:
        found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        path = f"{self._project_path}/{kind}_annotations"
        for some in split(ids, _TRACES_AT_ONCE):
            wanted = [*((f"{kind}_ids", one) for one in some), ("limit", str(_ANNOTATIONS_A_PAGE))]
            for annotation in self.api.list_items(path, wanted):
                found[str(annotation.get(f"{kind}_id"))].append(annotation)
        return found

    @property
    def _project_path(self) -> str:
        return f"/v1/projects/{quote_part(str(self.node.project))}"

    def _ask_project(self, what: str, parameters: Pairs) -> Iterator[dict[str, Any]]:
        try:
            yield from self.api.list_items(f"{self._project_path}/{what}", parameters)
        except ServiceError as error:
            if error.status != _NOT_THERE:
                raise
            raise self._explain_missing(str(self.node.project), error) from None

    def _explain_missing(self, project: str, error: ServiceError) -> UsageError | ServiceError:
        """The error about a project that is not there, with the names of those that are."""
        try:
            names = [str(one.get("name")) for one in self.api.list_items("/v1/projects", [("limit", "100")])]
        except ServiceError:
            return error
        if project in names:
            return error
        return explain_unknown(self.context.name, "project", project, names)


def _check_retriever(trace: Trace, spans: Sequence[Span]) -> Trace:
    """The trace without its retriever if that has other documents, so that no wrong document is annotated later."""
    retriever = trace.link.others.get(RETRIEVER)
    span = next((span for span in spans if span.span_id == retriever), None)
    if retriever is None or (span is not None and documents_of(span) == trace.documents):
        return trace
    others = {name: value for name, value in trace.link.others.items() if name != RETRIEVER}
    return replace(trace, link=replace(trace.link, others=others))
