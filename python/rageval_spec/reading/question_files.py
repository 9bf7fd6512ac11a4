"""Reads what files say about questions besides their text: gold answers, contexts, answerability, conditions.

The names are those of ragas (old and new), DeepEval (both spellings) and common question answering sets. Columns that
no part is read from are kept as they are: difficulty, category, tags, expectations.

Duplicate ids in small files are found before anything runs.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data.tables import references_of, share_repeats
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.reading.column_meanings import find_question_names, find_rivals
from rageval_spec.reading.column_names import QuestionColumns
from rageval_spec.reading.missing_columns import explain_rivals, refuse_absent
from rageval_spec.reading.rows import parse_list
from rageval_spec.recorded.answers_and_steps import UnusableReplyError, is_missing, read_contexts, read_text

if TYPE_CHECKING:
    from rageval_spec.data.samples import Part


_PARTS = ("reference", "reference_contexts", "answerable", "unanswerable", "group", "condition")
_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


class QuestionRow(NamedTuple):
    """One row: its line, its question, and its values by name."""

    place: str
    query_id: str
    values: Mapping[str, Any]


def references_table(
    path: Path, read_rows: Callable[[], Iterable[QuestionRow]], columns: QuestionColumns, setting: str
) -> pl.DataFrame | None:
    """`tables.REFERENCES`, one row per question; None if no question has any of these fields.

    `read_rows` gives the rows. They are read again if later rows have columns that change what is read from the first.
    `setting` is the key of the spec that gives names to columns. A gold answer that is empty is none.

    Raises DataError: a column that the spec names is nowhere; a value that is not what it should be.
    """
    present: set[str] = set()
    names = find_question_names(columns, present)
    found: _References | None = _References()
    for row in read_rows():
        if row.values.keys() - present:
            present.update(row.values)
            before, names = names, find_question_names(columns, present)
            if names != before and found is not None and len(found):
                found = None
        try:
            if found is not None:
                found.append(_known(row, names))
        except DataError:
            found = None  # told below, if what is read then is still wrong
    names = _choose(path, columns, present, setting)
    if not any(name in present for known in names.values() for name in known):
        return None
    if found is None:
        found = _References()
        for row in read_rows():
            found.append(_known(row, names))
    return found.join()


class _References:
    """Rows of a references table, which are put into its columns a few at a time."""

    def __init__(self) -> None:
        self._frames: list[pl.DataFrame] = []
        self._waiting: list[tuple[Any, ...]] = []

    def append(self, row: tuple[Any, ...]) -> None:
        self._waiting.append(row)
        if len(self._waiting) == _ROWS_AT_ONCE:
            self._frames.append(share_repeats(references_of(self._waiting)))
            self._waiting = []

    def join(self) -> pl.DataFrame:
        return pl.concat([*self._frames, references_of(self._waiting)])

    def __len__(self) -> int:
        return len(self._frames) + len(self._waiting)


_ROWS_AT_ONCE = 4096


def _choose(path: Path, columns: QuestionColumns, present: Collection[str], setting: str) -> dict[str, tuple[str, ...]]:
    mapped = {part: name for part in _PARTS if (name := getattr(columns, part)) is not None}
    refuse_absent(path, mapped, present, setting, "")
    if columns.reference is None and (rivals := find_rivals(present)):
        raise DataError(f"{path}: {'; '.join(explain_rivals(rivals, 'reference', setting))}")
    return find_question_names(columns, present)


_PARTS_OF_SAMPLES: Mapping[str, Part] = {
    "reference": "reference",
    "reference_contexts": "reference_contexts",
    "answerable": "answerable",
    "unanswerable": "answerable",
    "group": "group",
    "condition": "condition",
    "relevant": "relevant",
    "nuggets": "nuggets",
}


def find_filled(rows: Iterable[Mapping[str, Any]], names: Mapping[str, Sequence[str]]) -> frozenset[Part]:
    """The parts of samples that any row has a value for; `names` are the columns of each, `relevant` among them."""
    wanted = {part: names.get(part, ()) for part in _PARTS_OF_SAMPLES}
    filled: set[Part] = set()
    for row in rows:
        for part, known in [*wanted.items()]:
            if any(not is_missing(value := row.get(name)) and value not in ([], {}) for name in known):
                filled.add(_PARTS_OF_SAMPLES[part])
                del wanted[part]
        if not wanted:
            break
    return frozenset(filled)


def _known(row: QuestionRow, names: Mapping[str, tuple[str, ...]]) -> tuple[Any, ...]:
    return (
        row.query_id,
        _read(row, names["reference"], _read_references) or [],
        _read(row, names["reference_contexts"], _read_contexts),
        _read_answerable(row, names),
        _read(row, names["group"], read_text),
        _read(row, names["condition"], read_text),
    )


def _read(row: QuestionRow, names: Iterable[str], read: Callable[[Any, str], Any]) -> Any:
    """The first of the named values that is neither null nor an empty text."""
    for name in names:
        value = row.values.get(name)
        if is_missing(value):
            continue
        try:
            return read(parse_list(row.place, f"'{name}'", value), f"'{name}'")
        except UnusableReplyError as error:
            raise DataError(f"{row.place}: {error}") from error
    return None


def _read_references(value: Any, what: str) -> list[str]:
    if isinstance(value, Mapping) and isinstance(value.get("text"), (list, tuple)):  # SQuAD: texts and their places
        value = value["text"]
    items = value if isinstance(value, (list, tuple)) else [value]
    texts = [read_text(item, f"{what}[{place}]" if items is value else what) for place, item in enumerate(items)]
    return list(dict.fromkeys(text for text in texts if text.strip()))


def _read_contexts(value: Any, what: str) -> list[str]:
    if isinstance(value, Mapping):  # a data frame's columns in the place of its rows, as hubs keep HotpotQA, PubMedQA
        value = next((value[key] for key in ("sentences", "contexts") if isinstance(value.get(key), list)), value)
    if isinstance(value, (list, tuple)):
        value = [_join_sentences(item) for item in value]
    return list(read_contexts(value, what).texts)


def _join_sentences(item: Any) -> Any:
    """A list of sentences, or a title and such a list, as HotpotQA has them, become the sentences' text."""
    is_pair = isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[1], (list, tuple))
    sentences = item[1] if is_pair else item
    is_text = isinstance(sentences, (list, tuple)) and all(isinstance(text, str) for text in sentences)
    return "".join(sentences) if is_text else item


def _read_answerable(row: QuestionRow, names: Mapping[str, tuple[str, ...]]) -> bool | None:
    found = _read(row, names["answerable"], _read_truth)
    if found is not None:
        return bool(found)
    contrary = _read(row, names["unanswerable"], _read_truth)
    return None if contrary is None else not contrary


def _read_truth(value: Any, what: str) -> bool:
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip().lower()
    if text in _YES or text in _NO:
        return text in _YES
    raise UnusableReplyError(f"{what} must be true or false, not {str(value)[:60]!r}")


def other_columns_table(rows: Iterable[tuple[str, Mapping[str, Any]]], names: Collection[str]) -> pl.DataFrame | None:
    """`query_id, columns`: for each row, the values of the columns `names` as a JSON object with sorted keys.

    A name that a row lacks is not in its object. None if there are no names.

    The rows are query ids and named values.
    """
    if not names:
        return None
    schema = {"query_id": pl.String, "columns": pl.String}
    frames = [pl.DataFrame(schema=schema)]
    kept = ((query_id, dump_columns({name: row[name] for name in names if name in row})) for query_id, row in rows)
    while block := list(islice(kept, _ROWS_AT_ONCE)):  # Python's texts take more memory than the table
        frames.append(pl.DataFrame(block, schema=schema, orient="row"))
    return pl.concat(frames)


def dump_columns(values: Mapping[str, Any]) -> str:
    """The values as a compact JSON object with sorted keys.

    Numbers that JSON does not have (NaN, infinity) become null, bytes become base64, and dates and other values become
    text. Half of a surrogate pair stays an escape.
    """
    try:
        text = _dump(values)
    except ValueError:
        text = _dump(_without_infinities(values))
    return text.encode("utf-8", "backslashreplace").decode()


def _dump(values: Any) -> str:
    return json.dumps(
        values, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_as_text
    )


def _as_text(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _without_infinities(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_infinities(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_MOST_BYTES = 8_000_000
"""Larger files are checked when they are read: at this size, the check takes as long as `validate` itself."""
_COMPRESSED = (".gz", ".zst")


def find_twice(path: Path, rows: Iterable[tuple[str, Mapping[str, Any]]], keys: Sequence[str]) -> str | None:
    """The first duplicate query id and where it is; None if there is no duplicate or the file is too large.

    The rows are places (`file:line`) and values; of `keys`, the first one in a row is its id. Rows without any are
    skipped.
    """
    try:
        if path.stat().st_size > (_MOST_BYTES // 8 if path.suffix in _COMPRESSED else _MOST_BYTES):
            return None
        seen: dict[str, str] = {}
        for place, row in rows:
            query_id = next((row[key] for key in keys if key in row), None)
            if isinstance(query_id, str | int) and (first := seen.setdefault(str(query_id), place)) != place:
                return f"{place}: the query {str(query_id)!r} is listed twice, first at {first}"
    except (DataError, OSError):
        pass  # reported when the file is read
    return None
