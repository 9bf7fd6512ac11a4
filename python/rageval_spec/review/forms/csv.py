"""A sheet as CSV: a form that every spreadsheet opens, and every editor."""

from __future__ import annotations

import csv
import io

from rageval_spec.review.forms.rows import list_columns, list_rows
from rageval_spec.review.tasks import ReviewSheet
from rageval_spec.wording import neutralize

BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
"""Without it, Excel takes UTF-8 for the encoding of the machine."""


def write_csv(sheet: ReviewSheet) -> bytes:
    """The form as CSV (RFC 4180) in UTF-8 with a byte order mark.

    A text that a spreadsheet would take for a formula gets a leading `'`.
    """
    stream = io.StringIO(BOM)
    stream.seek(0, io.SEEK_END)
    columns = [column.name for column in list_columns(sheet)]
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([neutralize(name) for name in columns])
    for row in list_rows(sheet):
        cells = (row.cells.get(name, "") for name in columns)
        writer.writerow([neutralize(cell) if isinstance(cell, str) else cell for cell in cells])
    return stream.getvalue().encode("utf-8", "backslashreplace")
