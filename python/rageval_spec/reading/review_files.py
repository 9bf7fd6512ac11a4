"""The file that a review page saves: the labels of one person on one sheet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rageval_spec.errors import DataError

FORMAT = "rageval-labels"
VERSION = 1


def is_review_file(row: Mapping[str, Any]) -> bool:
    """Whether an object is what a review page saved."""
    return row.get("format") == FORMAT


def flatten_review(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a place (`ann.json:1: label 3`) and a row for each label, with its `annotator` and its `sheet`.

    Raises:
        DataError: an object is not such a file, has another version, or has no labels.
    """
    for place, saved in rows:
        if not is_review_file(saved):
            raise DataError(f"{place}: this is not a file that a review page saved")
        if saved.get("version") != VERSION:
            raise DataError(
                f"{place}: the file has version {saved.get('version')}, and this version of rageval-spec reads "
                f"version {VERSION}; update rageval-spec"
            )
        labels = saved.get("labels")
        if not isinstance(labels, list):
            raise DataError(f"{place}: the file has no list 'labels'")
        if not labels:
            raise DataError(f"{place}: the file has no labels yet")
        for number, label in enumerate(labels, 1):
            if not isinstance(label, dict):
                raise DataError(f"{place}: label {number} is not an object")
            own = {"annotator": saved.get("annotator"), "sheet": saved.get("sheet")}
            yield f"{place}: label {number}", {**label, **own}
