"""Leaves columns of the samples out of the results, and what judges, metrics and errors say about their texts."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import SAMPLE_COLUMNS, STEPS
from rageval_spec.libraries import compile_later, pl
from rageval_spec.pipeline.planning.plan import SystemFailure
from rageval_spec.recorded.messages import MESSAGES
from rageval_spec.spec.blocks.spec_node import RedactedColumn

_READ = frozenset(one.redact for one in SAMPLE_COLUMNS if "metrics" in one.readers)
"""What metrics read, so that a reason can quote it."""
_TOLD = frozenset(one.redact for one in SAMPLE_COLUMNS if "systems" in one.readers)
"""What a system gets or gives, so that its error and the steps of an agent can quote it."""
_KEPT = frozenset({"verdict", "part", "against", "judge", "decided_by", "way", "by"})
"""The texts in details that are not about the sample."""
_QUOTE = compile_later(r""":\s|\s\(|(?<!\w)['"`]|[“‘«{\[\n]""")
"""Where the general part of a reason ends, and what it quotes or wraps can begin."""
_QUOTED = compile_later(r"""(?<!\w)'[^'\n]*'""")
_FIRST = compile_later(r"[;:,] the first\b.*", re.DOTALL)


def redact_samples(blocks: Iterator[pl.DataFrame], columns: Collection[RedactedColumn]) -> Iterator[pl.DataFrame]:
    """The samples without these columns: null, or no references. Errors of systems lose what they can quote of them."""
    is_open = _TOLD.isdisjoint(columns)
    hidden = [one.name for one in SAMPLE_COLUMNS if one.redact in columns or (one.name == STEPS and not is_open)]
    for block in blocks:
        empty = [pl.lit(None, dtype=block.schema[name]).alias(name) for name in hidden if name in block.columns]
        block = block.with_columns(empty).with_columns(
            pl.col("references").fill_null(pl.lit([], dtype=block.schema["references"]))
        )
        if "question" in columns:
            told = pl.col("columns").map_elements(_drop_conversation, return_dtype=pl.String)
            block = block.with_columns(told)
        yield block if is_open else block.with_columns(pl.col("error").map_elements(generalize, return_dtype=pl.String))


def _drop_conversation(columns: str) -> str:
    """The other columns of a question without the conversation that it is a part of."""
    if f'"{MESSAGES}"' not in columns:
        return columns
    kept = {name: value for name, value in json.loads(columns).items() if name != MESSAGES}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def redact_values(values: pl.DataFrame, columns: Collection[RedactedColumn]) -> pl.DataFrame:
    """The values without what tells the contents of these columns.

    If metrics read one of them, texts are removed from the details, with the reasons of scored values and of values
    with details, and other reasons lose what they quote. If `error` is one of them, the reasons of values with the
    status "error" are removed.
    """
    if _READ.intersection(columns):
        is_judged = pl.col("details").is_not_null()
        details = pl.col("details").map_elements(_redact_details, return_dtype=pl.String)
        values = values.with_columns(_null_where(is_judged), details)
        general = pl.col("reason").map_elements(generalize, return_dtype=pl.String)
        values = values.with_columns(general).with_columns(_null_where(pl.col("status") == "scored"))
    return values.with_columns(_null_where(pl.col("status") == "error")) if "error" in columns else values


def redact_notes(
    notes: Iterable[Note], columns: Collection[RedactedColumn], failures: Sequence[SystemFailure] = ()
) -> list[Note]:
    """The notes, also those on `failures`, without what errors and reasons tell of the contents of these columns."""
    told_of = {
        one.note(): hidden.note() for one, hidden in zip(failures, redact_failures(failures, columns), strict=True)
    }
    is_read = not _READ.isdisjoint(columns)
    hides_errors = "error" in columns or not _TOLD.isdisjoint(columns)
    hidden = {*(["failed_queries"] if is_read or hides_errors else []), *(["unanswered"] if hides_errors else [])}
    told = []
    for note in (told_of.get(note, note) for note in notes):
        message = _FIRST.sub("", note.message) if note.code in hidden else note.message
        is_quoting = note.code == "unscorable_queries" and is_read
        told.append(replace(note, message=_QUOTED.sub("…", message) if is_quoting else message))
    return told


def redact_failures(
    failures: Iterable[SystemFailure], columns: Collection[RedactedColumn]
) -> tuple[SystemFailure, ...]:
    """The failures without what their errors say, if that can tell the contents of these columns."""
    is_open = _READ.isdisjoint(columns) and "error" not in columns
    return tuple(one if is_open else replace(one, message=generalize(_FIRST.sub("", one.message))) for one in failures)


def generalize(reason: str) -> str:
    """The beginning of a reason, up to what it quotes: `f raised ValueError: no 'x'` becomes `f raised ValueError`."""
    found = _QUOTE.search(reason)
    return reason if found is None else reason[: found.start()].rstrip()


def _null_where(condition: pl.Expr) -> pl.Expr:
    return pl.when(~condition).then(pl.col("reason")).alias("reason")


def _redact_details(details: str) -> str:
    return json.dumps(_redact(json.loads(details), ""), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _redact(content: Any, key: str) -> Any:
    """Details without their texts, except those that are not about the sample."""
    if isinstance(content, dict):
        return {name: redacted for name, one in content.items() if (redacted := _redact(one, name)) is not None}
    if isinstance(content, list):
        return [redacted for one in content if (redacted := _redact(one, key)) is not None]
    return None if isinstance(content, str) and key not in _KEPT else content
