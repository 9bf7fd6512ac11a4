"""A file of questions or answers as a spec names it: its format, the tool that wrote it, and its rows.

The values inside a row's objects become columns: at JSONPaths, and where a tool's layout has them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from rageval_spec.dataclass import dataclass, field
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.reading import rows
from rageval_spec.reading.column_meanings import find_spellings, spells_freely
from rageval_spec.reading.column_names import (
    ANSWERS,
    CONTEXTS,
    KNOWN_NAMES,
    QUESTION_IDS,
    QUESTIONS,
    REFERENCES,
    RELEVANT,
    RecordColumn,
)
from rageval_spec.reading.formats.delimited import choose_separator, header_of, read_delimited_batches, separator_of
from rageval_spec.reading.formats.json_files import gather_batches, is_list, read_json_batches, read_remarks
from rageval_spec.reading.formats.parquet import parquet_columns, parquet_objects, read_parquet_batches
from rageval_spec.reading.formats.records import Records, join_records, with_absent
from rageval_spec.reading.formats.row_shapes import OtherFilesError
from rageval_spec.reading.formats.text_files import SEPARATORS, find_encoding
from rageval_spec.reading.missing_columns import choose_keys
from rageval_spec.reading.rows import RowFormat
from rageval_spec.recorded.cited_blocks import unfold_sentences
from rageval_spec.recorded.json_path import JsonPath, PathError, parse_path
from rageval_spec.recorded.tool_layouts import ToolLayout, find_layout, name_layout

if TYPE_CHECKING:
    from rageval_spec.reading.formats.workbooks import SheetRows


C = TypeVar("C", bound=BaseModel)
Row = tuple[str, dict[str, Any]]

_USUAL = frozenset({*QUESTION_IDS, *QUESTIONS, *KNOWN_NAMES, *RELEVANT})
FIRST_ROWS = 20
"""How many rows show what the columns of a file are."""
QUICKLY_READ = 2**20
"""The most bytes of a text file that is read in full to find its columns."""
_PARTS = {"question": "text"}
"""Parts that answers call differently from questions."""
_LISTS = frozenset({"reference", "reference_contexts", "contexts", "context_ids", "relevant"})
_OBJECTS = frozenset({"relevant"})


def _unfold(found: Iterator[Row]) -> Iterator[Row]:
    """The rows, with sentences of TREC's runs as texts. Raises DataError: they are of several runs."""
    first = None
    for place, row in found:
        run = None if (unfolded := unfold_sentences(row)) is row else unfolded.get("run_id")
        first = run if first is None else first
        if run not in (None, first):
            raise DataError(f"{place}: an answer of the run {run!r} after those of {first!r}; give each run a file")
        yield place, unfolded


class RowFile:
    """A file with a row for each question or answer, by default in the format that its name says.

    `layout` is the word of the tool whose layout the file has, `none`, or `auto` to recognise it by its columns.
    `opens_files`: values that are in other files (promptfoo's `file://`) are read from there. `is_typed`: the columns
    of Parquet must have the types of their parts; otherwise each value must fit.
    """

    def __init__(
        self,
        path: Path,
        form: RowFormat | None = None,
        separator: str | None = None,
        sheet: str | None = None,
        layout: str = "auto",
        *,
        opens_files: bool = True,
        is_typed: bool = True,
    ) -> None:
        self.path, self.opens_files, self.is_typed = path, opens_files, is_typed
        self.form: RowFormat = form or rows.row_format_of(path)
        self.separator, self.sheet, self.layout = separator, sheet, layout

    def read(self) -> Iterator[Row]:
        """The place and the values of each row, as in the file; an answer of sentences is text.

        Raises DataError: no rows, or unreadable ones.
        """
        if not self._names_files:
            return self._read_plainly()
        return ((place, rows.open_named_texts(place, _folder_of(place), row)) for place, row in self._read_plainly())

    @cached_property
    def further_files(self) -> tuple[Path, ...]:
        """The files that the rows, or values in rows, are in besides this one; none if they cannot be read."""
        found: dict[Path, None] = {}
        try:
            for place, row in self._read_plainly() if self._names_files else ():
                found[Path(place.rpartition(":")[0])] = None
                for _, name in rows.list_named_texts(row):
                    found[rows.find_below(place, _folder_of(place), name)] = None
        except DataError:
            return ()  # told when the file is read
        return tuple(path for path in found if path != self.path)

    @property
    def _names_files(self) -> bool:
        return self.opens_files and self.tool is not None and self.tool.word == "promptfoo"

    def _read_plainly(self) -> Iterator[Row]:
        if self.form in ("xlsx", "yaml"):
            return iter(self._kept)
        found = rows.read_rows(self.path, self.form, self.separator)
        return _unfold(found) if self.form == "json" else found

    def rows(self, columns: BaseModel | None = None, only: Collection[str] | None = None) -> Iterator[Row]:
        """As `read`, with the columns that the tool's layout and JSONPaths among the names of columns add.

        With `only`, rows may lack other columns than these, where a format can be read without them.

        Raises DataError: whatever `read` raises; a value that the layout needs is in another file.
        """
        unfolding = self.unfolding(columns)
        if unfolding.is_empty and only is not None and self.form == "parquet":
            names = [name for name in self.first_names if name in only]
            return ((f"{self.path}: row {number}", row) for number, row in parquet_objects(self.path, names))
        if unfolding.is_empty:
            return self.read()
        return ((place, unfolding.apply(place, row)) for place, row in self.read())

    def unfolding(self, columns: BaseModel | None) -> Unfolding:
        """How rows get further columns, given the names of columns in the spec."""
        named = _list_named(columns)
        paths = tuple(parse_path(name) for name in named if name.startswith("$"))
        kept = {*named, *(str(path.steps[0]) for path in paths if path.steps)}
        parts = self._list_parts(columns)
        is_placed = self.tool is not None and bool(self.tool.parts) and not spells_freely(self.first_names, parts)
        return Unfolding(self.tool, paths, {} if is_placed else find_spellings(self.first_names, parts, kept))

    def _list_parts(self, columns: BaseModel | None) -> set[str]:
        """The parts for which the spec names a column."""
        fields = () if columns is None else type(columns).model_fields
        return {_PARTS.get(field, field) for field in fields if getattr(columns, field) is not None}

    def resolve(self, columns: C, most: int | None = None) -> C:
        """The names of columns, with those that the tool's layout gives to parts that the spec does not name.

        `most` is how many rows to look at; by default all, because a part can be in later rows only.
        """
        layout = self.tool
        if layout is None or not layout.parts:
            return columns
        wanted = [field for field in type(columns).model_fields if getattr(columns, field) is None]
        known = {part: layout.parts.get(_PARTS.get(part, part), ()) for part in wanted}
        found = self._search({part: names for part, names in known.items() if names}, most)
        for part in wanted:
            inside = layout.objects.get(_PARTS.get(part, part), ()) if part not in found else ()
            only = next(filter(None, (self._find_only_text(column, most) for column in inside)), None)
            if only is not None:
                found[part] = only
        return columns.model_copy(update=found)

    def alters(self, columns: BaseModel) -> bool:
        """Whether the tool's layout gives rows another meaning than the names of their columns alone."""
        layout = self.tool
        if layout is None or layout.is_plain:
            return False
        found = self.resolve(columns)
        added = [getattr(found, field) for field in type(found).model_fields if getattr(columns, field) is None]
        return bool(layout.joined or layout.derive) or any(name is not None and name not in _USUAL for name in added)

    def list_spellings(self, columns: BaseModel) -> list[str]:
        """The known names that columns in other spellings stand for beside exact names of other parts."""
        is_free = spells_freely(self.first_names, self._list_parts(columns))
        return [] if is_free else sorted(self.find_originals(columns))

    @property
    def is_long(self) -> bool:
        """Whether reading all rows takes longer than a check should."""
        return self.form in ("json", "csv") and self.path.is_file() and self.path.stat().st_size > QUICKLY_READ

    def list_names(self, columns: BaseModel) -> list[str] | None:
        """The names of all columns, with the paths in `columns` that lead to something; None if that takes long."""
        if self.is_long:
            next(self.read())
            paths = (name for name in _list_named(columns) if name.startswith("$"))
            return None if self.form == "json" else [*self.first_names, *self.find_originals(columns), *paths]
        if self.form == "parquet" and self.unfolding(columns).is_empty:
            return self._read_header()
        return list(dict.fromkeys([*self.first_names, *(name for _, row in self.rows(columns) for name in row)]))

    def unfold_names(self, columns: BaseModel) -> list[str]:
        """The names of the columns of the first rows, as `rows` gives them. Raises DataError: these cannot be read."""
        unfolding = self.unfolding(columns)
        if self.form in ("csv", "parquet") and unfolding.is_empty:
            return self._read_header()
        first = islice(self.rows(columns), FIRST_ROWS if not unfolding.is_empty else 1)
        return list(dict.fromkeys(name for _, row in first for name in row))

    def records(self, columns: BaseModel, wanted: Sequence[RecordColumn]) -> Records:
        """Columns of all rows; at once, where that finds the same, and else as text. Raises DataError: one is wrong."""
        if self.unfolding(columns).is_empty and (self.form != "parquet" or self.is_typed):
            found = join_records([*self.batches(columns, wanted)])
            if self.form not in ("csv", "parquet") or not _holds_turns(found):
                return found
        return join_records([*self._gather(columns, wanted)])

    def batches(self, columns: BaseModel, wanted: Sequence[RecordColumn]) -> Iterator[Records]:
        """Columns of all rows, some megabytes at a time, and always with the texts as they are.

        A workbook, a YAML file and a single JSON document are read whole first. Raises DataError: a row is wrong.
        """
        is_direct = self.unfolding(columns).is_empty
        if is_direct and self.form == "json":
            return read_json_batches(self.path, wanted)
        if is_direct and self.form == "csv":
            return read_delimited_batches(self.path, wanted, self.separator or choose_separator(self.path))
        if is_direct and self.form == "parquet":
            return read_parquet_batches(self.path, wanted)
        return self._gather(columns, wanted)

    def _gather(self, columns: BaseModel, wanted: Sequence[RecordColumn]) -> Iterator[Records]:
        names = dict.fromkeys(name for _, row in self.rows(columns) for name in row)
        keys = choose_keys(str(self.path), wanted, list(names))
        for records in gather_batches(self.rows(columns), keys):
            yield Records(with_absent(records.frame, wanted), records.locate)

    @cached_property
    def tool(self) -> ToolLayout | None:
        """The layout of the tool that wrote the file; None if it is no tool's, or if the file cannot be read."""
        keeps_lists = self.form == "json" and is_list(self.path)
        if self.layout not in ("auto", "none"):
            return name_layout(self.layout, self.first_names, keeps_lists=keeps_lists)
        return None if self.layout == "none" else find_layout(self.first_names, keeps_lists=keeps_lists)

    @cached_property
    def first_names(self) -> list[str]:
        """The names of the columns of the first rows; none if the file cannot be read."""
        try:
            if self.form in ("csv", "parquet"):
                return [name for name in self._read_header() if name]
            return list(dict.fromkeys(name for _, row in self._first for name in row))
        except DataError:
            return []

    def _read_header(self) -> list[str]:
        if self.form == "parquet":
            return parquet_columns(self.path)
        return header_of(self.path, self.separator or choose_separator(self.path))

    def list_details(self) -> Iterator[str]:
        """What was assumed about the file's format, and whose layout it has."""
        if self.form == "xlsx":
            yield f"sheet '{self._sheet.sheet}'"
            if self._sheet.header != 1:
                yield f"header in row {self._sheet.header}"
        elif self.form == "csv" and self.separator is None:
            separator = choose_separator(self.path)
            if separator != separator_of(self.path):
                yield f"separated by {SEPARATORS[separator]}"
        if self.form in ("csv", "json", "yaml") and (encoding := find_encoding(self.path)) is not None:
            yield f"{encoding} text"
        if self.tool is not None:
            joined = " and ".join(f"'{name}'" for name in self.tool.joined if name in self.first_names)
            yield f"as {self.tool.tool} writes it" + (f", which joins the texts of {joined} by '|'" if joined else "")

    def find_originals(self, columns: BaseModel) -> dict[str, str]:
        """The names in the file of the columns that are known by a name in another spelling."""
        return {known: name for name, known in self.unfolding(columns).spellings.items()}

    @property
    def remarks(self) -> Mapping[str, Any]:
        """What the file says about itself beside its rows."""
        if self.form == "yaml":
            from rageval_spec.reading.formats.yaml_files import read_yaml_document

            try:
                return read_yaml_document(self.path).remarks
            except OtherFilesError:
                return {}
        return read_remarks(self.path) if self.form == "json" else {}

    @cached_property
    def _kept(self) -> list[Row]:
        """The rows of a format that is slow to read."""
        if self.form == "yaml":
            return list(rows.read_rows(self.path, self.form))
        return [(place, rows.open_turns(place, row)) for place, row in self._sheet.rows]

    @cached_property
    def _sheet(self) -> SheetRows:
        from rageval_spec.reading.formats.workbooks import read_workbook_rows

        return read_workbook_rows(self.path, self.sheet)

    @property
    def _first(self) -> list[Row]:
        return list(islice(self._read_plainly(), FIRST_ROWS))

    def _search(self, known: Mapping[str, Sequence[str]], most: int | None) -> dict[str, str]:
        """For each part, the best of its places that has a value in any row."""
        places = {name: _split_place(name) for names in known.values() for name in names}
        roots = {root for root, _, _ in places.values()}
        best: dict[str, int] = {}
        unfolding = Unfolding(self.tool)
        for place, row in islice(self.read(), most):
            opened = open_texts(unfolding.apply(place, row), roots)
            for part, names in known.items():
                for rank, name in enumerate(names[: best.get(part, len(names))]):
                    if _is_usable(part, _find_at(places[name], opened)):
                        best[part] = rank
                        break
            if best.keys() == known.keys() and not any(best.values()):
                break
        return {part: known[part][rank] for part, rank in best.items()}

    def _find_only_text(self, column: str, most: int | None) -> str | None:
        """The path to the only text in the objects of a column; None if there are several."""
        keys: set[str] = set()
        for _, row in islice(self.read(), most):
            inner = open_text(row.get(column))
            entries = inner.items() if isinstance(inner, dict) else ()
            keys |= {key for key, value in entries if isinstance(value, str)}
            if len(keys) > 1:
                return None
        return f"$.{column}[{_quote(keys.pop())}]" if keys else None


def _holds_turns(records: Records) -> bool:
    """Whether a text may be a conversation, which `RowFile.rows` replaces by its last turn."""
    texts = records.frame.select(pl.col(pl.String).str.strip_chars_start().str.starts_with("[").any())
    return any(texts.row(0)) if texts.width else False


def _folder_of(place: str) -> Path:
    """The folder of the file that a row is in, by the row's place: `tests/a.yaml:7`."""
    return Path(place.rpartition(":")[0]).parent


Place = tuple[str, str | None, JsonPath | None]
"""A place in a row: its column, and a key in the column's object or a longer path."""


def _split_place(name: str) -> Place:
    if not name.startswith("$"):
        return name, None, None
    path = parse_path(name)
    root, *rest = path.steps
    return (str(root), str(rest[0]), None) if len(rest) == 1 else (str(root), None, path)


def _find_at(place: Place, row: Mapping[str, Any]) -> Any:
    """The value at a place, or None. Most rows lack most places, so that the common ones are looked up directly."""
    root, key, path = place
    value = row.get(root)
    if path is not None:
        return path.find_or(row, None) if value is not None else None
    return value if key is None else value.get(key) if isinstance(value, dict) else None


def _list_named(columns: BaseModel | None) -> list[str]:
    values = [] if columns is None else [getattr(columns, field) for field in type(columns).model_fields]
    return [value for value in values if isinstance(value, str)]


def _quote(key: str) -> str:
    escaped = key.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _is_usable(part: str, value: Any) -> bool:
    """Whether a value can be the part: a text or a number, or for some parts a list."""
    opened = open_text(value)
    if isinstance(opened, list):
        return part in _LISTS and len(opened) > 0
    if isinstance(opened, Mapping):
        return part in _OBJECTS and len(opened) > 0
    return opened not in (None, "") and not isinstance(opened, bool)


ABSENT = object()
"""What `find_value` gives where a row has nothing."""
JOINER = "|"
_TAKEN = frozenset({*QUESTION_IDS, *QUESTIONS, *REFERENCES, *ANSWERS, *CONTEXTS, "answer", "context"})
"""Names that an entry of `metadata` does not give to a row: the row's own columns say what they stand for."""


@dataclass(frozen=True)
class Unfolding:
    """How the rows of a file become rows of columns: by a tool's layout, and the JSONPaths that are columns.

    `spellings` has the names of columns that are known ones in another spelling, each with the known name.
    """

    layout: ToolLayout | None = None
    paths: tuple[JsonPath, ...] = ()
    spellings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether rows stay as they are."""
        layout = self.layout
        is_plain = layout is None or (layout.is_plain and not layout.spread)
        return is_plain and not self.paths and not self.spellings

    def apply(self, place: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row with its further columns; its own come first. Raises DataError: one that a path names is unclear."""
        found = {self.spellings.get(name, name): value for name, value in row.items()}
        if self.layout is not None:
            self._apply_layout(place, self.layout, found)
        opened = open_texts(found, {str(path.steps[0]) for path in self.paths if path.steps})
        for path in self.paths:
            value = find_value(place, path, opened)
            if value is not ABSENT:
                found[path.text] = value
        return found

    def _apply_layout(self, place: str, layout: ToolLayout, row: dict[str, Any]) -> None:
        if layout.derive is not None:
            try:
                row.update(layout.derive(row))
            except ValueError as error:
                raise DataError(f"{place}: {error}") from error
        for column in layout.spread:
            inner = open_text(row.get(column))
            if isinstance(inner, Mapping):
                row.update({str(k): v for k, v in inner.items() if str(k) not in row and str(k) not in _TAKEN})
        for column in layout.joined:
            if column in row:
                row[column] = split_joined(row[column])


def split_joined(value: Any) -> Any:
    """The texts that a tool joined with a bar. A list, also one that is written as text, stays as it is."""
    is_joined = isinstance(value, str) and value and isinstance(open_text(value), str)
    return value.split(JOINER) if is_joined else value


def find_value(place: str, path: JsonPath, row: Mapping[str, Any]) -> Any:
    """The value at a path, or `ABSENT`. Raises DataError: only some of the items have what follows `[*]`."""
    try:
        return path.find(row)
    except PathError as error:
        if path.lacks_some(row):
            raise DataError(f"{place}: {str(error).replace('the reply', 'the row')}") from error
        return ABSENT


def open_texts(row: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """The row with the objects and lists that some columns hold as text, as they do in CSV files."""
    return {**row, **{column: open_text(row[column]) for column in columns if column in row}}


def open_text(value: Any) -> Any:
    """The object or list that a text holds as JSON or as Python prints it; anything else unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    found = rows.parse_any(value)
    return found if isinstance(found, dict | list) else value
