"""Writes a page: as one file, or, if its data are large, as a folder of the page and the parts that it loads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from rageval_spec.reports.shared.page.head import dump_head
from rageval_spec.reports.shared.page.packing import pack, write_script
from rageval_spec.reports.shared.page.questions import Questions, collect_questions, dump_documents, list_samples
from rageval_spec.reports.shared.page.shell import build_shell

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

LARGEST = 25_000_000
"""The size in bytes from which on a page becomes a folder."""
INDEX = "index.html"
_THREADS = 2
_AHEAD = 8


def write_page(evaluation: Evaluation, digits: int, title: str | None) -> bytes:
    """The page with all parts of its data inside."""
    shown = title or evaluation.name
    return build_shell(shown, list(_pack_parts(evaluation, digits, shown)), has_files=False)


def write_files(
    evaluation: Evaluation, digits: int, title: str | None, largest: int = LARGEST
) -> Iterator[tuple[str, bytes]]:
    """The page as `("", content)`; if its data take more than `largest` bytes, the files of a folder.

    The folder's page, `index.html`, comes last, so that it is never there without its parts.
    """
    shown = title or evaluation.name
    kept: list[tuple[str, str]] = []
    parts = _pack_parts(evaluation, digits, shown)
    size = 0
    for part in parts:
        kept.append(part)
        size += len(part[1])
        if size > largest:
            break
    else:
        yield "", build_shell(shown, kept, has_files=False)
        return
    head, rest = kept[0], kept[1:]
    kept.clear()
    while rest:
        name, packed = rest.pop(0)
        yield f"parts/{name}.js", write_script(name, packed)
    for name, packed in parts:
        yield f"parts/{name}.js", write_script(name, packed)
    yield INDEX, build_shell(shown, [head], has_files=True)


def _pack_parts(evaluation: Evaluation, digits: int, title: str) -> Iterator[tuple[str, str]]:
    """The names and packed contents of all parts, the head first; several are compressed at a time."""
    waiting: list[tuple[str, Future[str]]] = []
    with ThreadPoolExecutor(_THREADS) as threads:
        for name, content in _dump_parts(evaluation, digits, title):
            waiting.append((name, threads.submit(pack, content)))
            if len(waiting) > _AHEAD:
                first, packed = waiting.pop(0)
                yield first, packed.result()
        for name, packed in waiting:
            yield name, packed.result()


def _dump_parts(evaluation: Evaluation, digits: int, title: str) -> Iterator[tuple[str, bytes]]:
    questions: Questions = collect_questions(evaluation)
    yield "head", dump_head(evaluation, questions, digits, title)
    for number, block in enumerate(questions.blocks()):
        yield f"cards-{number}", block
    documents = questions.documents
    del questions  # which needs more memory than the documents' numbers
    for number, part in enumerate(documents.split(list_samples(evaluation))):
        yield f"documents-{number}", dump_documents(part)
