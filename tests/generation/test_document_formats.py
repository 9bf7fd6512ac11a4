""""""

from __future__ import annotations

import sys

import pytest

from rageval_spec.errors import DataError
from rageval_spec.generation.document_formats import find_paragraphs, read_markdown, read_pdf, read_web_page, trim_block
from tests.generation.portable_documents import make_pdf


def test_blank_lines_separate_paragraphs_even_if_they_hold_spaces() -> None:
    text = "\n one\ntwo \n \t\n\n\nthree\n"
    assert [text[block.start : block.end] for block in find_paragraphs(text)] == ["one\ntwo", "three"]


def test_paragraphs_of_a_part_have_offsets_in_the_whole_text() -> None:
    text = "one\n\ntwo\n\nthree"
    assert [text[block.start : block.end] for block in find_paragraphs(text, 5)] == ["two", "three"]
    assert [text[block.start : block.end] for block in find_paragraphs(text, 0, 8)] == ["one", "two"]


def test_white_space_is_no_block() -> None:
    assert list(find_paragraphs(" \n\n ")) == []
    assert list(trim_block("code", "a  b", 1, 3)) == []


PAGE = """\
---
title: Refunds
last_updated: 2026-03-01
---
# All about *refunds*

We pay within `14` days.
Mostly.

- to your card
- as a voucher

```py
# not a heading

x = 1
```

Setext heading
--------------
| a | b |
|---|---|
| 1 | 2 |

<!-- a comment -->

[link]: https://example.org
"""


def test_blocks_have_their_kinds_and_places() -> None:
    content = read_markdown(PAGE)
    found = [
        (block.kind, block.level, content.text[block.start : block.end].split("\n")[0]) for block in content.blocks
    ]
    assert found == [
        ("heading", 1, "# All about *refunds*"),
        ("paragraph", 0, "We pay within `14` days."),
        ("list", 0, "- to your card"),
        ("code", 0, "```py"),
        ("heading", 2, "Setext heading"),
        ("table", 0, "| a | b |"),
        ("markup", 0, "<!-- a comment -->"),
        ("markup", 0, "[link]: https://example.org"),
    ]
    assert [block.words for block in content.blocks if block.level] == ["All about refunds", "Setext heading"]


def test_blocks_contain_everything_except_white_space() -> None:
    content = read_markdown(PAGE)
    parts = "".join(content.text[block.start : block.end] for block in content.blocks)
    assert "".join(parts.split()) == "".join(content.text.split())


def test_front_matter_gives_title_and_version_and_is_no_text() -> None:
    content = read_markdown(PAGE)
    assert (content.title, content.version) == ("Refunds", "2026-03-01")
    assert content.text.startswith("# All about")


def test_the_title_is_the_only_highest_heading_at_the_top() -> None:
    assert read_markdown("## One *bold* step\n\ntext\n\n### Two\n").title == "One bold step"
    assert read_markdown("# One\n\n# Two\n").title == ""
    assert read_markdown("## Small\n\n# Large\n").title == ""
    assert read_markdown("no heading").title == ""


def test_what_only_looks_like_front_matter_stays() -> None:
    for source in (
        "---\na rule\n---\n\ntext",
        "---\n- a\n- b\n---\ntext",
        "---\n{: bad\n---\ntext",
        "---\nnever closed",
    ):
        assert read_markdown(source).text == source


WEB_PAGE = """<!doctype html><html><head><title>Pumps &amp; valves</title>
<meta property="article:modified_time" content="2026-02-03"><script>var text = "<p>no</p>";</script></head>
<body><header>Shop name</header><nav><ul><li>Home<li>Contact</ul></nav>
<h1>Care  of
pumps</h1><p>Drain the <b>pump</b> before frost.<br>Then close it.<p>Never run it dry.
<ul><li>filter<li>seal</ul><table><tr><th>part<th>months<tr><td>seal<td>12</table>
<pre>pump --drain
  --all</pre><div aria-hidden="true">icon</div><footer>Imprint</footer></body></html>"""


def test_a_page_becomes_its_visible_text() -> None:
    assert read_web_page(WEB_PAGE).text.split("\n\n") == [
        "Care of pumps",
        "Drain the pump before frost.\nThen close it.",
        "Never run it dry.",
        "filter\nseal",
        "part | months\nseal | 12",
        "pump --drain\n  --all",
    ]


def test_blocks_have_kinds_places_and_levels() -> None:
    content = read_web_page(WEB_PAGE)
    assert [block.kind for block in content.blocks] == ["heading", "paragraph", "paragraph", "list", "table", "code"]
    assert [content.text[block.start : block.end] for block in content.blocks] == content.text.split("\n\n")
    assert (content.blocks[0].level, content.blocks[0].words) == (1, "Care of pumps")


def test_title_and_version_come_from_the_head() -> None:
    content = read_web_page(WEB_PAGE)
    assert (content.title, content.version) == ("Pumps & valves", "2026-02-03")
    assert read_web_page("<h2>Only</h2><p>text").title == "Only"


def test_only_the_main_part_is_read_with_its_own_header_and_notes() -> None:
    page = (
        "<div>Banner</div><main><article><header><h1>T</h1></header><p>Body</p><aside>Note</aside></article></main><p>x"
    )
    assert read_web_page(page).text == "T\n\nBody\n\nNote"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<nav><p>Everything is in a tag that is never closed", "Everything is in a tag that is never closed"),
        ("<p>one</b></div> two", "one two"),
        ("<a><p>one</a> two</p>", "one two"),
        ("<main></main><p>outside", "outside"),
        ("<p/>text<svg><title>icon</title><path/></svg> more", "text more"),
        ("no tags < at all", "no tags < at all"),
        ("", ""),
    ],
)
def test_careless_pages_are_read_too(page: str, text: str) -> None:
    assert read_web_page(page).text == text


def test_tags_that_are_nested_very_deeply_are_read_in_time() -> None:
    page = "<main>" + "<div>" * 100_000 + "deep" + "</div>" * 100_000 + "<p>after</main>"
    assert read_web_page(page).text == "deep\n\nafter"


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
