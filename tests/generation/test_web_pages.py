from __future__ import annotations

import pytest

from rageval_spec.generation.web_pages import read_web_page

PAGE = """<!doctype html><html><head><title>Pumps &amp; valves</title>
<meta property="article:modified_time" content="2026-02-03"><script>var text = "<p>no</p>";</script></head>
<body><header>Shop name</header><nav><ul><li>Home<li>Contact</ul></nav>
<h1>Care  of
pumps</h1><p>Drain the <b>pump</b> before frost.<br>Then close it.<p>Never run it dry.
<ul><li>filter<li>seal</ul><table><tr><th>part<th>months<tr><td>seal<td>12</table>
<pre>pump --drain
  --all</pre><div aria-hidden="true">icon</div><footer>Imprint</footer></body></html>"""


def test_a_page_becomes_its_visible_text() -> None:
    assert read_web_page(PAGE).text.split("\n\n") == [
        "Care of pumps",
        "Drain the pump before frost.\nThen close it.",
        "Never run it dry.",
        "filter\nseal",
        "part | months\nseal | 12",
        "pump --drain\n  --all",
    ]


def test_blocks_have_kinds_places_and_levels() -> None:
    content = read_web_page(PAGE)
    assert [block.kind for block in content.blocks] == ["heading", "paragraph", "paragraph", "list", "table", "code"]
    assert [content.text[block.start : block.end] for block in content.blocks] == content.text.split("\n\n")
    assert (content.blocks[0].level, content.blocks[0].words) == (1, "Care of pumps")


def test_title_and_version_come_from_the_head() -> None:
    content = read_web_page(PAGE)
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
