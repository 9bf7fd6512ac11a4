"""Passages in files of questions: every form of them, where they stand, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.evidence.passages import Passage
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from tests.plugins import build_dataset, write

GUIDE = (
    "# Refunds\n\nRefunds take 14 days. After that, we charge a fee of 5 euros.\n\nParcels are insured up to 500 euros."
)
QUOTE = "After that, we charge a fee of 5 euros."
START = GUIDE.index("After")


def open_rows(folder: Path, *relevant: Any, guide: str = GUIDE, **keys: Any) -> Collection:
    write(folder / "docs" / "guide.md", guide)
    rows = [{"query_id": f"q{n}", "question": "x", "relevant": one} for n, one in enumerate(relevant)]
    write(folder / "golden.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return build_dataset("jsonl", folder, **{"path": "golden.jsonl", "documents": "docs"} | keys).open()


def passages_of(collection: Collection, query_id: str = "q0") -> Sequence[Passage]:
    assert collection.passages is not None
    return collection.passages.passages[query_id]


def write_chunks(folder: Path, size: int, name: str = "chunks.jsonl", text: str = GUIDE, **more: Any) -> str:
    starts = range(0, len(text), size)
    rows = [{"doc_id": f"c{n}", "text": text[at : at + size]} | more for n, at in enumerate(starts)]
    if more:
        rows = [{**row, "start": at, "end": at + len(row["text"])} for row, at in zip(rows, starts, strict=True)]
    write(folder / name, "".join(json.dumps(row) + "\n" for row in rows))
    return name


@pytest.mark.parametrize(
    "value",
    [
        {"document": "guide.md", "quote": QUOTE, "grade": 2},
        [{"document": "guide.md", "quote": f"  {QUOTE.upper()}\n", "relevance": 2}],
        [{"document_id": "guide.md", "start": START, "end": START + len(QUOTE) - 1, "grade": "2"}],
        [{"doc_id": "guide.md", "text": QUOTE, "start": 3, "end": 9, "grade": 2.0}],
    ],
)
def test_a_passage_is_a_quote_or_offsets_with_a_grade(tmp_path: Path, value: Any) -> None:
    """Where the text at the offsets is another one, the document was edited, and the quote counts."""
    (found,) = passages_of(open_rows(tmp_path, value))
    assert (found.document, found.start, found.grade) == ("guide.md", START, 2)
    assert found.end in (START + len(QUOTE), START + len(QUOTE) - 1)


def test_a_quote_with_small_edits_is_found_and_its_similarity_is_kept(tmp_path: Path) -> None:
    (found,) = passages_of(
        open_rows(tmp_path, [{"document": "guide.md", "quote": "Afterwards we charge fees of 5 euros"}])
    )
    assert found.start is not None and abs(found.start - START) < 5
    assert 0.8 <= found.similarity < 1


PLACE = r"golden\.jsonl:1: "


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"document": "guide.md"}], r"relevant\[0\] needs a quote, or both 'start' and 'end'"),
        ([{"document": "guide.md", "start": 3}], "needs a quote, or both"),
        ([{"quote": "x"}], r"relevant\[0\] names no document; write {document: guide.md, quote: ...}"),
        ([{"document": "guide.md", "quote": " \n"}], r"relevant\[0\].quote is empty"),
        ([{"document": "guide.md", "quote": ["x"]}], r"relevant\[0\].quote must be text, not a list"),
        ([{"document": "guide.md", "start": 9, "end": 9}], "is empty: its end, 9, is not after its start, 9"),
        ([{"document": "guide.md", "start": -1, "end": 9}], r"start must be a number of at least 0, not -1"),
        ([{"document": "guide.md", "start": 0.5, "end": 9}], "start must be a whole number"),
        ([{"document": "guide.md", "start": 0, "end": 10**9}], r"\[0:1000000000\] does not exist: guide.md has"),
        ([{"document": "guide.md", "quote": "x", "grade": 0}], "grade must be from 1 to 100, not 0"),
        ([{"document": "guide.md", "quote": "x", "grade": 101}], "grade must be from 1 to 100, not 101"),
        ([{"document": "guide.md", "quote": "half \ud800"}], "half a surrogate pair"),
        ([{"document": ["a"], "quote": "x"}], r"relevant\[0\].document must be text or a whole number"),
        ([{"document": "guid.md", "quote": "x"}], r"there is no document 'guid.md' in .*; did you mean 'guide.md'\?"),
        ([{"document": "guide.md", "quote": QUOTE}] * 2, r"relevant\[1\], the passage guide.md .*, is listed twice"),
        (
            [{"document": "guide.md", "quote": "Parcels weigh at most 30 kilograms in summer."}],
            r"the quote 'Parcels weigh .*' is not in 'guide.md'; the nearest place is characters \d+ to \d+ "
            r"\(similarity 0.\d\d\): '.*Parcels are insured.*'; correct the quote",
        ),
        ([{"document": "guide.md", "quote": "…"}], "is not in 'guide.md'; quote words that stand there"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_passage_is_told_with_its_row(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=PLACE + ".*" + message):
        open_rows(tmp_path, value).qrels  # noqa: B018


def test_maps_and_lists_of_ids_stay_what_they_were(tmp_path: Path) -> None:
    collection = open_rows(tmp_path, {"document": 2, "quotes": 1}, ["d1", 7], "d2", None)
    assert collection.passages is None and collection.qrels is not None
    assert collection.qrels.rows() == [
        ("q0", "document", 2), ("q0", "quotes", 1), ("q1", "d1", 1), ("q1", "7", 1), ("q2", "d2", 1),
    ]  # fmt: skip


def test_ids_and_passages_stand_side_by_side(tmp_path: Path) -> None:
    corpus = write_chunks(tmp_path, 50)
    collection = open_rows(tmp_path, ["c0", {"document": "guide.md", "quote": QUOTE}], ["c2"], corpus=corpus)
    assert collection.qrels is not None
    assert sorted(collection.qrels.rows()) == [("q0", "c0", 1), ("q0", "c1", 1), ("q1", "c2", 1)]


@pytest.mark.parametrize("word", ["golden", "json", "jsonl", "yaml", "csv", "xlsx", "parquet"])
def test_every_format_of_rows_has_passages(tmp_path: Path, word: str) -> None:
    """In a cell of a table they are JSON."""
    import polars as pl

    row: dict[str, Any] = {"id": "q0", "question": "x", "relevant": [{"document": "guide.md", "quote": QUOTE}]}
    table = pl.DataFrame([{**row, "relevant": json.dumps(row["relevant"])}])
    path, reader = (
        tmp_path / f"golden.{'json' if word == 'golden' else word}",
        "golden" if word in ("csv", "xlsx", "parquet") else word,
    )
    if word == "csv":
        table.write_csv(path)
    elif word == "xlsx":
        table.write_excel(path)
    elif word == "parquet":
        pl.DataFrame([row]).write_parquet(path)
    else:
        path.write_text(json.dumps([row] if word in ("json", "yaml", "golden") else row))
    write(tmp_path / "docs" / "guide.md", GUIDE)
    (found,) = passages_of(build_dataset(reader, tmp_path, path=path.name, documents="docs").open())
    assert (found.start, found.end) == (START, START + len(QUOTE))


@pytest.mark.parametrize("size", [40, 60, 1000])
@pytest.mark.parametrize("more", [{}, {"document_id": "guide.md"}, {"document": "guide.md"}])
@pytest.mark.parametrize("documents", ["docs", None])
def test_chunks_have_offsets_or_are_found_by_their_texts(
    tmp_path: Path, size: int, more: dict[str, Any], documents: str | None
) -> None:
    corpus = write_chunks(tmp_path, size, **more)
    end_of_quote = START + len(QUOTE)
    passage = {"document": "guide.md", "quote": QUOTE, "start": START, "end": end_of_quote}
    collection = open_rows(tmp_path, [passage], corpus=corpus, documents=documents, coverage={"at_least": 0.01})
    assert collection.qrels is not None and collection.passages is not None
    texts = {row["doc_id"]: row["text"] for row in map(json.loads, (tmp_path / corpus).read_text().splitlines())}
    touching = collection.passages.corpus["q0"]
    found = {chunk: sum(part.end - part.start for part in parts) for chunk, parts in touching.items()}
    places = {f"c{n}": (at, at + size) for n, at in enumerate(range(0, len(GUIDE), size))}
    exact = {name: min(end, end_of_quote) - max(start, START) for name, (start, end) in places.items()}
    for name, characters in exact.items():
        if more or not 0 < characters < 30:  # of texts, a part needs about 24 letters
            assert abs(found.get(name, 0) - max(0, characters)) <= (0 if more else 3), texts[name]
    assert collection.qrels["relevance"].to_list() == [1]


def test_whole_documents_of_the_corpus_are_the_documents_if_none_are_named(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", json.dumps({"_id": "guide.md", "title": "t", "text": GUIDE}) + "\n")
    collection = open_rows(
        tmp_path, [{"document": "guide.md", "quote": "after that we"}], corpus="corpus.jsonl", documents=None
    )
    assert passages_of(collection)[0].start == START
    assert collection.qrels is not None and collection.qrels.rows() == [("q0", "guide.md", 1)]


def test_graded_coverage_gives_each_chunk_its_share_in_tenths(tmp_path: Path) -> None:
    corpus = write_chunks(tmp_path, START + 12, document_id="guide.md")
    collection = open_rows(tmp_path, [{"document": "guide.md", "quote": QUOTE}], corpus=corpus, coverage="graded")
    assert collection.qrels is not None
    assert collection.qrels.rows() == [("q0", "c1", 7), ("q0", "c0", 3)], "27 and 12 of 39 characters"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"start": "x", "end": 3}, r"chunks\.jsonl:1.*'start' must be a number"),
        ({"start": 5, "end": 3}, r"chunks\.jsonl:1: the chunk ends at 3, before its start at 5"),
        ({"start": -5, "end": 3}, r"chunks\.jsonl:1.*'start' must be a number of at least 0"),
    ],
)
def test_offsets_of_chunks_that_are_none_are_told_with_their_row(
    tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    write(tmp_path / "chunks.jsonl", json.dumps({"doc_id": "c0", "text": "x", "document_id": "guide.md"} | row) + "\n")
    with pytest.raises(DataError, match=message):
        open_rows(tmp_path, [{"document": "guide.md", "quote": QUOTE}], corpus="chunks.jsonl").qrels  # noqa: B018


def test_offsets_that_are_not_those_of_the_documents_are_an_error(tmp_path: Path) -> None:
    """Such as those of another version of the documents; one chunk that says something else is not."""
    passage = [{"document": "guide.md", "quote": QUOTE}]
    rows = [
        {"doc_id": f"c{n}", "text": GUIDE[at : at + 20], "document_id": "guide.md", "start": at + 30}
        for n, at in enumerate((0, 20))
    ]
    right = [
        {**row, "doc_id": f"r{n}", "text": GUIDE[(at := int(str(row["start"]))) : at + 20]}
        for n, row in enumerate(rows)
    ]

    def judge(*chunks: dict[str, Any]) -> object:
        write(tmp_path / "chunks.jsonl", "".join(json.dumps(row) + "\n" for row in chunks))
        return open_rows(tmp_path, passage, corpus="chunks.jsonl").qrels

    shown = (
        r"the chunk 'c0' is '# Refunds .*', but characters 30 to 50 of 'guide.md' are 's\. After .*', and its text is "
        "at 2 to 20; count characters"
    )
    for chunks in (rows, [rows[0], *right]):
        with pytest.raises(DataError, match=shown):
            judge(*chunks)
    other = [{**row, "text": "Nothing of the sort is said"} for row in rows]
    with pytest.raises(DataError, match="as 'documents' has them; so it is for 2 of 2 chunks"):
        judge(*other)
    headed = {**right[0], "doc_id": "r9", "text": f"From the handbook, page 3: {right[0]['text']}"}
    assert judge(other[0], headed, *right) is not None


def test_without_documents_a_quote_must_be_as_long_as_its_offsets_say(tmp_path: Path) -> None:
    passage = {"document": "guide.md", "quote": QUOTE, "start": 0, "end": 3}
    with pytest.raises(DataError, match=PLACE + "the quote has 39 characters, and 'start' and 'end' are 3 apart"):
        open_rows(tmp_path, [passage], documents=None).qrels  # noqa: B018


def test_the_documents_are_a_part_of_what_results_depend_on(tmp_path: Path) -> None:
    open_rows(tmp_path, ["d1"])
    dataset = build_dataset("jsonl", tmp_path, path="golden.jsonl", documents="docs")
    assert [one.path.name for one in dataset.inputs()] == ["golden.jsonl", "guide.md"]
    before = dataset.digest()
    (tmp_path / "docs" / "guide.md").rename(tmp_path / "docs" / "manual.md")
    assert build_dataset("jsonl", tmp_path, path="golden.jsonl", documents="docs").digest() != before
    bare = build_dataset("jsonl", tmp_path, path="golden.jsonl").content()
    assert "documents" not in bare["node"] and "coverage" not in bare["node"], "stored tables are still found"


def test_names_of_documents_that_no_chunk_has_are_an_error(tmp_path: Path) -> None:
    for name in ("Guide.md", "guide"):
        write(
            tmp_path / "chunks.jsonl",
            json.dumps({"doc_id": "c", "text": GUIDE, "document_id": name, "start": 0}) + "\n",
        )
        with pytest.raises(DataError, match=f"no chunk names the document 'guide.md'; did you mean '{name}'"):
            open_rows(tmp_path, [{"document": "guide.md", "quote": QUOTE}], corpus="chunks.jsonl").qrels  # noqa: B018
    write(tmp_path / "chunks.jsonl", json.dumps({"doc_id": "c", "text": GUIDE, "document_id": "zz", "start": 0}) + "\n")
    with pytest.raises(DataError, match="no chunk has anything of any passage, and all values would be 0: the chunks"):
        open_rows(tmp_path, [{"document": "guide.md", "quote": QUOTE}], corpus="chunks.jsonl").qrels  # noqa: B018


def test_without_documents_a_quote_in_no_chunk_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "chunks.jsonl", json.dumps({"doc_id": "c", "text": GUIDE, "document_id": "guide.md"}) + "\n")
    quotes = [{"document": "guide.md", "quote": QUOTE}, {"document": "guide.md", "quote": "Bikes are green and fast."}]
    with pytest.raises(DataError, match=r'no chunk has anything of the passage guide\.md "Bikes are'):
        open_rows(tmp_path, quotes, corpus="chunks.jsonl", documents=None).qrels  # noqa: B018


@pytest.mark.parametrize("header", ["Monitoring > Alerts\n\n", ""])
@pytest.mark.parametrize("footer", ["", "\n(page 3 of the handbook)"])
def test_chunks_without_offsets_are_found_without_their_headers(tmp_path: Path, header: str, footer: str) -> None:
    """A passage that the border of two chunks cuts is found at the chunk with most of it."""
    text = " ".join(f"Sentence {n} says that {n * 7919} bikes were sold in town {n * 31}." for n in range(40))
    chunks = [
        {"doc_id": f"c{at}", "text": f"{header}{text[at : at + 300]}{footer}", "document_id": "guide.md"}
        for at in range(0, len(text), 300)
    ]
    write(tmp_path / "chunks.jsonl", "".join(json.dumps(row) + "\n" for row in chunks))
    found = open_rows(tmp_path, [{"document": "guide.md", "quote": text[500:760]}], guide=text, corpus="chunks.jsonl")
    assert found.qrels is not None
    assert found.qrels.select("doc_id", "relevance").rows() == [("c600", 1)]


@pytest.mark.parametrize(("start", "end"), [(11, 13), (0, 110), (60, 100), (12, 9000), (40, 64)])
def test_a_chunk_whose_offsets_hold_another_text_is_an_error(tmp_path: Path, start: int, end: int) -> None:
    """Also one alone, and one that touches no passage by its offsets: it would take a grade, or lose one."""
    said = {"doc_id": "c0", "text": GUIDE[11:34], "document_id": "guide.md"}
    other = {"doc_id": "c1", "text": GUIDE[34:], "document_id": "guide.md", "start": 34, "end": len(GUIDE)}
    passages = [{"document": "guide.md", "quote": GUIDE[11:34]}, {"document": "guide.md", "quote": GUIDE[40:70]}]
    for place, is_right in (({"start": start, "end": end}, False), ({"start": 11, "end": 34}, True)):
        write(tmp_path / "chunks.jsonl", "".join(json.dumps(row) + "\n" for row in (said | place, other)))
        if is_right:
            assert open_rows(tmp_path, passages, corpus="chunks.jsonl").qrels is not None
            continue
        with pytest.raises(DataError, match=r"the chunk 'c0' is .*, and its text is at 11 to 34"):
            open_rows(tmp_path, passages, corpus="chunks.jsonl").qrels  # noqa: B018
