"""Makes PDF files for tests."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest


def make_pdf(pages: Sequence[Sequence[str]], *, password: str | None = None, title: str | None = None) -> bytes:
    """A PDF with one line of text below another on each page; a page without lines is blank, as a scanned one is."""
    pypdf = pytest.importorskip("pypdf", reason="pip install pypdf")
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = pypdf.PdfWriter()
    font = DictionaryObject({
        NameObject("/Type"): NameObject("/Font"),
        NameObject("/Subtype"): NameObject("/Type1"),
        NameObject("/BaseFont"): NameObject("/Helvetica"),
    })  # fmt: skip
    for lines in pages:
        page = writer.add_blank_page(width=612, height=792)
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        shown = " ".join(f"({line}) Tj 0 -14 Td" for line in lines)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 72 720 Td {shown} ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    if title is not None:
        writer.add_metadata({"/Title": title, "/ModDate": "D:20260102030405Z"})
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()
