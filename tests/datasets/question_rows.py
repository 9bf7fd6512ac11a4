"""The same two questions in every format that a golden set can have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from tests.reading.workbook_files import write_workbook

ROWS: list[dict[str, Any]] = [
    {"id": "t1", "question": "why?", "ground_truth": "because", "relevant_doc_ids": ["d1", "d2"], "category": "cause"},
    {"id": "t2", "question": "how?", "ground_truth": "so", "relevant_doc_ids": ["d3"], "category": None},
]
FORMATS = ("xlsx", "yaml", "json", "columns.json", "jsonl", "csv", "parquet")


def write_rows(folder: Path, form: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    """A file with the rows; lists are joined by commas in Excel and are JSON in CSV."""
    path = folder / f"golden.{form}"
    names = list(rows[0])
    if form == "xlsx":
        cells = [[", ".join(v) if isinstance(v, list) else v for v in row.values()] for row in rows]
        return write_workbook(path, Golden=[names, *cells])
    if form == "yaml":
        path.write_text(yaml.safe_dump(rows, sort_keys=False))
    elif form == "json":
        path.write_text(json.dumps({"version": "1.2", "test_cases": rows}, indent=1))
    elif form == "columns.json":
        path.write_text(json.dumps({name: [row[name] for row in rows] for name in names}, indent=1))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        flat = [{name: json.dumps(v) if isinstance(v, list) else v for name, v in row.items()} for row in rows]
        pl.DataFrame(flat).write_csv(path)
    return path
