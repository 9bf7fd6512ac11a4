"""Requests to Phoenix's REST API, page by page, and how its spans and examples are read.

Phoenix's spans become spans of OpenInference: the API spreads JSON that programs recorded as one attribute. Examples
of datasets become traces without an answer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import Field

from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.endpoints.service import Service, ServiceError, list_pages, quote_part
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.contracts import check_url
from rageval_spec.exchange.shared.spans.spans import ERROR, OK, UNSET, Span, SpanEvent
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded.questions_and_answers import RecordedPaths, find_question
from rageval_spec.recorded.values import dump_text

RETRIEVER = "retriever"
"""The name of the span that retrieved an answer's documents, in the link to a trace."""


LOCAL = "http://localhost:6006"
URL = Field(
    default=None,
    description="The URL of Phoenix, such as `https://phoenix.example.org`. Default: the environment's "
    f"PHOENIX_COLLECTOR_ENDPOINT, else `{LOCAL}`.",
)
API_KEY = Field(
    default=None, description="The API key, as `${secret:PHOENIX_API_KEY}`. Default: the environment's PHOENIX_API_KEY."
)
Pairs = list[tuple[str, str]]


class PhoenixAddress(NamedTuple):
    """Where Phoenix is: its URL and its key."""

    url: str
    api_key: Secret | None

    @classmethod
    def of(cls, url: str | None, api_key: Secret | None) -> PhoenixAddress:
        """The settings, completed from the environment.

        Raises:
            UsageError: the environment's URL is wrong.
        """
        if url is None:
            url = os.environ.get("PHOENIX_COLLECTOR_ENDPOINT", "").strip() or LOCAL
            try:
                url = str(check_url(url)).removesuffix("/v1/traces")
            except ValueError as error:
                raise UsageError(f"PHOENIX_COLLECTOR_ENDPOINT: {error}") from None
        if api_key is None and (key := os.environ.get("PHOENIX_API_KEY", "").strip()):
            api_key = Secret(key)
        return cls(url, api_key)


class PhoenixServer:
    """Reads and writes below `/v1` of one Phoenix."""

    def __init__(self, address: PhoenixAddress, where: str) -> None:
        """Open nothing yet; `where` begins every message."""
        key = address.api_key
        headers = {} if key is None else {"authorization": Secret(f"Bearer {key.reveal().strip()}")}
        self.service = Service(address.url, where, headers=headers)
        self.where = where

    def list_items(self, path: str, parameters: Pairs) -> Iterator[dict[str, Any]]:
        """The objects in `data` of all pages of a path.

        Raises:
            ServiceError: a page cannot be read, or is not a page of Phoenix.
        """

        def fetch(cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
            further = [] if cursor is None else [("cursor", cursor)]
            return self._read_page(self.service.get(path, [*parameters, *further]), path)

        for page in list_pages(fetch, self.where):
            yield from page

    def project_path(self, project: str, rest: str) -> str:
        """The path of something in a project, named by name or id."""
        return f"/v1/projects/{quote_part(project)}/{rest}"

    def find_dataset(self, name: str) -> str:
        """The id of the dataset of that name.

        Raises:
            UsageError: there is none.
            ServiceError: Phoenix cannot be asked.
        """
        for found in self.list_items("/v1/datasets", [("name", name), ("limit", "100")]):
            if found.get("name") == name and isinstance(found.get("id"), str):
                return str(found["id"])
        raise UsageError(f"{self.where}: there is no dataset {name!r}")

    def list_projects(self) -> list[str]:
        """The names of all projects."""
        return [str(one.get("name")) for one in self.list_items("/v1/projects", [("limit", "100")])]

    def close(self) -> None:
        """End the calls under way."""
        self.service.close()

    def _read_page(self, content: Any, path: str) -> tuple[list[dict[str, Any]], str | None]:
        data = content.get("data") if isinstance(content, dict) else None
        cursor = content.get("next_cursor") if isinstance(content, dict) else None
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise ServiceError(f"{self.where}: {path} answered without the list 'data'; is url that of Phoenix?")
        return data, cursor if isinstance(cursor, str) else None


PROJECT = "openinference.project.name"
OURS = "rageval-spec"
"""How the identifiers of our own annotations begin; they are not feedback."""
_STATUS = {"OK": OK, "ERROR": ERROR, "UNSET": UNSET}
_SPREAD = re.compile(
    r"(?P<whole>metadata|(?:retrieval|reranker)\.\w+\.\d+\.document\.metadata)\.(?P<key>.+)", re.DOTALL
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_span(found: Mapping[str, Any], project: str, place: str) -> Span:
    """A span of the REST API; `place` names it in messages.

    Raises:
        DataError: it has no ids, or attributes that are no object.
    """
    context, attributes = found.get("context"), found.get("attributes")
    ids = [context.get(name) for name in ("trace_id", "span_id")] if isinstance(context, Mapping) else []
    if len(ids) != 2 or not all(isinstance(one, str) and one for one in ids):
        raise DataError(f"{place}: a span without a trace_id and a span_id")
    if not isinstance(attributes, Mapping):
        raise DataError(f"{place}: the span {ids[1]} has no object 'attributes'")
    parent = found.get("parent_id")
    kind = found.get("span_kind")
    return Span(
        str(ids[0]),
        str(ids[1]),
        parent if isinstance(parent, str) and parent else None,
        str(found.get("name") or ""),
        read_time(found.get("start_time")),
        read_time(found.get("end_time")),
        {**gather_metadata(attributes), **({"openinference.span.kind": kind} if isinstance(kind, str) else {})},
        tuple(map(_read_event, found.get("events") or ())),
        status=_STATUS.get(str(found.get("status_code")), UNSET),
        message=str(found.get("status_message") or ""),
        resource={PROJECT: project},
        place=f"{place}: span {ids[1]}",
    )


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


def read_time(text: Any) -> int:
    """Nanoseconds since 1970 of an ISO 8601 time; 0 if it is none."""
    if not isinstance(text, str):
        return 0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0
    gone = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return ((gone.days * 86400 + gone.seconds) * 1_000_000 + gone.microseconds) * 1000


def _read_event(found: Any) -> SpanEvent:
    if not isinstance(found, Mapping):
        return SpanEvent("")
    attributes = found.get("attributes")
    return SpanEvent(
        str(found.get("name") or ""),
        read_time(found.get("timestamp")),
        attributes if isinstance(attributes, Mapping) else {},
    )


def _read_annotation(annotation: Mapping[str, Any]) -> dict[str, Any]:
    result = annotation.get("result")
    found = result if isinstance(result, Mapping) else {}
    said = {name: found.get(name) for name in ("score", "label", "explanation")}
    names = ("name", "annotator_kind", "identifier")
    return {**said, **{name: annotation.get(name) or None for name in names}}


def read_example(found: Any, dataset: str, version: str, place: str) -> Trace:
    """The question of an example: the usual keys of its input, and the reference from those of its output.

    Raises:
        DataError: it has no id, or no input.
    """
    node_id = found.get("node_id", found.get("id")) if isinstance(found, Mapping) else None
    if not isinstance(node_id, str):
        raise DataError(f"{place}: it has no id")
    question = find_question(found.get("input")) or dump_text(found.get("input"))
    if question is None:
        raise DataError(f"{place}: it has no input")
    metadata = found.get("metadata")
    others = {key: value for key, value in {"dataset": dataset, "version": version}.items() if value}
    return Trace(
        TraceLink("phoenix", node_id, others=others),
        question,
        query_id=str(found.get("id") or node_id),
        references=RecordedPaths().references(found.get("output")),
        metadata={
            **_list_others(found.get("input"), question),
            **(dict(metadata) if isinstance(metadata, dict) else {}),
        },
    )


def _list_others(value: Any, question: str) -> dict[str, Any]:
    """The keys of an input that do not hold the question."""
    if not isinstance(value, Mapping):
        return {}
    return {f"input.{key}": inner for key, inner in value.items() if inner != question and dump_text(inner) is not None}
