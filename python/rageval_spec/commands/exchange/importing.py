"""`import`: writes what a tool has as rows of a JSON Lines file."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.exchange.settings import read_settings
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.progress import ProgressDisplay
from rageval_spec.store.disk import flush_folder, sweep
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.trace import Trace
    from rageval_spec.exchange.shared.source import Source

_SUFFIXES = (".jsonl", ".jsonl.gz")
_SHOWN_EVERY = 100


def import_traces(word: str, settings: Mapping[str, Any], output: Path | None, *, force: bool, quiet: bool) -> str:
    """Read the traces of a tool and write them. Returns what was written and how to go on.

    Raises:
        UsageError: an option is wrong, or the file exists.
        RagevalError: the traces cannot be read; then nothing is written.
    """
    from rageval_spec.exchange.shared.finding import load
    from rageval_spec.plugin.context import Context

    output = _choose_file(word, output, force=force)
    kind = load(word).source
    if kind is None:
        raise UsageError(f"{word} cannot be imported from")
    node = read_settings(kind.node_type, settings)
    with ProgressDisplay(quiet=quiet) as display:
        display.announce(f"import {word}")
        source = kind(node, Context(word, Path(), progress=display.counting(word), tell=display.tell))
        try:
            count, answers, repeated = _write(source, output, display)
            remarks = [*source.remarks()]
        finally:
            source.close()
    if repeated:
        remarks.append(f"{count_noun(repeated, 'row')} with the id of an earlier one left out")
    return "".join(f"{line}\n" for line in (*_describe(word, count, answers, output), *remarks))


def _choose_file(word: str, output: Path | None, *, force: bool) -> Path:
    output = Path(f"{word}.jsonl") if output is None else output
    if not output.name.endswith(_SUFFIXES):
        raise UsageError(f"-o {output}: name a file that ends in {' or '.join(_SUFFIXES)}")
    if output.exists() and not force:
        raise UsageError(f"{output} already exists; name another file with -o, or overwrite it with --force")
    return output


def _write(source: Source[Any], output: Path, display: ProgressDisplay) -> tuple[int, int, int]:
    """How many rows were written, how many of them have an answer, and how many repeated an id and were left out.

    A failure leaves no file.
    """
    count = answers = repeated = 0
    seen: set[str] = set()
    with _open_new(output) as stream:
        for trace in source.read():
            if trace.id in seen:
                repeated += 1
                continue
            seen.add(trace.id)
            stream.write(_dump(trace))
            count += 1
            answers += trace.answer is not None
            if count % _SHOWN_EVERY == 0:
                display.announce(f"import {source.context.name}: {count_noun(count, 'question')}")
        if not count:
            nothing = f"{source.context.name}: there is nothing to import in what the options name"
            raise RagevalError("; ".join((nothing, *source.remarks())))
    return count, answers, repeated


def _dump(trace: Trace) -> bytes:
    """The trace as a line of JSON."""
    from pydantic_core import PydanticSerializationError, to_json

    row = trace.to_row()
    with suppress(PydanticSerializationError, ValueError):  # halves of surrogate pairs, and what nests too deeply
        line = to_json(row, inf_nan_mode="constants")
        if b"NaN" not in line and b"Infinity" not in line:  # in a text they are harmless, so the next line decides
            return line + b"\n"
    return json.dumps(trace.to_row(), ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace") + b"\n"


@contextmanager
def _open_new(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a file that appears under its name once everything is written."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path.parent.glob(f".{path.name}.*.part"))
        with temporary.open("wb") as file:
            with _compress(path, file) as stream:
                yield stream
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        flush_folder(path.parent)
    except OSError as error:
        raise RagevalError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _compress(path: Path, file: IO[bytes]) -> Iterator[IO[bytes]]:
    if path.suffix == ".gz":
        import gzip

        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield file


def _describe(word: str, count: int, answers: int, output: Path) -> Iterator[str]:
    rows = count_noun(count, "question")
    if answers:
        yield f"wrote {rows} with {count_noun(answers, 'answer')} to {output}"
        yield f"evaluate them with: {PROGRAM} init --answers {output}"
    else:
        yield f"wrote {rows} to {output}"
        yield f"use them as a dataset: {word}: {{use: jsonl, path: {output}}}"
