"""Reads documents: a folder of Markdown, text, HTML and PDF, one file, a JSON Lines corpus or a BEIR folder.

`list_files` names the files that documents are read from, by which a change of the documents is noticed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rageval_spec.errors import DataError
from rageval_spec.generation.document_formats import (
    Content,
    TextBlock,
    find_paragraphs,
    read_markdown,
    read_pdf,
    read_web_page,
)
from rageval_spec.kernels.inputs import name_special
from rageval_spec.libraries import compile_later
from rageval_spec.reading.column_names import CORPUS, CorpusColumns
from rageval_spec.reading.formats.json_files import json_objects, text_of
from rageval_spec.reading.formats.text_files import find_file, format_of
from rageval_spec.reading.missing_columns import choose_keys
from rageval_spec.wording import count_noun

LARGEST = 64 << 20
"""The most bytes of a file that is one document. A larger one is data, not something that people read."""
MARKDOWN = frozenset({"md", "markdown", "mdown", "mkd", "mdx"})
HTML = frozenset({"html", "htm", "xhtml"})
TEXT = frozenset({"txt", "text", "rst", "adoc", "asciidoc"})
_READ_AS_FILES = MARKDOWN | HTML | TEXT | {"pdf"}
CORPORA = frozenset({"jsonl", "ndjson", "json"})
READABLE = "Markdown, text, HTML and PDF"
_VERSION_KEYS = ("version", "revision", "modified", "last_modified", "updated_at", "updated", "date")
_CHARSET = compile_later(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w-]+)", re.IGNORECASE)
_MOST_NAMED = 5


class SourceDocument(NamedTuple):
    """One document.

    Attributes:
        doc_id: the id in a corpus; otherwise the path of the file below the folder, with `/`.
        title: what the document says its title is; "" in a corpus that has none, otherwise at least the file's name.
        text: its text, with line feeds between lines.
        blocks: the parts of the text, in order.
        path: the file; of a corpus, the file with the line: `corpus.jsonl:12`.
        version: what the document itself says its version or date is, otherwise the digest of its title and text.
        modified: when the file was last changed, in UTC, as `2026-03-01T12:00:00Z`; None in a corpus.
        pages: the offset at which each page begins; empty without pages.
    """

    doc_id: str
    title: str
    text: str
    blocks: tuple[TextBlock, ...]
    path: str
    version: str
    modified: str | None = None
    pages: tuple[int, ...] = ()


class Unread(NamedTuple):
    """A file, a folder or a row that was not read, and why."""

    path: str
    reason: str


class DocumentSet(NamedTuple):
    """All documents of a corpus or a folder, ordered by id, and everything that was not read.

    `kind` says what their ids are: those of a corpus, which a retriever knows too, or paths of files.
    """

    kind: Literal["corpus", "files"]
    path: Path
    documents: tuple[SourceDocument, ...]
    unread: tuple[Unread, ...]


def read_documents(path: Path, columns: CorpusColumns | None = None) -> DocumentSet:
    """Read a folder, a BEIR folder (one with `corpus.jsonl`), a JSON Lines corpus, or one file of another kind.

    Raises `DataError` if nothing could be read, with the reasons, or if a line of a corpus is not JSON, lacks a key or
    repeats an id, with `file:line`.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    corpus = find_file(path / "corpus.jsonl") if path.is_dir() else path
    if corpus.is_file() and format_of(corpus) in CORPORA:
        found: list[SourceDocument | Unread] = list(_read_corpus(corpus, columns or CorpusColumns()))
        kind: Literal["corpus", "files"] = "corpus"
    else:
        found = list(_read_folder(path) if path.is_dir() else _read_file(path, path.name))
        kind = "files"
    documents = sorted((one for one in found if isinstance(one, SourceDocument)), key=lambda one: one.doc_id)
    unread = tuple(one for one in found if isinstance(one, Unread))
    if not documents:
        raise DataError(_explain_nothing(path, unread))
    return DocumentSet(kind, path, tuple(documents), unread)


def _explain_nothing(path: Path, unread: tuple[Unread, ...]) -> str:
    if not unread:
        return f"{path}: there is nothing to read; give a folder of {READABLE}, or a JSON Lines corpus"
    if len(unread) == 1 and unread[0].path == path.name:
        return f"{path}: {unread[0].reason}"
    reasons = "".join(f"\n  {one.path}: {one.reason}" for one in unread[:_MOST_NAMED])
    more = f"\n  and {len(unread) - _MOST_NAMED:,} more" if len(unread) > _MOST_NAMED else ""
    return f"{path}: no document could be read:{reasons}{more}"


def _walk(folder: Path) -> Iterator[Path | Unread]:
    """All files below a folder in the order of their names, and the folders that are left out.

    Links to folders are followed, but not in circles.
    """
    visited = {_identify(folder)}
    problems: list[OSError] = []
    for place, folders, files in os.walk(folder, followlinks=True, onerror=problems.append):
        here = Path(place)
        kept = list[str]()
        for name in sorted(folders):
            below = f"{_relative(here / name, folder)}/"
            if name.startswith("."):
                yield Unread(below, "a hidden folder")
            elif (identity := _identify(here / name)) in visited:
                yield Unread(below, "a link to a folder that was read already")
            else:
                visited.add(identity)
                kept.append(name)
        folders[:] = kept
        yield from (here / name for name in sorted(files))
    yield from (Unread(_relative(Path(one.filename), folder), one.strerror or str(one)) for one in problems)


def _read_folder(folder: Path) -> Iterator[SourceDocument | Unread]:
    for found in _walk(folder):
        if isinstance(found, Unread):
            yield found
        else:
            yield from _read_file(found, _relative(found, folder))


def _identify(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _read_file(path: Path, doc_id: str) -> Iterator[SourceDocument | Unread]:
    form = format_of(path)
    if path.name.startswith("."):
        yield Unread(doc_id, "a hidden file")
        return
    if form not in _READ_AS_FILES:
        yield Unread(doc_id, _explain_format(path, form))
        return
    try:
        data = _read_bytes(path)
        content = _parse(form, data)
        doc_id.encode()
    except (DataError, OSError, UnicodeEncodeError) as error:
        yield Unread(doc_id.encode("utf-8", "replace").decode(), _describe(error))
        return
    if not content.text.strip():
        yield Unread(doc_id, "the file has no text")
        return
    if content.unread:
        yield Unread(doc_id, content.unread)
    title = content.title or _title_from(path)
    modified = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    version = content.version or _digest(title, content.text)
    yield SourceDocument(doc_id, title, content.text, content.blocks, str(path), version, modified, content.pages)


def _explain_format(path: Path, form: str) -> str:
    if form in CORPORA:
        return "a JSON file inside a folder is not read; name the file itself if it is the corpus"
    if (special := name_special(path)) is not None:
        return f"this is {special}, not a file"
    what = f"files in .{form}" if form else "files without a suffix"
    return f"{what} are not read, only {READABLE}"


def _describe(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "the name of the file is not UTF-8; rename it"
    if isinstance(error, OSError):
        return "a link to nothing" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
    return str(error)


def _read_bytes(path: Path) -> bytes:
    if (special := name_special(path)) is not None:
        raise DataError(f"this is {special}, not a file")
    size = path.stat().st_size
    if size > LARGEST:
        raise DataError(f"the file has {size >> 20:,} MiB; at most {LARGEST >> 20} MiB are read as one document")
    if not size:
        raise DataError("the file is empty")
    data = path.read_bytes()
    if data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        raise DataError("the file is compressed; decompress it")
    return data


def _parse(form: str, data: bytes) -> Content:
    if form == "pdf":
        return read_pdf(data)
    text = _decode(data, form)
    if form in HTML:
        return read_web_page(text)
    if form in MARKDOWN:
        return read_markdown(text)
    return Content(text, tuple(find_paragraphs(text)))


def _decode(data: bytes, form: str) -> str:
    """The text of a file in UTF-8, in UTF-16 with a byte order mark, or in the encoding that a web page names."""
    declared = _CHARSET.search(data[:2048]) if form in HTML else None
    encoding = declared[1].decode("ascii") if declared else "utf-8"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif data.startswith(b"\xef\xbb\xbf") or encoding.lower() in {"utf-8", "utf8"}:
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except LookupError as error:
        raise DataError(f"the page names an encoding that does not exist, {encoding!r}") from error
    except UnicodeError as error:
        at = getattr(error, "start", 0)
        line, column = data.count(b"\n", 0, at) + 1, at - data.rfind(b"\n", 0, at)
        name = encoding.removesuffix("-sig").upper()
        raise DataError(
            f"line {line}, column {column}: byte 0x{data[at]:02x} is not {name}; convert the file"
        ) from error
    if "\0" in text:
        raise DataError("the file is binary, not text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _title_from(path: Path) -> str:
    """A title made of the file's name: `refund policy` for `refund-policy.pdf`; of an index, that of its folder."""
    stem = path.stem if path.stem.lower() not in {"index", "readme"} or not path.parent.name else path.parent.name
    return " ".join(re.split(r"[-_\s]+", stem)).strip() or path.name


def _read_corpus(path: Path, columns: CorpusColumns) -> Iterator[SourceDocument | Unread]:
    """The rows of a corpus. An empty document is not read; whatever makes the file no corpus is an error."""
    keys: dict[str, str] = {}
    seen: dict[str, int] = {}
    parts = columns.over(CORPUS, "columns")
    for line, row in json_objects(path):
        place = f"{path}:{line}"
        if not keys:
            required = [part for part in parts if part.required]
            keys = {part.name: key for part, key in choose_keys(place, required, list(row)).items()}
            keys["title"] = columns.title or "title"
        doc_id = text_of(place, f"'{keys['doc_id']}'", "id", row.get(keys["doc_id"]))
        if not doc_id:
            raise DataError(f"{place}: no doc_id")
        if seen.setdefault(doc_id, line) != line:
            raise DataError(f"{place}: the document {doc_id!r} is listed twice, first at {path}:{seen[doc_id]}")
        text = text_of(place, f"'{keys['text']}'", "text", row.get(keys["text"])) or ""
        title = text_of(place, f"'{keys['title']}'", "text", row.get(keys["title"])) or ""
        if not text.strip():
            yield Unread(f"{path.name}:{line}", f"the document {doc_id!r} has no text")
            continue
        version = _find_version(row) or _digest(title, text)
        yield SourceDocument(doc_id, title, text, tuple(find_paragraphs(text)), place, version)


def _find_version(row: dict[str, Any]) -> str:
    metadata = row.get("metadata")
    sources = (row, metadata if isinstance(metadata, dict) else {})
    found = (source.get(key) for key in _VERSION_KEYS for source in sources)
    return next((str(value) for value in found if isinstance(value, str | int) and value), "")


def _digest(title: str, text: str) -> str:
    content = f"{len(title)}:{title}:{text}".encode("utf-8", "backslashreplace")
    return f"blake2b:{hashlib.blake2b(content, digest_size=8).hexdigest()}"


def describe_unread(unread: tuple[Unread, ...]) -> list[str]:
    """A line for each reason with the files that it holds for, the most frequent first."""
    reasons: dict[str, list[str]] = {}
    for one in unread:
        reasons.setdefault(one.reason, []).append(one.path)
    lines = list[str]()
    for reason, paths in sorted(reasons.items(), key=lambda found: (-len(found[1]), found[0])):
        more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
        named = ", ".join(paths[:_MOST_NAMED]) + more
        several = f"{count_noun(len(paths), 'file')} not read: {reason}: {named}"
        lines.append(several if len(paths) > 1 else f"{named}: {reason}")
    return lines


def list_files(path: Path) -> list[Path]:
    """The files that `read_documents` reads, in order: a store or results in the same folder change nothing."""
    corpus = find_file(path / "corpus.jsonl") if path.is_dir() else path
    if corpus.is_file() and (corpus == path or format_of(corpus) in CORPORA):
        return [corpus]
    found = [one for one in _walk(path) if isinstance(one, Path)] if path.is_dir() else []
    readable = (one for one in found if not one.name.startswith(".") and format_of(one) in _READ_AS_FILES)
    return sorted(one for one in readable if os.access(one, os.R_OK) and one.is_file())
