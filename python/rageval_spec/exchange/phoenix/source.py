"""Reads the traces of a project, or the examples of a dataset, from Phoenix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field, model_validator

from rageval_spec.data.traces import Trace
from rageval_spec.diagnostics import suggest
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import UsageError
from rageval_spec.exchange.phoenix import connection
from rageval_spec.exchange.shared.connections import validate_url
from rageval_spec.exchange.shared.contracts import WindowNode
from rageval_spec.exchange.shared.delivery import split
from rageval_spec.exchange.shared.span_sources import SpanSource
from rageval_spec.exchange.shared.spans.spans import Span, documents_of, format_moment
from rageval_spec.plugin.secrets import Secret

TOOL = "phoenix"
_TRACES_A_PAGE = 1000
_TRACES_AT_ONCE = 50
"""Traces whose spans are asked for at once: their ids stand in the URL."""
_SPANS_A_PAGE = 200
"""Few, because a page of spans with long texts must stay under the limit for a reply."""
_ANNOTATIONS_A_PAGE = 1000
_NOT_THERE = 404


class PhoenixSourceNode(WindowNode):
    """What to read from Arize Phoenix: the traces of a project, or the examples of a dataset."""

    url: str | None = connection.URL
    project: str | None = Field(default=None, min_length=1, description="The project whose traces to read, by name.")
    dataset: str | None = Field(
        default=None, min_length=1, description="The dataset to read in place of traces, by name; it has no answers."
    )
    api_key: Secret | None = connection.API_KEY
    _check_url = validate_url

    @model_validator(mode="after")
    def _check_choice(self) -> PhoenixSourceNode:
        if (self.project is None) == (self.dataset is None):
            raise ValueError("name either `project`, whose traces are read, or `dataset`")
        if self.dataset is not None and (self.since is not None or self.until is not None):
            raise ValueError("since and until select traces; a dataset has none")
        return self


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
    api: connection.PhoenixServer

    def connect(self) -> connection.PhoenixServer:
        return connection.PhoenixServer(self.node.url, self.node.api_key, self.context.name)

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
        spans = [connection.read_span(span, project, place) for span in self._list_spans(trace_ids, _SPANS_A_PAGE)]
        said = self._read_annotations("span", [span.span_id for span in spans])
        of_traces = self._read_annotations("trace", trace_ids)
        by_trace: dict[str, list[Span]] = defaultdict(list)
        for span in spans:
            is_root = span.parent_id is None
            annotations = [*said[span.span_id], *(of_traces.pop(span.trace_id, ()) if is_root else ())]
            by_trace[span.trace_id].append(connection.add_annotations(span, annotations))
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
        path = self.api.project_path(str(self.node.project), f"{kind}_annotations")
        for some in split(ids, _TRACES_AT_ONCE):
            wanted = [(f"{kind}_ids", one) for one in some]
            limit = ("limit", str(_ANNOTATIONS_A_PAGE))
            for annotation in self.api.list_items(path, [*wanted, limit]):
                found[str(annotation.get(f"{kind}_id"))].append(annotation)
        return found

    def _ask_project(self, what: str, parameters: connection.Pairs) -> Iterator[dict[str, Any]]:
        project = str(self.node.project)
        try:
            yield from self.api.list_items(self.api.project_path(project, what), parameters)
        except ServiceError as error:
            if error.status != _NOT_THERE:
                raise
            raise self._explain_missing(project, error) from None

    def _explain_missing(self, project: str, error: ServiceError) -> UsageError | ServiceError:
        """The error about a project that is not there, with the names of those that are."""
        try:
            names = self.api.list_projects()
        except ServiceError:
            return error
        if project in names:
            return error
        hint = suggest(project, names) or f"the projects are {', '.join(names[:20])}"
        return UsageError(f"{self.context.name}: there is no project {project!r}; {hint}")


def _check_retriever(trace: Trace, spans: Sequence[Span]) -> Trace:
    """The trace without its retriever if that has other documents, so that no wrong document is annotated later."""
    retriever = trace.link.others.get(connection.RETRIEVER)
    span = next((span for span in spans if span.span_id == retriever), None)
    if retriever is None or (span is not None and documents_of(span) == trace.documents):
        return trace
    others = {name: value for name, value in trace.link.others.items() if name != connection.RETRIEVER}
    return replace(trace, link=replace(trace.link, others=others))
