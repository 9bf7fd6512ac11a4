"""`file`: a run, or answers, made elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data.outcomes import Note, TakenOver
from rageval_spec.data.tables import Collection, document_texts
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError, UsageError
from rageval_spec.kernels.inputs import check_bounds
from rageval_spec.libraries import compile_later, pl
from rageval_spec.plugin import Answering, GeneratingNode, InputFile, System
from rageval_spec.plugin.plugin import FileReading
from rageval_spec.reading.column_meanings import find_answer_names, holds_answers, list_other_answer_columns
from rageval_spec.reading.column_names import RUN, AnswerColumns
from rageval_spec.reading.formats.records import Records, run_table
from rageval_spec.reading.formats.row_shapes import LIST_KEYS
from rageval_spec.reading.formats.text_files import COMPRESSED, ForeignFileError, format_of, text_lines
from rageval_spec.reading.missing_columns import advise_answers, explain_ambiguity, find_absent
from rageval_spec.reading.row_sources import RowFile, open_text
from rageval_spec.reading.rows import RowFormat
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.recorded.tool_layouts import Layout
from rageval_spec.store.stored_tables import load_table
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.reading.answer_files import Matched

Format = Literal["trec", "json", "jsonl", "csv", "parquet", "xlsx", "yaml"]
FORMATS: dict[str, Format] = {
    "json": "json",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "csv": "csv",
    "tsv": "csv",
    "parquet": "parquet",
    "xlsx": "xlsx",
    "xlsm": "xlsx",
    "yaml": "yaml",
    "yml": "yaml",
}
"""The format by a file's suffix. Any other suffix means a TREC run."""
_RUN = compile_later(r'\s*\{\s*"(?P<query>(?:[^"\\]|\\.)*)"\s*:\s*\{\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:\s*-?\d)')
"""The beginning of `{query: {document: score}}`."""
_BEGINNING = 4096
_MOST_DESCRIBED = 1000
"""How many rows show whether a file holds answers, and what its columns are."""
_UNSHOWN = ("milliseconds", "named_steps")
_UNWRAPPED = ("input_tokens", "output_tokens")
"""Names that `unwrap` gives to what a response of promptfoo holds."""
_ROWS: dict[Format, RowFormat] = {"csv": "csv", "parquet": "parquet", "xlsx": "xlsx", "yaml": "yaml"}
"""Formats of rows; all others are JSON."""


class FileNode(GeneratingNode):
    """A file with a run, or with answers and their contexts, made elsewhere. Plain, `.gz` or `.zst`."""

    path: str | dict[str, str] = Field(description="The file. With several datasets, a map from dataset to file.")
    format: Literal["auto", "trec", "json", "jsonl", "csv", "parquet", "xlsx", "yaml"] = Field(
        default="auto",
        description=(
            "For a run: trec: six columns, `query Q0 document rank score tag`; json: `{query: {document: score}}`; "
            "jsonl, csv and parquet: columns `query_id`, `doc_id`, `score`. For answers: json: a list of objects; "
            "jsonl, csv, parquet, yaml and xlsx (an Excel sheet): one answer per row. auto: by the file's suffix; trec "
            "for unknown suffixes."
        ),
    )
    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description="The separator of csv. Default: what the header shows; a comma, or a tab for `.tsv`, if it can be.",
    )
    sheet: str | None = Field(
        default=None, description="The sheet of a workbook. Default: the only visible one with rows or with questions."
    )
    layout: Layout = Field(
        default="auto",
        description=(
            "The tool whose layout a file of answers has. auto: recognised by the names of the columns; none: no "
            "tool's, so the columns are read by their names."
        ),
    )
    holds: Literal["auto", "run", "answers"] = Field(
        default="auto",
        description="What the file contains. auto: answers if a column at its beginning is of answers or contexts.",
    )
    follow: bool = Field(
        default=False,
        description="For `monitor`: read the file, or the folder of files, as it grows: JSON Lines, one trace a line.",
    )
    columns: AnswerColumns = Field(
        default_factory=AnswerColumns,
        description=(
            "The names of the columns, unless the file is a TREC run. A name that begins with `$` is a JSONPath: "
            "`$.outputs.answer`."
        ),
    )


class File(System[FileNode]):
    """Reads a run, or answers.

    Documents of a query with equal scores keep the order of the file. Answers are matched to queries by id.
    If the file has no ids, or most questions contradict them (unless `columns.query_id` confirms them), the exact text
    of the question decides; if it has neither ids nor questions, the number of the row does.
    """

    known_as = ("run", "trec", "prepared", "jsonl", "csv", "answers")
    can_answer = True
    stored = False
    later_keys = frozenset({"sheet", "layout", "follow"})

    def content(self) -> dict[str, Any]:
        """Without `separator` if it is not set: keys equal those of releases without this field."""
        content = super().content()
        if self.node.separator is None:
            del content["node"]["separator"]
        return content

    def inputs(self) -> Sequence[InputFile]:
        if isinstance(self.node.path, str):
            return (InputFile(self.context.resolve(self.node.path), ("path",)),)
        return [InputFile(self.context.resolve(path), ("path", name)) for name, path in self.node.path.items()]

    def inputs_for(self, dataset: str) -> Sequence[InputFile]:
        if isinstance(self.node.path, str):
            return self.inputs()
        if dataset not in self.node.path:
            there = ", ".join(f"'{name}'" for name in self.node.path) or "none"
            raise UsageError(f"systems.{self.context.name}.path: no file for the dataset '{dataset}', only for {there}")
        return (InputFile(self.context.resolve(self.node.path[dataset]), ("path", dataset)),)

    def find_watch_fault(self) -> FileFault | None:
        if not self.node.follow:
            return FileFault((), "a monitor reads files that grow", "add 'follow: true'")
        if not isinstance(self.node.path, str):
            return FileFault(("path",), "a monitor reads one file, or one folder of files", "write 'path: FILE'")
        path = Path(self.node.path)
        if path.suffix.lower() in COMPRESSED or _ROWS.get(self._format(path)) is not None:
            hint = "write an object with a question and an answer a line, to a file such as traces.jsonl"
            return FileFault(
                ("path",), f"a monitor reads JSON Lines as they are written, not {path.suffix} files", hint
            )
        return None

    def check_files(self) -> Iterator[FileFault]:
        if self.node.follow:  # its last line may be being written; a monitor counts what it cannot read
            return
        for file in self.inputs():
            try:
                present = self._list_columns(file.path)
            except ForeignFileError as error:
                yield FileFault(file.key, error.finding, error.hint)
                continue
            except DataError as error:
                yield FileFault(file.key, str(error), code="unreadable-data")
                continue
            faults = [*find_absent(("columns",), self.node.columns, present, file.path.name)]
            if present is not None and not faults and self.node.holds == "auto":
                faults += self._check_content(file)
            columns = self._source(file.path).resolve(self.node.columns, _MOST_DESCRIBED) if present else None
            if columns is not None and (unclear := explain_ambiguity(columns, present or ())) is not None:
                faults.append(FileFault(file.key, f"{file.path.name}: {unclear[0]}", unclear[1]))
            yield from faults

    def _check_content(self, file: InputFile) -> Iterator[FileFault]:
        try:
            self._look_for_answers(file.path)
        except DataError as error:
            told, _, hint = str(error).removeprefix(f"{file.path}: ").partition("; ")
            yield FileFault(file.key, f"{file.path.name}: {told}", hint or None)

    def _list_columns(self, path: Path) -> Sequence[str] | None:
        """The names of a file's columns; None for a run, for a missing file, and if it takes long."""
        form = self._format(path)
        if form == "trec" or not path.is_file() or (form == "json" and _begins_as_run(path)):
            return None
        names = self._source(path).list_names(self.node.columns)
        return names if names is None or "response" not in names else [*names, *_UNWRAPPED]

    def list_answer_columns(self) -> Sequence[str] | None:
        found: dict[str, None] = {}
        for file in self.inputs():
            present = self._list_columns(file.path)
            if present is None or not self._look_for_answers(file.path):
                continue
            columns = self._source(file.path).resolve(self.node.columns, _MOST_DESCRIBED)
            found |= dict.fromkeys(list_other_answer_columns(find_answer_names(columns, present), present))
        return [*found]

    def describe_files(self) -> Iterator[FileReading]:
        for file in self.inputs():
            if not file.path.is_file() or not self._look_for_answers(file.path):
                continue
            source = self._source(file.path)
            columns = source.resolve(self.node.columns, _MOST_DESCRIBED)
            names = find_answer_names(columns, source.unfold_names(columns))
            originals = source.find_originals(columns)
            first_names = {part: known[0] for part, known in names.items() if known and part not in _UNSHOWN}
            shown = {part: originals.get(name, name) for part, name in first_names.items()}
            _, first = next(source.rows(columns))
            if names["scores"] and not isinstance(open_text(first.get(names["scores"][0])), list):
                del shown["scores"]  # what people or judges said
            details = [*source.list_details(), *(f"milliseconds in '{name}'" for name in names["milliseconds"][:1])]
            path = self.node.path
            yield FileReading(path if isinstance(path, str) else path[str(file.key[-1])], tuple(details), shown)

    def _source(self, path: Path) -> RowFile:
        node = self.node
        if path not in self._sources:
            form = _ROWS.get(self._format(path), "json")
            self._sources[path] = RowFile(path, form, node.separator, node.sheet, node.layout, opens_files=False)
        return self._sources[path]

    @cached_property
    def _sources(self) -> dict[Path, RowFile]:
        return {}

    def run_file(self, dataset: str) -> Path | None:
        path = self.inputs_for(dataset)[0].path
        if self._format(path) != "trec" or self.answers_on(dataset):
            return None
        check_bounds(path)
        return path

    def answers_on(self, dataset: str) -> bool:
        """Reads only the beginning of the file, except that a json file that is not a run is read completely."""
        if self.node.holds != "auto":
            return self.node.holds == "answers"
        path = self.inputs_for(dataset)[0].path
        if path not in self._holds_answers:
            self._holds_answers[path] = self._look_for_answers(path)
        return self._holds_answers[path]

    def answer(self, collection: Collection) -> Answering:
        from rageval_spec.reading.answer_files import STORED_BESIDE, match_answers, number_repeats, read_answers
        from rageval_spec.recorded.answers_and_steps import table_of

        path = self.inputs_for(collection.name)[0].path
        queries = collection.require("queries", f"systems.{self.context.name}: file")
        answers: Any = read_answers(self._source(path), self.node.columns, self.node.citations_from)
        if collection.repeat > 1:
            answers = [*number_repeats(answers, collection.repeat)]
        confirmed = self.node.columns.query_id is not None
        matched = match_answers(path, answers, queries, trusts_ids=confirmed)
        remarks = tuple(_remark(matched, len(answers)))
        taken_over = TakenOver.of_recording(self.context.name, path.name, queries.height, matched.list_asked())
        del answers  # so that each row is freed once it is in the table
        stored = matched.stored and matched.stored.drop(STORED_BESIDE)
        table = table_of(matched.take_rows(), self.node.citations_from)
        if collection.load_corpus is not None:
            table, lacking = _add_texts(table, collection, f"systems.{self.context.name}: file")
            remarks += tuple(lacking)
        return Answering(table, remarks, taken_over, stored)

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:  # noqa: ARG002
        """Duplicate documents of a query are kept; `ranking.duplicates` decides about them."""
        return _best_first(self._read(self.inputs_for(collection.name)[0].path))

    @property
    def can_be_asked(self) -> bool:
        return False

    def find_answers(self, collection: Collection) -> pl.DataFrame:
        return load_table(self.answer(collection).table)

    @cached_property
    def _holds_answers(self) -> dict[Path, bool]:
        return {}

    def _look_for_answers(self, path: Path) -> bool:
        form = self._format(path)
        if form == "trec" or not path.is_file() or (form == "json" and _begins_as_run(path)):
            return False
        source = self._source(path)
        present = source.unfold_names(self.node.columns)
        if holds_answers(present, source.resolve(self.node.columns, _MOST_DESCRIBED)):
            return True
        columns = self.node.columns.over(RUN, "columns")
        if not any(column.mapped or {*column.known} & {*present} for column in columns if column.name != "query_id"):
            message = f"neither a ranking nor answers: the columns are {list_keys(present)}"
            raise DataError(f"{path}: {message}; {advise_answers(present)}")
        return False

    def _format(self, path: Path) -> Format:
        return FORMATS.get(format_of(path), "trec") if self.node.format == "auto" else self.node.format

    def _read(self, path: Path) -> pl.DataFrame:
        form = self._format(path)
        if form == "trec":
            return kernels.read_run(path)
        if form == "json":
            return run_table(_read_nested(path))
        return run_table(self._source(path).records(self.node.columns, self.node.columns.over(RUN, "columns")))


def _add_texts(answers: pl.DataFrame, collection: Collection, reader: str) -> tuple[pl.DataFrame, list[Note]]:
    """The answers; those that only name their documents get the texts from the corpus, "" for what it lacks."""
    lacks = pl.col("contexts").is_null() & pl.col("context_ids").is_not_null()
    named = answers.filter(lacks).select("query_id", doc_id="context_ids")
    if named.is_empty():
        return answers, []
    named = named.explode("doc_id").drop_nulls()
    documents = collection.find_documents(named["doc_id"], reader)
    texts = documents.select("doc_id", text=document_texts(documents)).unique("doc_id", keep="first")
    filled = named.join(texts, on="doc_id", how="left", maintain_order="left")
    missing = filled.filter(pl.col("text").is_null())["doc_id"].unique(maintain_order=True)
    lists = filled.group_by("query_id", maintain_order=True).agg(found=pl.col("text").fill_null(""))
    none = pl.when(lacks).then(pl.lit([], dtype=pl.List(pl.String)))  # an answer that names no document
    joined = answers.join(lists, on="query_id", how="left", maintain_order="left")
    table = joined.with_columns(pl.coalesce("contexts", "found", none).alias("contexts")).drop("found")
    if missing.is_empty():
        return table, []
    count = count_noun(named["doc_id"].n_unique(), "document")
    message = f"{len(missing)} of {count} that the answers name are not in the corpus, first {missing[0]!r}"
    return table, [Note("unknown_documents", f"{message}; nothing can support what cites them", count=len(missing))]


def _begins_as_run(path: Path) -> bool:
    beginning = ""
    for _, line in text_lines(path, longest=None):
        beginning += line[:_BEGINNING] + "\n"
        if len(beginning) >= _BEGINNING:
            break
    found = _RUN.match(beginning)
    return found is not None and found["query"] not in LIST_KEYS


def _remark(matched: Matched, answers: int) -> Iterator[Note]:
    if matched.remark:
        yield Note("differing_questions", matched.remark, count=matched.differing)
    if matched.unknown:
        belongs = "belongs" if matched.unknown == 1 else "belong"
        message = f"{matched.unknown} of {count_noun(answers, 'answer')} {belongs} to no query that is evaluated"
        yield Note("unknown_queries", message, count=matched.unknown)


def _read_nested(path: Path) -> Records:
    """Rows of `{query: {document: score}}`."""
    query_ids: list[str] = []
    doc_ids: list[str] = []
    scores: list[float] = []
    for query_id, ranking in _mapping(path, _parse_json(path), "the file").items():
        found = _mapping(path, ranking, f"query {query_id!r}")
        query_ids.extend([query_id] * len(found))
        doc_ids.extend(found)
        scores.extend(found.values())
    for query_id, doc_id, score in zip(query_ids, doc_ids, scores, strict=True):
        if type(score) not in (float, int):
            where = f"{path}: the score of document {doc_id!r} for query {query_id!r}"
            raise DataError(f"{where} must be a number, not {json.dumps(score)[:60]}")
    if not scores:
        raise DataError(f"{path}: no query has a document")
    try:
        frame = pl.DataFrame({"query_id": query_ids, "doc_id": doc_ids, "score": list(map(float, scores))})
    except (UnicodeEncodeError, OverflowError) as error:
        raise DataError(f"{path}: {error}") from error
    return Records(frame, lambda row: f"{path}: pair {row + 1}")


def _parse_json(path: Path) -> object:
    text = "\n".join(line for _, line in text_lines(path, longest=None))
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: {error}") from error


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is listed twice in one object")
        found[key] = value
    return found


def _mapping(path: Path, value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{path}: {what} must be a map, {{query: {{document: score}}}}, not {json.dumps(value)[:60]}")
    return value


def _best_first(run: pl.DataFrame) -> pl.DataFrame:
    """The run grouped by query, in the order in which the queries first appear, each ranking by descending score."""
    same = pl.col("query_id") == pl.col("query_id").shift(1)
    groups, queries, rising = run.select(
        groups=(~same).fill_null(True).sum(),
        queries=pl.col("query_id").n_unique(),
        rising=(same & (pl.col("score") > pl.col("score").shift(1))).any(),
    ).row(0)
    if groups == queries and not rising:
        return run
    appearance = pl.col("row").first().over("query_id")
    ranked = run.with_row_index("row").sort(appearance, "score", descending=[False, True], maintain_order=True)
    return ranked.drop("row")


PLUGIN = File
