"""Worked examples for a judge: samples with the judgement that a person would give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rageval_spec.data.sample import Sample
from rageval_spec.errors import DataError
from rageval_spec.reading.delimited import separator_of
from rageval_spec.reading.files import text_lines
from rageval_spec.reading.recognition import find_separator
from rageval_spec.reading.rows import parse_list, read_rows, row_format_of

MOST_EXAMPLES = 100
"""Every call sends all examples."""
_LARGEST = 2_000_000
_DEEPEST = 50
_TEXTS = ("question", "answer", "reference")
_LISTS = ("contexts", "reference_contexts")


@dataclass(frozen=True, slots=True)
class Example:
    """A sample with a person's judgement.

    Attributes:
        value: the judgement as the file has it.
        reason: the person's reason; None without one.
        place: where the example stands: `examples.jsonl:3`.
    """

    sample: Sample
    value: Any
    reason: str | None
    place: str


def read_examples(path: Path, shown: str) -> list[Example]:
    """The examples of a JSON, JSON lines, YAML, CSV or Parquet file. `shown` is its name in messages.

    Each has `value`, and whatever the template uses: `question`, `answer`, `contexts`, `reference`, other columns.
    `reason` is optional.

    Raises:
        DataError: the file cannot be read, has no examples or too many; an example lacks its value.
    """
    examples = [_read_example(row, place) for place, row in _read(path, shown)]
    if not examples:
        raise DataError(f"{shown}: there are no examples")
    if len(examples) > MOST_EXAMPLES:
        limit = f"write at most {MOST_EXAMPLES}, because every call sends them all"
        raise DataError(f"{shown}: there are {len(examples)} examples; {limit}")
    return examples


def _read(path: Path, shown: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(f"{shown}: a file of examples may have at most {_LARGEST:,} bytes")
        if path.suffix.lower() in (".yaml", ".yml"):
            return _read_yaml(path, shown)
        rows = read_rows(path, separator=_find_separator(path))
        return [(place.replace(str(path), shown, 1), row) for place, row in rows]
    except OSError as error:
        raise DataError(f"{shown}: the examples cannot be read: {error.strerror}") from error


def _find_separator(path: Path) -> str | None:
    """The separator of a CSV file without commas in its header, as spreadsheets write it where a comma is decimal."""
    if row_format_of(path) != "csv" or separator_of(path) != ",":
        return None
    header = next((text for _, text in text_lines(path) if text.strip()), "")
    return None if "," in header else find_separator(header)


def _read_yaml(path: Path, shown: str) -> list[tuple[str, Mapping[str, Any]]]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = path.read_text("utf-8")
        _check_events(yaml.parse(text, loader), shown)
        found = yaml.load(text, loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise DataError(f"{shown}: it is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, list):
        raise DataError(f"{shown}: the examples must be a list, each with `value`")
    rows = [(f"{shown}: example {number}", row) for number, row in enumerate(found, 1)]
    for place, row in rows:
        if not isinstance(row, dict):
            raise DataError(f"{place} must be a mapping with `value`, and not {type(row).__name__}")
    return rows


def _check_events(events: Iterable[Any], shown: str) -> None:
    """Refuse aliases, with which a short text can mean more than fits into memory, and deep nesting."""
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise DataError(f"{shown}:{_line(event)}: an example cannot refer to another one with '*'; write it out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise DataError(f"{shown}:{_line(event)}: the example is nested too deep")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _read_example(row: Mapping[str, Any], place: str) -> Example:
    if row.get("value") in (None, ""):
        raise DataError(f"{place}: the example has no `value`; it has {', '.join(map(str, row)) or 'nothing'}")
    texts = {name: _read_text(row, name, place) for name in (*_TEXTS, "reason")}
    lists = {name: _read_list(row, name, place) for name in _LISTS}
    known = {*texts, *lists, "value"}
    columns = {str(name): value for name, value in row.items() if name not in known}
    sample = Sample(
        "",
        texts["question"] or "",
        texts["answer"],
        references=() if texts["reference"] is None else (texts["reference"],),
        columns=columns,
        contexts=lists["contexts"],
        reference_contexts=lists["reference_contexts"],
    )
    return Example(sample, row["value"], texts["reason"], place)


def _read_text(row: Mapping[str, Any], name: str, place: str) -> str | None:
    found = row.get(name)
    if found is not None and not isinstance(found, str | int | float):
        raise DataError(f"{place}: '{name}' must be text")
    return None if found is None else str(found)


def _read_list(row: Mapping[str, Any], name: str, place: str) -> tuple[str, ...] | None:
    found = parse_list(place, name, row.get(name))
    if found is None or found == "":
        return None
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{place}: '{name}' must be a list of texts")
    return tuple(texts)
