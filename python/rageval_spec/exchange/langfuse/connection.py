"""Connects to Langfuse with the keys of a project, and reads its API page by page.

The rows are observations, traces, scores and dataset items. Those of the API and those of exports have names that
differ only in style.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from rageval_spec.data.traces import Feedback
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.contracts import require_url
from rageval_spec.exchange.shared.row_groups import list_row_pages
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded.values import open_text, read_number, read_text

if TYPE_CHECKING:
    from rageval_spec.endpoints.service import Service

FIELDS = "core,basic,io,metadata,model,usage,metrics,trace_context"
"""The groups of an observation's fields that are read."""
_ABSENT = frozenset({404, 405, 501})
"""Statuses of a path that an older Langfuse does not have."""
_PAGE, _SMALL_PAGE = 1000, 100
Page = tuple[list[Any], str | None]


class LangfuseApi:
    """The reading side of one project; falls back to older paths where the newer ones are absent."""

    def __init__(self, service: Service, where: str) -> None:
        """Ask nothing yet. `where` begins messages about replies that make no sense."""
        self._service = service
        self._where = where
        self.is_old = False

    def observations(self, window: Mapping[str, str], filters: Mapping[str, str]) -> Iterator[list[Any]]:
        """Pages of observations that began in the window; of an older Langfuse, pages of its traces as well.

        Args:
            window: `from` and `to`, ISO 8601 times; both may be absent.
            filters: the API's own, such as `environment`.

        Raises:
            ServiceError: Langfuse does not answer, or its answer has no rows.
        """
        from rageval_spec.endpoints.service import ServiceError

        asked = {"fields": FIELDS, **filters, **_name_window(window, "StartTime")}
        try:
            yield from self._by_cursor("/v2/observations", asked, _PAGE)
        except ServiceError as error:
            if self.is_old or error.status not in _ABSENT:
                raise
            self.is_old = True
            yield from self._by_number("/traces", {**filters, **_name_window(window, "Timestamp")})
            yield from self._by_number("/observations", {**filters, **_name_window(window, "StartTime")})

    def scores(self, window: Mapping[str, str]) -> Iterator[list[Any]]:
        """Pages of scores from the beginning of the window on: people often judge later.

        Raises:
            ServiceError: Langfuse does not answer, or its answer has no rows.
        """
        from rageval_spec.endpoints.service import ServiceError

        asked = {"fromTimestamp": window["from"]} if "from" in window else {}
        try:
            yield from self._by_cursor("/v3/scores", {"fields": "details,subject,annotation", **asked}, _SMALL_PAGE)
        except ServiceError as error:
            if error.status not in _ABSENT:
                raise
            yield from self._by_number("/v2/scores", asked)

    def dataset_items(self, dataset: str) -> Iterator[list[Any]]:
        """Pages of a dataset's items.

        Raises:
            DataError: there is no such dataset.
            ServiceError: Langfuse does not answer, or its answer has no rows.
        """
        self.check_dataset(dataset)
        yield from self._by_number("/dataset-items", {"datasetName": dataset})

    def check_dataset(self, dataset: str) -> Mapping[str, Any]:
        """The dataset of a name.

        Raises:
            DataError: there is no such dataset.
            ServiceError: Langfuse does not answer.
        """
        from rageval_spec.endpoints.service import ServiceError, quote_part

        try:
            found = self._service.get(f"/v2/datasets/{quote_part(dataset)}")
        except ServiceError as error:
            if error.status == 404:
                raise DataError(f"{self._where}: there is no dataset '{dataset}' in this project") from None
            raise
        if not isinstance(found, Mapping):
            raise ServiceError(f"{self._where}: /v2/datasets: the reply is not a dataset")
        return found

    def _by_cursor(self, path: str, asked: Mapping[str, str], size: int) -> Iterator[list[Any]]:
        def fetch(cursor: str | None) -> Page:
            more = {} if cursor is None else {"cursor": cursor}
            content = self._service.get(path, [*asked.items(), ("limit", str(size)), *more.items()])
            rows, meta = self._read(content, path)
            following = meta.get("cursor", meta.get("nextCursor"))
            return rows, following if isinstance(following, str) else None

        yield from list_row_pages(fetch, f"{self._where}: {path}")

    def _by_number(self, path: str, asked: Mapping[str, str]) -> Iterator[list[Any]]:
        page = 1
        while True:
            numbers = [("page", str(page)), ("limit", str(_SMALL_PAGE))]
            rows, meta = self._read(self._service.get(path, [*asked.items(), *numbers]), path)
            yield rows
            total = meta.get("totalPages")
            # The number of the page guards against a server that gives the same page for ever.
            if not rows or not isinstance(total, int) or page >= total or meta.get("page", page) != page:
                return
            page += 1

    def _read(self, content: Any, path: str) -> tuple[list[Any], Mapping[str, Any]]:
        from rageval_spec.endpoints.service import ServiceError

        rows = content.get("data") if isinstance(content, Mapping) else None
        meta = content.get("meta") if isinstance(content, Mapping) else None
        if not isinstance(rows, list) or not isinstance(meta, Mapping):
            raise ServiceError(f"{self._where}: {path}: the reply has no 'data' and 'meta', as Langfuse's replies do")
        return rows, meta


def _name_window(window: Mapping[str, str], what: str) -> dict[str, str]:
    return {f"{end}{what}": window[end] for end in ("from", "to") if end in window}


CLOUD = "https://cloud.langfuse.com"


class LangfuseConnection(BaseModel):
    """The keys that say which Langfuse and which project."""

    url: str | None = Field(
        default=None,
        description=f"The URL of Langfuse. Default: `$LANGFUSE_BASE_URL`, else `$LANGFUSE_HOST`, else {CLOUD}.",
    )
    public_key: Secret | None = Field(
        default=None, description="The project's public key: `${secret:VAR}`. Default: `$LANGFUSE_PUBLIC_KEY`."
    )
    secret_key: Secret | None = Field(
        default=None, description="The project's secret key: `${secret:VAR}`. Default: `$LANGFUSE_SECRET_KEY`."
    )


def find_url(node: LangfuseConnection, environment: Mapping[str, str] = os.environ) -> str:
    """The URL of the node, of the environment, or of Langfuse's cloud, without a slash at the end."""
    named = node.url or environment.get("LANGFUSE_BASE_URL") or environment.get("LANGFUSE_HOST") or CLOUD
    return named.rstrip("/")


def connect(node: LangfuseConnection, where: str) -> Service:
    """A service for the paths below `/api/public`; opens nothing yet.

    Raises:
        UsageError: there is no key, or the URL cannot be used.
    """
    from rageval_spec.endpoints.service import Service

    url = find_url(node)
    require_url(url, where)
    public, secret = _find_key(node.public_key, "PUBLIC", where), _find_key(node.secret_key, "SECRET", where)
    basic = b64encode(f"{public.reveal()}:{secret.reveal()}".encode()).decode()
    headers = {"Authorization": Secret(f"Basic {basic}", "Basic ${LANGFUSE_KEYS}")}
    return Service(f"{url}/api/public", where, headers=headers, secrets=(public, secret))


def _find_key(given: Secret | None, kind: str, where: str) -> Secret:
    name = f"LANGFUSE_{kind}_KEY"
    if given is not None and given.reveal():
        return given
    if key := os.environ.get(name, "").strip():
        return Secret(key, f"${{{name}}}")
    raise UsageError(f"{where}: there is no {kind.lower()} key; set the environment variable {name}")


FeedbackSource = Literal["annotator", "program", "unknown"]
RowKind = Literal["observation", "trace", "score"]
Row = Mapping[str, Any]
"""A row with normalised names: `traceid` for `traceId`, `trace_id` and `Trace ID`."""
OBSERVATION_TYPES = frozenset({
    "SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL",
})  # fmt: skip
_OTHER_NAMES = {
    "providedmodelname": "model", "totaltokens": "totalusage", "calculatedtotalcost": "totalcost",
    "sourcetraceid": "sourcetraceid", "datasetitemid": "datasetitemid",
}  # fmt: skip
_NAMES: dict[str, str] = {}
_SOURCES: Mapping[str, Literal["annotator", "program"]] = {"ANNOTATION": "annotator", "EVAL": "program"}


def normalise(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The row with normalised names, without its empty values.

    Raises:
        DataError: it has no id; `place` begins the message.
    """
    found: dict[str, Any] = {}
    for key, value in row.items():
        name = _NAMES.get(key)
        if name is None:
            plain = "".join(letter for letter in key.lower() if letter.isalnum())
            name = _NAMES[key] = _OTHER_NAMES.get(plain, plain)
        if value is not None and value != "":
            found.setdefault(name, value)
    if (text := read_text(found.get("id"))) is None:
        raise DataError(
            f"{place}: there is no 'id' in this row of Langfuse; its keys are {', '.join(map(str, row))[:200]}"
        )
    found["id"] = text
    return found


_NESTED = ("observations", "scores", "children")
"""Keys of a trace or an observation whose lists hold rows of their own."""


def unnest(found: Any, above: Row | None = None) -> Iterator[Any]:
    """A row without the rows inside, and those, which then name their trace and the observation that they are part of.

    Langfuse's page writes a trace as `{"trace": {...}, "observations": [...]}`. Other values come as they are.

    Args:
        found: the row.
        above: what the rows inside another one say of it, unless they say it themselves.
    """
    if not isinstance(found, Mapping):
        yield found
        return
    inner = {key: [one for one in found[key] if isinstance(one, Mapping)] for key in _NESTED if _is_list(found, key)}
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


def _is_list(found: Mapping[str, Any], key: str) -> bool:
    return isinstance(found.get(key), list) and any(isinstance(one, Mapping) for one in found[key])


def observation_of(row: Row) -> str | None:
    """The id of the observation that a score is about; None if it is about a whole trace."""
    if isinstance(subject := open_text(row.get("subject")), Mapping):
        return read_text(subject.get("id")) if subject.get("kind") == "observation" else None
    return read_text(row.get("observationid"))


def tell_kind(row: Row) -> RowKind:
    """What a normalised row is."""
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
    source: FeedbackSource = _SOURCES.get(str(row.get("source", "")).upper(), "unknown")
    return Feedback(name, number, label, comment, source, read_text(row.get("authoruserid")))


def is_correction(row: Row) -> bool:
    """Whether a score holds a corrected answer."""
    return str(row.get("datatype", "")).upper() == "CORRECTION"


def read_mapping(found: Any) -> dict[str, Any]:
    """A mapping, also one that is written as JSON, or as the list of pairs that Parquet makes of it; else {}."""
    found = open_text(found)
    if (
        isinstance(found, list)
        and found
        and all(isinstance(one, Mapping) and {"key", "value"} <= one.keys() for one in found)
    ):
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
