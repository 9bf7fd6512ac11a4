from __future__ import annotations

from rageval_spec.generation.markdown import read_markdown

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
