"""Connects to Langfuse with the keys of a project, and reads its API page by page.

The rows are observations, traces, scores and dataset items. Those of the API and those of exports have names that
differ only in style.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count
from typing import Any, Literal

from pydantic import BaseModel, Field

from rageval_spec.data.traces import Feedback
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.connections import (
    ABSENT,
    ToolApi,
    choose_url,
    list_row_pages,
    read_key,
    require_key,
    require_url,
)
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded.values import open_text, read_number, read_text

FIELDS = "core,basic,io,metadata,model,usage,metrics,trace_context"
"""The groups of an observation's fields that are read."""
_PAGE, _SMALL_PAGE = 1000, 100
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


def find_url(node: LangfuseConnection) -> str:
    """The URL of the node, of the environment, or of Langfuse's cloud."""
    return choose_url(node.url, ("LANGFUSE_BASE_URL", "LANGFUSE_HOST"), CLOUD)


class LangfuseApi(ToolApi):
    """One project, below `/api/public`; falls back to older paths where the newer ones are absent."""

    def __init__(self, node: LangfuseConnection, where: str) -> None:
        from rageval_spec.endpoints.service import Service

        url = require_url(find_url(node), where)
        public = require_key(node.public_key, where, "LANGFUSE_PUBLIC_KEY", what="public key")
        secret = require_key(node.secret_key, where, "LANGFUSE_SECRET_KEY", what="secret key")
        basic = b64encode(f"{public.reveal()}:{secret.reveal()}".encode()).decode()
        headers = {"Authorization": Secret(f"Basic {basic}", "Basic ${LANGFUSE_KEYS}")}
        super().__init__(Service(f"{url}/api/public", where, headers=headers, secrets=(public, secret)), where)
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
            yield from self._by_cursor("/v2/observations", asked, _PAGE)
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
            yield from self._by_cursor("/v3/scores", {"fields": "details,subject,annotation", **asked}, _SMALL_PAGE)
        except ServiceError as error:
            if error.status not in ABSENT:
                raise
            yield from self._by_number("/v2/scores", asked)

    def dataset_items(self, dataset: str) -> Iterator[list[Any]]:
        """Pages of a dataset's items."""
        self.check_dataset(dataset)
        yield from self._by_number("/dataset-items", {"datasetName": dataset})

    def check_dataset(self, dataset: str) -> Mapping[str, Any]:
        """The dataset of a name."""
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

    def _by_cursor(self, path: str, asked: Mapping[str, str], size: int) -> Iterator[list[Any]]:
        def fetch(cursor: dict[str, str]) -> tuple[list[Any], Any]:
            rows, meta = self._ask(path, {**asked, "limit": str(size), **cursor})
            return rows, meta.get("cursor", meta.get("nextCursor"))

        return list_row_pages(fetch, f"{self.where}: {path}")

    def _by_number(self, path: str, asked: Mapping[str, str]) -> Iterator[list[Any]]:
        for page in count(1):
            rows, meta = self._ask(path, {**asked, "page": str(page), "limit": str(_SMALL_PAGE)})
            yield rows
            total = meta.get("totalPages")
            # The number of the page guards against a server that gives the same page for ever.
            if not rows or not isinstance(total, int) or page >= total or meta.get("page", page) != page:
                return

    def _ask(self, path: str, asked: Mapping[str, str]) -> tuple[list[Any], Mapping[str, Any]]:
        content = self.service.get(path, [*asked.items()])
        message = f"{self.where}: {path}: the reply has no 'data' and 'meta', as Langfuse's replies do"
        return read_key(content, "data", list, message), read_key(content, "meta", Mapping, message)


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
    source = _SOURCES.get(str(row.get("source", "")).upper())
    return Feedback(name, number, label, comment, source or "unknown", read_text(row.get("authoruserid")))


def is_correction(row: Row) -> bool:
    """Whether a score holds a corrected answer."""
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
