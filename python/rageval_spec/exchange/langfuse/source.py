"""Reads traces and datasets from Langfuse's API, or from the files that it exports.

A trace is made of the rows that Langfuse has for it: its observations, its scores and, in older versions, itself. Rows
of the API and of exports have names that differ only in style. Items of a dataset become questions with gold answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import count
from typing import Any, Literal

from pydantic import Field

from rageval_spec.data.traces import Document, Feedback, Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.connections import (
    ABSENT,
    Connection,
    ToolApi,
    describe_key,
    describe_url,
    pair,
    require_key,
)
from rageval_spec.exchange.shared.delivery import make_hex
from rageval_spec.exchange.shared.row_groups import Rows, SpooledNode, SpooledSource, TraceRow, add_known, make_item
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import Span, make_span, nanoseconds_of
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded import questions_and_answers, values
from rageval_spec.recorded.answers_and_steps import find_end
from rageval_spec.recorded.questions_and_answers import RecordedPaths
from rageval_spec.recorded.values import open_text, read_number, read_text

FIELDS = "core,basic,io,metadata,model,usage,metrics,trace_context"
"""The groups of an observation's fields that are read."""
_PAGE, _SMALL_PAGE = 1000, 100


class LangfuseConnection(Connection):
    url_variables = ("LANGFUSE_BASE_URL", "LANGFUSE_HOST")
    usual_url = "https://cloud.langfuse.com"
    url: str | None = describe_url("Langfuse", url_variables, usual_url)
    public_key: Secret | None = describe_key("project's public key", "LANGFUSE_PUBLIC_KEY")
    secret_key: Secret | None = describe_key("project's secret key", "LANGFUSE_SECRET_KEY")


class LangfuseApi(ToolApi):
    """One project, below `/api/public`; falls back to older paths where the newer ones are absent."""

    product = "Langfuse"
    following = ("meta.cursor", "meta.nextCursor")

    def __init__(self, node: LangfuseConnection, where: str) -> None:
        public = require_key(node.public_key, where, "LANGFUSE_PUBLIC_KEY", what="public key")
        secret = require_key(node.secret_key, where, "LANGFUSE_SECRET_KEY", what="secret key")
        headers = pair(public.reveal(), secret.reveal())
        super().__init__(f"{node.find_url()}/api/public", where, headers, (public, secret))
        self.is_old = False

    def observations(self, window: Mapping[str, str], filters: Mapping[str, str]) -> Iterator[list[Any]]:
        """Pages of observations that began in the window; of an older Langfuse, pages of its traces as well.

        Args:
            window: `from` and `to`, ISO 8601 times; both may be absent.
            filters: the API's own, such as `environment`.
        """
        from rageval_spec.endpoints.service import ServiceError

        asked = {"fields": FIELDS, **filters, **_name_window(window, "StartTime")}
        try:
            yield from self.pages("/v2/observations", {**asked, "limit": str(_PAGE)}, "data")
        except ServiceError as error:
            if self.is_old or error.status not in ABSENT:
                raise
            self.is_old = True
            yield from self._by_number("/traces", {**filters, **_name_window(window, "Timestamp")})
            yield from self._by_number("/observations", {**filters, **_name_window(window, "StartTime")})

    def scores(self, window: Mapping[str, str]) -> Iterator[list[Any]]:
        """Pages of scores from the beginning of the window on: people often judge later."""
        from rageval_spec.endpoints.service import ServiceError

        asked = {"fromTimestamp": window["from"]} if "from" in window else {}
        try:
            fields = {"fields": "details,subject,annotation", "limit": str(_SMALL_PAGE)}
            yield from self.pages("/v3/scores", {**fields, **asked}, "data")
        except ServiceError as error:
            if error.status not in ABSENT:
                raise
            yield from self._by_number("/v2/scores", asked)

    def dataset_items(self, dataset: str) -> Iterator[list[Any]]:
        self.check_dataset(dataset)
        yield from self._by_number("/dataset-items", {"datasetName": dataset})

    def check_dataset(self, dataset: str) -> Mapping[str, Any]:
        from rageval_spec.endpoints.service import ServiceError, quote_part

        try:
            found = self.service.get(f"/v2/datasets/{quote_part(dataset)}")
        except ServiceError as error:
            if error.status == 404:
                raise DataError(f"{self.where}: there is no dataset '{dataset}' in this project") from None
            raise
        if not isinstance(found, Mapping):
            raise ServiceError(f"{self.where}: /v2/datasets: the reply is not a dataset")
        return found

    def _by_number(self, path: str, asked: Mapping[str, str]) -> Iterator[list[Any]]:
        for page in count(1):
            content = self.service.get(path, [*asked.items(), ("page", str(page)), ("limit", str(_SMALL_PAGE))])
            rows, meta = self.read(content, "data", path), self.read(content, "meta", path, Mapping)
            yield rows
            total = meta.get("totalPages")
            # The number of the page guards against a server that gives the same page for ever.
            if not rows or not isinstance(total, int) or page >= total or meta.get("page", page) != page:
                return


def _name_window(window: Mapping[str, str], what: str) -> dict[str, str]:
    return {f"{end}{what}": window[end] for end in ("from", "to") if end in window}


RowKind = Literal["observation", "trace", "score"]
Row = Mapping[str, Any]
"""A row with normalised names: `traceid` for `traceId`, `trace_id` and `Trace ID`."""
OBSERVATION_TYPES = frozenset({
    "SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL",
})  # fmt: skip
_OTHER_NAMES = {"providedmodelname": "model", "totaltokens": "totalusage", "calculatedtotalcost": "totalcost"}
_SOURCES: Mapping[str, Literal["annotator", "program"]] = {"ANNOTATION": "annotator", "EVAL": "program"}


def normalise(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The row with normalised names, without its empty values."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        if value is not None and value != "":
            found.setdefault(_normalise_name(key), value)
    if (text := read_text(found.get("id"))) is None:
        raise DataError(
            f"{place}: there is no 'id' in this row of Langfuse; its keys are {', '.join(map(str, row))[:200]}"
        )
    found["id"] = text
    return found


@cache
def _normalise_name(key: str) -> str:
    plain = "".join(letter for letter in key.lower() if letter.isalnum())
    return _OTHER_NAMES.get(plain, plain)


_NESTED = ("observations", "scores", "children")
"""Keys of a trace or an observation whose lists hold rows of their own."""


def unnest(found: Any, above: Row | None = None) -> Iterator[Any]:
    """A row without the rows inside, and those, which then name their trace and the observation that they are part of.

    Langfuse's page writes a trace as `{"trace": {...}, "observations": [...]}`. Other values come as they are. `above`
    is what the rows inside another one say of it, unless they say it themselves.
    """
    if not isinstance(found, Mapping):
        yield found
        return
    listed = {key: found[key] for key in _NESTED if isinstance(found.get(key), list)}
    objects = {key: [one for one in rows if isinstance(one, Mapping)] for key, rows in listed.items()}
    inner = {key: rows for key, rows in objects.items() if rows}
    own = {key: value for key, value in found.items() if key not in inner}
    if isinstance(own.get("trace"), Mapping) and own.keys() == {"trace"}:
        yield from unnest({**own["trace"], **inner})
        return
    own = {**(above or {}), **own}
    yield own
    trace_id = own.get("traceId", own.get("trace_id"))
    for key, rows in inner.items():
        told = {"traceId": own.get("id") if trace_id is None else trace_id}
        if trace_id is not None:
            told["observationId" if key == "scores" else "parentObservationId"] = own.get("id")
        for row in rows:
            yield from unnest(row, told)


def observation_of(row: Row) -> str | None:
    """The id of the observation that a score is about; None if it is about a whole trace."""
    if isinstance(subject := open_text(row.get("subject")), Mapping):
        return read_text(subject.get("id")) if subject.get("kind") == "observation" else None
    return read_text(row.get("observationid"))


def tell_kind(row: Row) -> RowKind:
    if str(row.get("type", "")).upper() in OBSERVATION_TYPES and ("traceid" in row or "starttime" in row):
        return "observation"
    is_score = "name" in row and ({"value", "stringvalue"} & row.keys()) and ({"datatype", "source"} & row.keys())
    return "score" if is_score else "observation" if "starttime" in row else "trace"


def trace_of(row: Row) -> str | None:
    """The id of the trace that an observation or a score belongs to; a trace's own."""
    kind = tell_kind(row)
    if kind == "score" and isinstance(subject := open_text(row.get("subject")), Mapping):
        key = {"trace": "id", "observation": "traceId"}.get(str(subject.get("kind")))
        return None if key is None else read_text(subject.get(key))
    return read_text(row["id"] if kind == "trace" else row.get("traceid"))


def read_feedback(row: Row) -> Feedback | None:
    """What a score says; None if it has no name. A correction is a comment with the corrected text."""
    name = read_text(row.get("name"))
    if name is None:
        return None
    kind = str(row.get("datatype", "")).upper()
    value, label = row.get("value"), read_text(row.get("stringvalue"))
    comment = read_text(row.get("comment"))
    if kind in ("CATEGORICAL", "TEXT", "CORRECTION"):
        # The numbers of older endpoints beside these are 0 or a category's place, which says nothing elsewhere.
        label, value = label or read_text(value), None
    elif isinstance(value, bool) or value in ("true", "false", "True", "False"):
        label, value = None, float(value in (True, "true", "True"))
    else:
        label = None if kind in ("NUMERIC", "BOOLEAN") else label
    number = read_number(value)
    source = _SOURCES.get(str(row.get("source", "")).upper())
    return Feedback(name, number, label, comment, source or "unknown", read_text(row.get("authoruserid")))


def is_correction(row: Row) -> bool:
    return str(row.get("datatype", "")).upper() == "CORRECTION"


def read_mapping(found: Any) -> dict[str, Any]:
    """A mapping, also one that is written as JSON, or as the list of pairs that Parquet makes of it; else {}."""
    found = open_text(found)
    if isinstance(found, list) and all(isinstance(one, Mapping) and {"key", "value"} <= one.keys() for one in found):
        found = {str(one["key"]): one["value"] for one in found}
    return {str(key): value for key, value in found.items()} if isinstance(found, Mapping) else {}


def read_list(found: Any) -> list[str]:
    """A list of texts, also one that is written as JSON or with ClickHouse's single quotes; else []."""
    if isinstance(found, str) and found.startswith("['"):
        found = found.replace("'", '"')
    try:
        found = json.loads(found) if isinstance(found, str) else found
    except (ValueError, RecursionError):
        return []
    return [str(item) for item in found] if isinstance(found, list) else []


TOOL = "langfuse"


class LangfuseSourceNode(LangfuseConnection, SpooledNode):
    environment: str | None = Field(default=None, description="Only traces of this environment: `production`.")
    name: str | None = Field(default=None, description="Only traces with this name.")
    scores: bool = Field(default=True, description="Whether to read the scores of the traces, as feedback.")
    excludes = (("path", "dataset"),)


class LangfuseSource(SpooledSource[LangfuseSourceNode]):
    """Traces of Langfuse: of version 3 by its older endpoints, of later ones by observations."""

    node_type = LangfuseSourceNode
    summary = "Read traces and datasets of Langfuse, from its API or from exported files."
    examples = (
        "import langfuse --since 7d -o traces.jsonl",
        "import langfuse --dataset golden -o golden.jsonl",
        "import langfuse export/ -o traces.jsonl",
    )
    tool = TOOL
    loose = "score"
    api: LangfuseApi

    def find_page(self, link: TraceLink) -> str | None:
        from rageval_spec.endpoints.service import quote_part

        return f"{self.node.find_url()}/trace/{quote_part(link.trace_id)}"

    api_type = LangfuseApi

    def fetch(self) -> Iterator[Iterable[tuple[str, Any]]]:
        """Everything in the window: observations first, then the scores of their traces."""
        filters = {"environment": self.node.environment} if self.node.environment else {}
        for number, page in enumerate(self.api.observations(self.window, filters), 1):
            yield self.place_rows(number, page)
        for number, page in enumerate(self.api.scores(self.window) if self.node.scores else (), 1):
            yield self.place_rows(number, page, " of the scores")

    def read_items(self, dataset: str) -> Iterator[Trace | None]:
        for page in self.api.dataset_items(dataset):
            for row in page:
                yield read_item(row, dataset, self.node.places, TOOL)

    def spread(self, found: Any) -> Iterator[Any]:
        """A trace with its observations and scores inside, as `GET /traces/ID` gives it, as rows of their own."""
        yield from unnest(found)

    def prepare(self, place: str, row: Mapping[str, Any]) -> TraceRow | None:
        """A row under its trace; None for scores of sessions."""
        found = normalise(row, place)
        kind, trace_id = tell_kind(found), trace_of(found)
        time = nanoseconds_of(found.get("starttime" if kind == "observation" else "timestamp"))
        # Scores can come much later than what they judge, and must not make a trace seem newer.
        when = None if kind == "score" else time or None
        return None if trace_id is None else TraceRow(trace_id, f"{kind}:{found['id']}", when, values.clean(found))

    def assemble(self, rows: Rows) -> Trace | None:
        return make_trace(rows, self.node.places)

    def is_step(self, row: Mapping[str, Any]) -> bool:
        return tell_kind(row) != "score"

    def is_cut(self, rows: Rows) -> bool:
        return is_cut(rows)

    def is_wanted(self, trace: Trace) -> bool:
        """Whether a trace has the name and the environment; not all of Langfuse's endpoints filter by them."""
        node = self.node
        environment = trace.metadata.get("environment")
        return node.name in (None, trace.metadata.get("trace_name")) and (
            node.environment is None or environment in (None, node.environment)
        )


_OF_TRACES = ("input", "output", "sessionid", "userid")
"""What a trace's own row says better than its root."""
_KEPT = ("environment", "release", "version", "tracename")


def make_trace(rows: Sequence[Row], places: RecordedPaths) -> Trace | None:
    """The trace that rows of one trace make; None if none of them has a question."""
    observations = [row for row in rows if tell_kind(row) == "observation"]
    own = next((row for row in rows if tell_kind(row) == "trace"), {})
    scores = [row for row in rows if tell_kind(row) == "score"]
    first = _find_root(observations)
    trace_id = next((found for row in rows if (found := trace_of(row))), None)
    if trace_id is None:
        return None
    metadata = _gather_metadata(own, first)
    root = {"id": trace_id, **first, **{key: own[key] for key in _OF_TRACES if key in own}, "metadata": metadata}
    entry = _make_span(root, trace_id)
    resource = metadata.get("resourceAttributes")
    entry = entry._replace(parent_id=None, resource=resource if isinstance(resource, Mapping) else {})
    spans = [entry, *(_make_span(row, trace_id) for row in observations if row is not first)]
    retrieved = _find_retrieved(observations, first)
    trace = SpanReader(TOOL, places).read_question(entry, spans, found=retrieved)
    if trace is None:
        return None
    started = values.read_time(first.get("starttime")) or values.read_time(own.get("timestamp"))
    corrected = [row for row in scores if is_correction(row)]
    corrections = (values.read_text(row.get("stringvalue")) or values.read_text(row.get("value")) for row in corrected)
    latencies = (values.read_number(row.get("latency")) for row in (own, first))
    known = (one for one in latencies if one is not None and one >= 0)
    total = values.read_number(own.get("totalcost"))
    return replace(
        trace,
        link=_link(trace_id, own, first, started),
        query_id="",
        references=tuple(filter(None, corrections)),
        seconds=next(known, None) if trace.seconds is None else trace.seconds,
        cost=trace.cost if total is None else total,
        started=values.write_time(started),
        feedback=tuple(_list_feedback(scores, observations, first)),
    )


def _make_span(row: Row, trace_id: str) -> Span:
    kind, name, tokens = str(row.get("type")), values.read_text(row.get("name")) or "", _tokens_of(row)
    failed = (values.read_text(row.get("statusmessage")) or "failed") if row.get("level") == "ERROR" else None
    return make_span(
        trace_id,
        row["id"],
        values.read_text(row.get("parentobservationid")),
        name,
        nanoseconds_of(row.get("starttime")),
        nanoseconds_of(row.get("endtime")),
        failed,
        kind="chain" if kind in ("SPAN", "EVENT") else kind,
        input=parse_plain(row.get("input")),
        output=parse_plain(row.get("output")),
        input_tokens=tokens["input"],
        output_tokens=tokens["output"],
        cost=_cost_of(row),
        model=values.read_text(row.get("model")),
        finish_reason=find_end(row.get("metadata")),
        session=values.read_text(row.get("sessionid")),
        user=values.read_text(row.get("userid")),
        metadata=row.get("metadata"),
    )


def is_cut(rows: Sequence[Row]) -> bool:
    """Whether the rows are the later part of a trace: steps without the one that they all belong to."""
    if any(tell_kind(row) == "trace" for row in rows):
        return False
    observations = [row for row in rows if tell_kind(row) == "observation"]
    return not any(_is_marked(row) or "parentobservationid" not in row for row in observations)


def _link(trace_id: str, own: Row, root: Row, started: datetime | None) -> TraceLink:
    project = values.read_text(root.get("projectid")) or values.read_text(own.get("projectid"))
    environment = values.read_text(root.get("environment", own.get("environment")))
    told = {"started": values.write_time(started), "environment": environment}
    return TraceLink(TOOL, trace_id, project=project, others={name: text for name, text in told.items() if text})


def _find_root(observations: Sequence[Row]) -> Row:
    """The observation that stands for the whole trace: a root, the earliest of several."""
    ids = {row["id"] for row in observations}
    marked = [row for row in observations if _is_marked(row)]
    roots = marked or [row for row in observations if values.read_text(row.get("parentobservationid")) not in ids]
    withinput = [row for row in roots if "input" in row]
    return (withinput or roots or [{}])[0]


def _is_marked(row: Row) -> bool:
    return row.get("isrootobservation") in (True, "true", "True", 1)


def _list_feedback(scores: Sequence[Row], observations: Sequence[Row], root: Row) -> Iterator[Feedback]:
    """What scores say, but for those of this program; that of an observation inside the trace is named after it."""
    inner = {row["id"]: values.read_text(row.get("name")) or row["id"] for row in observations if row is not root}
    for row in scores:
        if not is_correction(row) and not _is_ours(row) and (found := read_feedback(row)) is not None:
            of = inner.get(observation_of(row) or "")
            yield found if of is None else replace(found, name=f"{of}.{found.name}")


def _is_ours(row: Row) -> bool:
    """Whether this program sent a score: the id follows from what it is about."""
    about = (trace_of(row), observation_of(row), values.read_text(row.get("name")))
    return bool(row["id"] == make_hex(*(one or "" for one in about)))


def _find_retrieved(observations: Sequence[Row], root: Row) -> dict[str, tuple[Document, ...]]:
    """The documents of each retriever; without any, those of tools and spans whose names say that they retrieve."""
    found = {
        row["id"]: documents
        for row in observations
        if row.get("type") == "RETRIEVER"
        and (documents := questions_and_answers.find_documents(row.get("output"))) is not None
    }
    if any(found.values()):
        return found
    named = {
        row["id"]: documents
        for row in observations
        if row is not root
        and row.get("type") in ("SPAN", "TOOL", "CHAIN")
        and questions_and_answers.retrieves(str(row.get("name")))
        and (documents := questions_and_answers.find_listed_documents(row.get("output")))
    }
    return named or found


def parse_plain(found: Any) -> Any:
    """A text that is quoted as JSON without its quotes; anything else as it is."""
    parsed = values.open_text(found)
    return parsed if isinstance(parsed, str) else found


def _tokens_of(row: Row) -> dict[str, int | None]:
    usage = read_mapping(row.get("usagedetails")) or read_mapping(row.get("usage"))
    found: dict[str, int | None] = {}
    for kind, other in (("input", "prompt"), ("output", "completion")):
        names = [key for key in usage if key.lower().startswith((kind, other)) and "cost" not in key.lower()]
        counted = add_known(values.read_count(usage[name]) for name in names)
        plain = values.read_count(row.get(f"{other}tokens", row.get(f"{kind}usage")))
        found[kind] = plain if counted is None else counted
    return found


def _cost_of(row: Row) -> float | None:
    details = read_mapping(row.get("costdetails"))
    total = values.read_number(details.get("total"))
    return total if total is not None else values.read_number(row.get("totalcost"))


def _gather_metadata(own: Row, root: Row) -> dict[str, Any]:
    kept: dict[str, Any] = values.clean({**read_mapping(root.get("metadata")), **read_mapping(own.get("metadata"))})
    for name in _KEPT:
        if found := values.read_text(own.get(name)) or values.read_text(root.get(name)):
            kept.setdefault("trace_name" if name == "tracename" else name, found)
    if (title := values.read_text(own.get("name")) or values.read_text(root.get("name"))) is not None:
        kept.setdefault("trace_name", title)
    if tags := read_list(own.get("tags")) or read_list(root.get("tags")):
        kept.setdefault("tags", tags)
    return kept


def read_item(found: Any, dataset: str, places: RecordedPaths, where: str) -> Trace | None:
    """The question of an item, under the item's id; None if it has none or is archived."""
    if not isinstance(found, Mapping):
        raise DataError(f"{where}: dataset '{dataset}': an item is not an object")
    row = normalise(found, f"{where}: dataset '{dataset}'")
    question = places.question(row.get("input"))
    if question is None or row.get("status") == "ARCHIVED":
        return None
    link = TraceLink(TOOL, values.read_text(row.get("sourcetraceid")) or row["id"], others={"dataset": dataset})
    metadata = read_mapping(row.get("metadata"))
    return make_item(link, row["id"], question, places, row.get("input"), row.get("expectedoutput"), metadata)
