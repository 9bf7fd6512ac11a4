from __future__ import annotations

import sys

import pytest

from rageval_spec.errors import DataError
from rageval_spec.generation.pdf import read_pdf
from tests.generation.portable_documents import make_pdf


def test_pages_are_joined_and_their_places_kept() -> None:
    content = read_pdf(make_pdf([["The pump must be", "primed."], ["Drain it before frost."]]))
    assert content.text == "The pump must be\nprimed.\n\nDrain it before frost."
    assert [content.text[start : start + 5] for start in content.pages] == ["The p", "Drain"]
    assert [content.text[block.start : block.end] for block in content.blocks] == content.text.split("\n\n")


def test_words_that_are_hyphenated_at_the_end_of_a_line_are_joined() -> None:
    assert read_pdf(make_pdf([["The evalu-", "ation of e-", "Mail"]])).text == "The evaluation of e-\nMail"


def test_headers_and_footers_are_left_out_even_if_they_number_the_pages() -> None:
    pages = [["Manual", f"Chapter {word}.", f"Page {number}"] for number, word in enumerate(("one", "two", "six"), 1)]
    assert read_pdf(make_pdf(pages)).text == "Chapter one.\n\nChapter two.\n\nChapter six."


def test_pages_without_text_are_named() -> None:
    content = read_pdf(make_pdf([["Read me."], [], ["And me."], []]))
    assert content.unread == "2 of 4 pages without text (page 2, 4); scanned pages need OCR"
    assert content.text == "Read me.\n\nAnd me."


def test_a_scanned_file_says_what_to_do() -> None:
    with pytest.raises(DataError, match="no page has text; if the pages are scanned images, run OCR"):
        read_pdf(make_pdf([[], []]))


def test_an_encrypted_file_is_refused_and_one_without_a_password_to_open_it_is_read() -> None:
    with pytest.raises(DataError, match="it is encrypted; save it without a password"):
        read_pdf(make_pdf([["Secret."]], password="open sesame"))
    assert read_pdf(make_pdf([["Public."]], password="")).text == "Public."


def test_title_and_date_come_from_the_metadata_but_not_the_name_of_a_file() -> None:
    content = read_pdf(make_pdf([["Text."]], title="Pump manual"))
    assert (content.title, content.version) == ("Pump manual", "2026-01-02T03:04:05+00:00")
    assert read_pdf(make_pdf([["Text."]], title="Microsoft Word - draft7.doc")).title == ""


@pytest.mark.parametrize("cut", [10, 200, 450])
def test_a_damaged_file_is_refused(cut: int) -> None:
    with pytest.raises(DataError):
        read_pdf(make_pdf([["Text."]])[:cut])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(DataError, match=r"pip install 'rageval-spec\[pdf\]'"):
        read_pdf(b"%PDF-1.7")
