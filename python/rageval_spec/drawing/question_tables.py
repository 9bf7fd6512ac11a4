"""Tables with one row for each question: its sample, and a column for each metric's value and reason.

They can be written as Excel workbooks, which needs XlsxWriter, the extra `xlsx` of this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import IO, Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.tables import ASKED, SAMPLE_COLUMNS, empty_samples
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.escaping import IN_LINES, escape_column
from rageval_spec.errors import UsageError
from rageval_spec.libraries import pl
from rageval_spec.wording import protect_cell

COLUMNS = tuple(name for _, name in sorted((one.row, one.name) for one in SAMPLE_COLUMNS if one.row is not None))
_KEYS = ("dataset", "system", "query_id")
_BLOCK = 4096


def list_systems(evaluation: Evaluation) -> list[str]:
    """The systems that have values, in the order of the spec."""
    there = set(evaluation.values["system"].unique())
    return [system for system in evaluation.systems if system in there]


def list_blocks(evaluation: Evaluation, system: str | None = None) -> Iterator[pl.DataFrame]:
    """The rows of one system's questions, or of all, in blocks: `COLUMNS`, then the metrics. At least one block.

    `asked` follows `COLUMNS` if the evaluation took over answers whose time is known.

    A metric has a column with its name, and one with its reasons if there are any. Questions without a sample come
    last.
    """
    names = (*COLUMNS, ASKED) if any(one.first for one in evaluation.provenance.taken_over) else COLUMNS
    values = _spread(evaluation, system, names)
    columns = empty_samples().select(names)
    seen = []
    for block in evaluation.iterate_samples():
        rows = block.select(names) if system is None else block.select(names).filter(pl.col("system") == system)
        if rows.height:
            seen.append(rows.select(_KEYS))
            beside = rows.select(_KEYS).join(values, on=_KEYS, how="left", maintain_order="left").drop(_KEYS)
            yield pl.concat([rows, beside], how="horizontal")
    alone = values.join(pl.concat(seen), on=_KEYS, how="anti", maintain_order="left") if seen else values
    for rest in alone.iter_slices(_BLOCK):
        yield pl.concat([columns, rest], how="diagonal")
    if not seen and alone.is_empty():
        yield columns.join(values, on=_KEYS, how="left")


def gather(blocks: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(list(blocks))


def flatten(block: pl.DataFrame) -> pl.DataFrame:
    """Rows for a spreadsheet: lists become texts with an item a paragraph, and no text can be a formula."""
    texts = [name for name, kind in block.schema.items() if kind in (pl.String, pl.List(pl.String))]
    needing = block.select(_needs_escaping(block, name).alias(name) for name in texts)
    joined = block.with_columns(pl.col(pl.List(pl.String)).list.join("\n\n"))
    escaped = [escape_column(joined[name], protect_lines, IN_LINES) for name in texts if needing.item(0, name)]
    return joined.with_columns(escaped).rename(protect_cell)


def _needs_escaping(block: pl.DataFrame, name: str) -> pl.Expr:
    """Whether a text of the column does. Texts of lists come again in other rows, so each is searched once."""
    column = pl.col(name)
    column = column if block.schema[name] == pl.String else column.explode(empty_as_null=True).unique()
    return column.str.contains(IN_LINES).any()


def protect_lines(text: str) -> str:
    """`text` for a cell of a spreadsheet, as `protect_cell` makes it, except that it keeps its lines."""
    mark = "'" if protect_cell(text[:1]).startswith("'") and text[:1] != "'" else ""
    return mark + make_visible(text, keep="\n")


def _spread(evaluation: Evaluation, system: str | None, names: Sequence[str]) -> pl.DataFrame:
    """A row for each question with the values and reasons of all metrics, under names that are not in `names`."""
    values = evaluation.values if system is None else evaluation.values.filter(pl.col("system") == system)
    spread = values.select(_KEYS).unique(maintain_order=True)
    for metric in evaluation.metrics:
        name = f"{metric} value" if metric in names else metric
        found = values.filter(pl.col("metric") == metric).select(*_KEYS, "value", "reason")
        if found.height:
            reasons = [] if found["reason"].null_count() == found.height else [pl.col("reason").alias(f"{name} reason")]
            column = found.select(*_KEYS, pl.col("value").alias(name), *reasons)
            spread = spread.join(column, on=_KEYS, how="left", maintain_order="left")
    return spread


MOST_CHARACTERS = 32_767
"""The most UTF-16 units of a cell."""
MOST_ROWS = 1_048_576
"""The most rows of a sheet, with the header."""
_LONG_AGO = datetime(2000, 1, 1)
_CONTROLS = {code: "\N{REPLACEMENT CHARACTER}" for code in range(32) if chr(code) not in "\t\n\r"}


def check_installed() -> None:
    """Check that workbooks can be written: a UsageError if XlsxWriter is not installed."""
    if find_spec("xlsxwriter") is None:
        raise UsageError("an .xlsx file needs XlsxWriter; install it with: pip install 'rageval-spec[xlsx]'")


def write_workbook(blocks: Iterable[pl.DataFrame], stream: IO[bytes]) -> None:
    """Write blocks of one table as a workbook, row by row, so that memory holds only a row.

    Rows that do not fit on a sheet go on further ones. A text that is too long for a cell is cut, and says so.
    """
    import xlsxwriter

    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(stream, options) as workbook:
        workbook.set_properties({"created": _LONG_AGO})
        head = workbook.add_format({"bold": True})
        sheet, row = None, MOST_ROWS
        for block in blocks:
            if sheet is None:
                sheet, row = _begin_sheet(workbook, block.columns, head), 1
            for values in block.iter_rows():
                if row == MOST_ROWS:
                    sheet, row = _begin_sheet(workbook, block.columns, head), 1
                for column, value in enumerate(values):
                    _write_cell(sheet, row, column, value)
                row += 1


def _begin_sheet(workbook: Any, columns: Iterable[str], head: Any) -> Any:
    sheet = workbook.add_worksheet()
    sheet.freeze_panes(1, 0)
    for column, name in enumerate(columns):
        sheet.write_string(0, column, fit_cell(name), head)
    return sheet


def _write_cell(sheet: Any, row: int, column: int, value: object) -> None:
    if isinstance(value, bool | str):
        sheet.write_string(row, column, fit_cell(str(value)))
    elif value is not None:
        sheet.write_number(row, column, value)


def fit_cell(text: str) -> str:
    """`text` without control characters, cut to what a cell holds, with a note at its end if it was cut."""
    clean = text.translate(_CONTROLS)
    units = clean.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * MOST_CHARACTERS:
        return clean
    note = f"… [cut: the text has {len(text):,} characters]"
    return units[: 2 * (MOST_CHARACTERS - len(note))].decode("utf-16-le", "ignore") + note
