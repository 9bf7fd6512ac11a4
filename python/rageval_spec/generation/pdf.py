"""PDF: the text of each page, without headers and footers. It needs the package pypdf, the extra `pdf`."""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rageval_spec.errors import DataError
from rageval_spec.generation.blocks import Block, Content, find_paragraphs
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from pypdf import PdfReader

_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[a-zà-öø-ÿа-я])")
_FEWEST_PAGES = 3
"""Among fewer pages, a line that stands on more than half of them may be chance."""


def read_pdf(data: bytes) -> Content:
    """The pages of a PDF, a blank line between two, with the offset of each page.

    Words that are hyphenated at the end of a line are joined. Lines that stand at the top or bottom of more than half
    of the pages, apart from numbers, are headers and footers and left out. Pages without text are named in `unread`.

    Raises:
        DataError: pypdf is not installed, the file is not a PDF or damaged, it needs a password, or no page has text.
    """
    title, version, pages = _extract(data)
    texts = [_HYPHENATED.sub("", page) for page in _drop_repeated(pages)]
    empty = [number for number, text in enumerate(texts, 1) if not text.strip()]
    if len(empty) == len(texts):
        raise DataError("no page has text; if the pages are scanned images, run OCR over them first")
    text, starts, blocks = "", list[int](), list[Block]()
    for page in texts:
        gap = "\n\n" if text and page.strip() else ""
        starts.append(len(text) + len(gap))
        text += gap + page.strip()
        blocks += find_paragraphs(text, starts[-1])
    return Content(text, tuple(blocks), title, version, tuple(starts), _describe_empty(empty, len(texts)))


def _extract(data: bytes) -> tuple[str, str, list[str]]:
    """Title, date of the last change and texts of the pages."""
    try:
        from pypdf import PasswordType, PdfReader
        from pypdf.errors import DependencyError
    except ImportError as error:
        raise DataError("reading PDF needs the package pypdf: pip install 'rageval-spec[pdf]'") from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it says of a damaged page comes without the file
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
            raise DataError("it is encrypted; save it without a password")
        return *_read_metadata(reader), [_clean(page.extract_text()) for page in reader.pages]
    except DependencyError as error:
        raise DataError("it is encrypted; save it without encryption, or install the package cryptography") from error
    except (DataError, MemoryError):
        raise
    except Exception as error:  # damaged files raise almost anything inside pypdf
        raise DataError(f"the PDF is damaged ({error or type(error).__name__})") from error


def _read_metadata(reader: PdfReader) -> tuple[str, str]:
    found = reader.metadata
    title = " ".join(str(found.title or "").split()) if found else ""
    try:
        changed = found.modification_date if found else None
    except ValueError:
        changed = None
    # Programs that print to PDF write the name of the file as its title.
    is_title = bool(title) and not re.search(r"^untitled|^Microsoft Word - |\.\w{2,4}$", title, re.IGNORECASE)
    return title if is_title else "", changed.isoformat() if changed else ""


def _clean(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\x00", "").splitlines())


def _drop_repeated(pages: Sequence[str]) -> Iterator[str]:
    """The pages without their headers and footers."""
    edges = Counter(edge for page in pages for edge in {_edge(page, 0), _edge(page, -1)} if edge)
    many = max(_FEWEST_PAGES, len(pages) // 2 + 1)
    for page in pages:
        lines = page.strip().split("\n")
        for place in (0, -1):
            if lines and edges[_edge("\n".join(lines), place)] >= many:
                lines.pop(place)
        yield "\n".join(lines)


def _edge(page: str, place: int) -> str:
    """The first or last line of a page with `#` for each number; "" on an empty page."""
    lines = page.strip().split("\n")
    return re.sub(r"\d+", "#", lines[place].strip())


def _describe_empty(empty: Sequence[int], count: int) -> str:
    if not empty:
        return ""
    named = ", ".join(map(str, empty[:5])) + (" and others" if len(empty) > 5 else "")
    return f"{len(empty)} of {count_noun(count, 'page')} without text (page {named}); scanned pages need OCR"
