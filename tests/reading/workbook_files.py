"""Writes workbooks: plain ones, and ones that no spreadsheet program writes."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xlsxwriter


def write_workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    """A workbook with the rows of each sheet. A tuple is a value and its number format; None is an empty cell."""
    with xlsxwriter.Workbook(str(path), {"remove_timezone": True}) as workbook:
        for name, rows in sheets.items():
            sheet = workbook.add_worksheet(name)
            for number, row in enumerate(rows):
                for column, cell in enumerate(row):
                    value, form = cell if isinstance(cell, tuple) else (cell, None)
                    if value is not None:
                        style = None if form is None else workbook.add_format({"num_format": form})
                        sheet.write(number, column, value, style)
    return path


def change_part(path: Path, changes: Mapping[str, tuple[str, str]]) -> Path:
    """Replace a text in parts of a workbook; each change is what to replace and by what."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            old, new = changes.get(name, ("", ""))
            assert old in content
            archive.writestr(name, content.replace(old, new) if old else content)
    return path
