from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.evidence.citations import list_statements
from rageval_spec.recorded.citations import find_citations


def cited(text: str, count: int | None = 3, ids: list[str] | None = None, **more: Any) -> list[tuple[str, int | None]]:
    """The documents that a text cites: as written, and the contexts that they are."""
    contexts = None if count is None else ["x"] * count
    return [(one.document, one.context) for one in find_citations(text, contexts, ids, **more)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The sky is blue [1].", [("1", 0)]),
        ("The sky is blue.[1] Water is wet.", [("1", 0)]),
        ("The sky[2] is blue.", [("2", 1)]),
        ("The sky [1, 3].", [("1", 0), ("3", 2)]),
        ("The sky [1-3].", [("1", 0), ("2", 1), ("3", 2)]),
        ("The sky[1][2].", [("1", 0), ("2", 1)]),
        ("The sky [1][2].", [("1", 0), ("2", 1)]),
        ("The sky [1 3].", [("1", 0), ("3", 2)]),
        ("In 2016 it was 12.7% [3].", [("3", 2)]),
        ("The sky [Doc 2] and [source: 3].", [("2", 1), ("3", 2)]),
        ("The sky (Source: 1).", [("1", 0)]),
        ("The sky【2†source】.", [("2", 1)]),
        ("The sky is blue¹ and the sea².", [("1", 0)]),  # "sea" could be a unit
        ("The water is deep<sup>2</sup>.", [("2", 1)]),
        ("The water is red<sup>2</sup>.", [("2", 1)]),
        ("The water is red <sup>1, 3</sup>.", [("1", 0), ("3", 2)]),
        ("It is 3 cm<sup>[2]</sup>.", [("2", 1)]),
        ("The sky **[1]**, *[2]* and __[3]__.", [("1", 0), ("2", 1), ("3", 2)]),
        ("The sky [Doc 1, Doc 2] and [sources 2 & 3].", [("1", 0), ("2", 1), ("2", 1), ("3", 2)]),
        ("The sky [1 and 2].", [("1", 0), ("2", 1)]),
        ("The sky [1 or 2]. Page [1/3].", [("1", 0), ("2", 1)]),
        ("The sky [see 1]. Sea [cf. 2, 3].", [("1", 0), ("2", 1), ("3", 2)]),
        ("The sky **[1][2]**. Sea *[2], [3]*.", [("1", 0), ("2", 1), ("2", 1), ("3", 2)]),
        ("The sky [^2].", [("2", 1)]),
        ("[ 2 blue sky ] is seen.", [("2", 1)]),
        ("The sky [9].", [("9", None)]),
        ("The sky [2, 9].", [("2", 1), ("9", None)]),
        ("The sky [0]. The sea [1].", [("0", 0), ("1", 1)]),
    ],
)
def test_numbers(text: str, expected: list[tuple[str, int | None]]) -> None:
    assert cited(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "He wrote it [2021].",
        "Then a[0] and b[1][2] and rows[0] = 1.",
        "It is x[1] = [2] + 1.",
        "Use `list [1]` or\n```\nx [1]\n```",
        "The list [1, 2, 3] is sorted.",
        "It lies in [0, 1] and in the interval [1, 2].",
        "Sizes are [10, 20, 30].",
        "An area of 3 cm <sup>2</sup> or 3 cm<sup>2</sup>.",
        "An area of 5 m² and 10³ of them, E=mc².",
        "Where $a_1 = [1]$ holds.",
        "See [our page](https://a.org) and ![1](x.png).",
        "A [sic] and [...] and [ ] and [x] and [].",
        "Odd [1.5] or [-1].",
    ],
)
def test_what_is_no_citation(text: str) -> None:
    assert cited(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Open [guide.md].", [("guide.md", 0)]),
        ("Open [faq.md; guide.md].", [("faq.md", 1), ("guide.md", 0)]),
        ("Open [terms.md].", [("terms.md", None)]),
        ("Open [the page](https://a.org/x).", [("https://a.org/x", 2)]),
        ("Open ([site](https://a.org/x/)).", [("https://a.org/x/", 2)]),
        ("Open [1](https://b.org).", [("https://b.org", None)]),
        ("Open (Source: faq.md, terms.md).", [("faq.md", 1), ("terms.md", None)]),
        ("Open (Source: the law of 1999).", [("the law of 1999", None)]),
        ("Open【4:0†faq.md】.", [("faq.md", 1)]),
        ("Open【4:0†source】.", [("4:0†source", None)]),
        ("Open [^a].\n\n[^a]: see faq.md, page 2", [("a", 1)]),
        ("Open [1]. Shut [2].\n\nSources:\n[1] faq.md\n[2] guide.md", [("1", 1), ("2", 0)]),
    ],
)
def test_names(text: str, expected: list[tuple[str, int | None]]) -> None:
    assert cited(text, ids=["guide.md", "faq.md", "https://a.org/x"]) == expected


def test_numbers_are_ids_if_all_of_them_are() -> None:
    assert cited("One fact [3]. Another fact [7].", 2, ["7", "3"]) == [("3", 1), ("7", 0)]
    assert cited("One fact [1]. Another fact [7].", 2, ["7", "3"]) == [("1", 0), ("7", None)]


IDS = ["a.md", "b.md", "c.md"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "sources",
    [
        "Sources:\n[1] c.md\n[2] a.md",
        "**References**\n\n- [1]: c.md\n- [2]: a.md\n",
        "Sources: [1] c.md, [2] a.md",
        "Sources:\n1. c.md\n2. a.md",
        "Sources:\n[1] c.md\n[2] a.md\n\nLet me know if you need more.",
        "[1]: c.md\n[2]: a.md",
        "Works cited:\n• [1] c.md\n• [2] a.md",
        "## Sources used\n> [1] c.md\n> [2] a.md",
        "Sources (2):\n[1] c.md\n[2] a.md",
    ],
)
def test_a_number_means_the_source_that_the_answer_lists_for_it(sources: str, end: str) -> None:
    text = f"It opened in 1889 [1]. It is green [2].\n\n{sources}".replace("\n", end)
    found = find_citations(text, ["x"] * 3, IDS)
    assert [(one.document, one.context) for one in found] == [("1", 2), ("2", 0)]
    said = [one.text for one in list_statements(text, found)]
    assert said[:2] == ["It opened in 1889.", "It is green."]
    assert [one for one in said[2:] if "more" not in one] == []


def test_a_listed_source_that_is_no_context_is_none() -> None:
    text = "It is green [1]. It is red [2].\n\nSources:\n[1] a.md\n"
    assert cited(f"{text}[2] invented.md", ids=IDS) == [("1", 0), ("2", None)]
    assert cited(f"{text}[2] A made-up book", ids=IDS) == [("1", 0), ("2", None)]
    assert cited("Red [1].\n\nSources:\n[1] invented.md", ids=IDS) == [("1", None)]
    assert cited("Red [2].\n\nSources:\n[1] A guide\n[2] A book", ids=IDS) == [("2", 1)]  # titles alone say nothing


def test_numbered_lines_under_a_heading_within_an_answer_are_content() -> None:
    text = "Sources\n1. Solar power [1]\n2. Wind power [2]\n\nBoth are renewable [3]."
    assert [one for one, _ in cited(text)] == ["1", "2", "3"]


def test_links_leave_no_bracket_behind() -> None:
    text = "Open [the [old] guide](a.md) now."
    assert [one.text for one in list_statements(text, find_citations(text, ["x"], ["a.md"]))] == [
        "Open the [old] guide now."
    ]


def test_counting_from_zero() -> None:
    assert cited("One fact [1].") == [("1", 0)]
    assert cited("One fact [1].", first=0) == [("1", 1)]
    assert cited("One fact [0].", first=1) == [("0", None)]


def test_unknown_contexts() -> None:
    assert cited("One fact [1]. Another [12].", None) == [("1", None), ("12", None)]


def test_places() -> None:
    text = "The sky is blue [1]. Water is wet.[2] All [3] is well.\n[1] Last line."
    found = [(text[one.start : one.end], one.marker) for one in find_citations(text, ["x"] * 3, None)]
    assert found == [
        ("The sky is blue [1].", (16, 19)),
        ("Water is wet.", (34, 37)),
        ("All [3] is well.", (42, 45)),
        ("Last line.", (55, 58)),
    ]


@given(st.text(st.sampled_from("[]()【】†^¹²01239,;- ab.\n`$<>/sup:!|"), max_size=60))
def test_any_text(text: str) -> None:
    for one in find_citations(text, ["x", "y"], ["a", "b"]):
        assert one.marker is not None
        assert 0 <= one.start <= one.end <= len(text)
        assert 0 <= one.marker[0] < one.marker[1] <= len(text)
        assert one.context in (None, 0, 1)


@pytest.mark.parametrize(
    "text", ["[" * 20000, "[1" * 20000, "[1 " + " " * 20000, "$=" * 20000, "Sources:\n" * 3000, "([a](" * 9000]
)
def test_hostile_texts_take_no_time(text: str) -> None:
    assert isinstance(find_citations(text, ["x"], ["a"]), tuple)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    yield from map(json.loads, content.decode().rstrip("\n").split("\n"))


def test_published_answers(shared_data: Path) -> None:
    """CrowdRAG-25 counts from 0. What is not read there follows "it" without a space, or is misspelled ("1516,")."""
    read = written = unknown = 0
    for row in list(_rows(shared_data / "human/crowdrag25_responses.jsonl.gz"))[::3]:
        found = find_citations(row["response"], None, row["reference_ids"], first=0)
        read += len(found)
        unknown += sum(one.context is None for one in found)
        written += sum(len(re.findall(r"\d+", group)) for group in re.findall(r"\[[\d\s,–-]+\]", row["response"]))
    assert 0.998 < read / written <= 1
    assert unknown <= 1


def test_published_numbers(shared_data: Path) -> None:
    for row in list(_rows(shared_data / "rag_qa/lfrqa_fiqa.jsonl.gz"))[::5]:
        text = row["answer_with_citations"]
        found = find_citations(text, None, [str(one) for one in row["gold_doc_ids"]])
        groups = re.findall(r"\[([\d, ]+)\]", text)
        assert [one.document for one in found] == [one for group in groups for one in re.findall(r"\d+", group)]


def test_published_quotes(shared_data: Path) -> None:
    for row in _rows(shared_data / "rag_qa/quotesum_dev.jsonl"):
        found = find_citations(row["answer"], [one["text"] for one in row["contexts"]], None)
        assert [one.document for one in found] == re.findall(r"\[ (\d+) ", row["answer"])
        assert all(one.context is not None for one in found)
