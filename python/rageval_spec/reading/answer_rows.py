"""Reads answers in the formats of different systems: texts, contexts as texts or objects, ids and numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.reading.json_values import list_keys, name_kind

if TYPE_CHECKING:
    import polars as pl

TEXT_KEYS = ("text", "page_content", "content", "contents", "pageContent", "passage", "chunk", "body")
ID_KEYS = ("doc_id", "document_id", "_id", "id", "docid")
SCORE_KEYS = ("score", "similarity", "relevance_score")
_SHOWN = 60
_LATER = frozenset({"trace", "steps"})
"""Fields of an answer that earlier versions did not store."""


class UnusableReplyError(ValueError):
    """A reply is not an answer; the message says why."""


class BrokenTextError(UnusableReplyError):
    """A text contains half a surrogate pair, which files and reports cannot store."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One query's answer: a row of the answers' table less its query.

    Attributes:
        seconds: how long it took. Like the other fields, it is None if unknown.
        cost: in US dollars.
        error: why there is no answer.
        steps: what an agent did, as `agent_steps.dump_steps` writes it.
        trace: where a tracing tool has the answer, as `TraceLink.dump` writes it.
    """

    answer: str | None = None
    contexts: tuple[str, ...] | None = None
    context_ids: tuple[str, ...] | None = None
    scores: tuple[float, ...] | None = None
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    error: str | None = None
    trace: str | None = None
    steps: str | None = None

    def pack(self) -> bytes:
        return json.dumps(self.to_dict()).encode("ascii")

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON types. Fields that were added later are left out if they are None."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        known = ((key, value) for key, value in values if value is not None or key not in _LATER)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in known}

    @classmethod
    def unpack(cls, content: bytes) -> AnswerRow | None:
        """The packed row; None if the content is something else, for example because the store is damaged."""
        try:
            found = json.loads(content)
            if set(found) | _LATER != {field.name for field in fields(cls)}:
                return None
            values: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in found.items()
            }
            return cls(**values)
        except (ValueError, TypeError):
            return None


class Contexts(NamedTuple):
    """The texts that an answer is based on, with the ids and scores of their documents if known."""

    texts: tuple[str, ...]
    ids: tuple[str, ...] | None = None
    scores: tuple[float, ...] | None = None


def table_of(rows: Iterable[tuple[str, AnswerRow]]) -> pl.DataFrame:
    """The answers' table of pairs of a query's id and its row."""
    from rageval_spec.data.tables import answers_table

    return answers_table({"query_id": query_id, **row.to_dict()} for query_id, row in rows)


def is_missing(value: Any) -> bool:
    """Whether a field of a file is empty: null, an empty text, or the NaN that data frames write for null."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def read_text(value: Any, what: str) -> str:
    """A text. A number or a boolean is written as in JSON.

    Raises:
        UnusableReplyError: it is null, a list or an object.
        BrokenTextError: it contains half a surrogate pair.
    """
    if value is None:
        raise UnusableReplyError(f"{what} is null")
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if not isinstance(value, str):
        raise UnusableReplyError(f"{what} must be text, not {name_kind(value)}: {_show(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = ord(value[error.start])
        raise BrokenTextError(f"{what} has half a surrogate pair, \\u{half:x}, so it is not valid text") from None
    return str(value)


def read_contexts(value: Any, what: str = "contexts") -> Contexts:
    """Contexts: a text, a list of texts, or a list of objects with a text and optionally an id and a score.

    Raises:
        UnusableReplyError: they are something else, or only some items have an id or a score.
    """
    items = [value] if isinstance(value, (str, Mapping)) else value
    if not isinstance(items, (list, tuple)):
        raise UnusableReplyError(f"{what} must be a list of texts or of objects, not {name_kind(value)}")
    objects = [item for item in items if not isinstance(item, str)]
    if not objects:
        return Contexts(tuple(read_text(item, f"{what}[{place}]") for place, item in enumerate(items)))
    if len(objects) < len(items):
        raise UnusableReplyError(f"{what} has both texts and objects; make all of them the same")
    read = [_as_mapping(item, f"{what}[{place}]") for place, item in enumerate(items)]
    texts = tuple(_text_of(item, f"{what}[{place}]") for place, item in enumerate(read))
    ids = _all_or_none(read, ID_KEYS, what)
    scores = _all_or_none(read, SCORE_KEYS, what)
    return Contexts(
        texts,
        None if ids is None else tuple(read_id(found, f"{what}[{place}].id") for place, found in enumerate(ids)),
        None
        if scores is None
        else tuple(read_amount(found, f"{what}[{place}].score", low=-math.inf) for place, found in enumerate(scores)),
    )


def read_ids(value: Any, what: str = "context_ids") -> tuple[str, ...]:
    """A list of ids, or a single one. Each is text or a whole number.

    Raises:
        UnusableReplyError: they are something else.
    """
    items = value if isinstance(value, (list, tuple)) else [value]
    return tuple(read_id(item, f"{what}[{place}]") for place, item in enumerate(items))


def read_id(value: Any, what: str) -> str:
    """An id as text; `7.0` is `7`.

    Raises:
        UnusableReplyError: it is neither text nor a whole number, or is empty.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, Integral)):
        raise UnusableReplyError(f"{what} must be text or a whole number, not {_show(value)}")
    text = read_text(str(value), what)
    if not text.strip():
        raise UnusableReplyError(f"{what} is empty")
    return text


def read_count(value: Any, what: str) -> int:
    """A whole number of at least 0, also as text.

    Raises:
        UnusableReplyError: it is something else, such as NaN.
    """
    number = read_amount(value, what)
    if not number.is_integer() or number > 2**53:
        raise UnusableReplyError(f"{what} must be a whole number, not {_show(value)}")
    return int(number)


def read_amount(value: Any, what: str, low: float = 0.0) -> float:
    """A finite number of at least `low`, also as text.

    Raises:
        UnusableReplyError: it is something else, such as NaN.
    """
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, (Real, str)) else float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < low:
        least = "" if low == -math.inf else f" of at least {low:g}"
        raise UnusableReplyError(f"{what} must be a number{least}, not {_show(value)}")
    return number


def _as_mapping(item: Any, what: str) -> Mapping[str, Any]:
    if isinstance(item, Mapping):
        return item
    raise UnusableReplyError(f"{what} must be text or an object, not {name_kind(item)}")


def _text_of(item: Mapping[str, Any], what: str) -> str:
    key = next((key for key in TEXT_KEYS if item.get(key) is not None), None)
    if key is None:
        wanted = " or ".join(repr(key) for key in TEXT_KEYS[:3])
        raise UnusableReplyError(f"{what} has no {wanted}; it has {list_keys(list(item))}")
    return read_text(item[key], f"{what}.{key}")


def _all_or_none(items: Sequence[Mapping[str, Any]], keys: Sequence[str], what: str) -> list[Any] | None:
    """The values of the first key that any item has, or None."""
    key = next((key for key in keys if any(item.get(key) is not None for item in items)), None)
    if key is None:
        return None
    absent = next((place for place, item in enumerate(items) if item.get(key) is None), None)
    if absent is not None:
        raise UnusableReplyError(f"{what}[{absent}] has no {key!r}, although others have one")
    return [item[key] for item in items]


def _show(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (ValueError, TypeError, RecursionError):
        text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
