"""The BM25 index: words as Python finds them, scores as bm25s gives them, to the last bit, and damaged files."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec import kernels
from rageval_spec.errors import DataError
from tests.reference.bm25s_runs import WORDS, rank_documents

METHODS = ("lucene", "robertson", "atire", "bm25+", "bm25l")
TEXTS = st.lists(
    st.sampled_from(["cat", "dog", "owl", "ant", "the", "x", "Cat,", "É́", "ÉTÉ", "ΟΔΟΣ"]), max_size=30
).map(" ".join)


def same(pieces: Sequence[str]) -> list[list[str]]:
    return [[piece] for piece in pieces]


def build(
    corpus: Mapping[str, str],
    path: Path | None = None,
    stop_words: Sequence[str] = (),
    expand: Callable[[Sequence[str]], list[list[str]]] = same,
    *,
    stems: bool = False,
) -> kernels.Bm25Index:
    builder = kernels.Bm25Builder("words", stop_words, expand, stems=stems)
    builder.add(pl.Series([*corpus], dtype=pl.String), pl.Series([*corpus.values()], dtype=pl.String))
    return builder.finish(b"note", lambda done, total: None, path)


def search(index: kernels.Bm25Index, queries: Sequence[str], depth: int = 1000, **formula: Any) -> list[Any]:
    found = index.search(kernels.split_pieces(queries, "words"), depth, **formula)
    rows: list[list[tuple[str, float]]] = [[] for _ in queries]
    for number, doc_id, score in found.rows():
        rows[number].append((doc_id, score))
    return rows


def list_characters() -> list[str]:
    """All of the planes that have characters; of the empty ones and of those for private use, each 61st."""
    full = (range(0xD800), range(0xE000, 0x40000), range(0xE0000, 0xF0000))
    sampled = (range(0x40000, 0xE0000, 61), range(0xF0000, sys.maxunicode + 1, 61))
    return [*map(chr, itertools.chain(*full, *sampled)), chr(sys.maxunicode)]


def test_every_character_is_split_as_by_python() -> None:
    """Each character alone, doubled, and between two letters: what is a word, and its lower-case form."""
    every = list_characters()
    for start in range(0, len(every), 1 << 16):
        texts = [f"{one} {one}{one} x{one}y {one}\u03a3" for one in every[start : start + (1 << 16)]]
        expected = [re.findall(WORDS, text.lower()) for text in texts]
        assert kernels.split_pieces(texts, "words") == expected


def test_what_is_in_lower_case_stays_so() -> None:
    """The kernel lowers texts that Python has lowered for it once more."""
    every = [chr(code).lower() for code in range(sys.maxunicode + 1)]
    assert [one.lower() for one in every] == every


@given(st.lists(st.text(max_size=60), max_size=5))
def test_any_text_is_split_as_by_python(texts: list[str]) -> None:
    assert kernels.split_pieces(texts, "words") == [re.findall(WORDS, text.lower()) for text in texts]


@given(st.text(max_size=60))
def test_pieces_are_what_stands_between_white_space(text: str) -> None:
    found = kernels.split_pieces([text], "pieces")[0]
    expected: list[str] = []
    for piece in re.split("[ \t\n\x0c\r]+", text):
        expected += re.findall(WORDS, piece.lower()) if piece.isascii() else [piece]
    assert found == expected


@pytest.mark.parametrize("method", METHODS)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=12),
    queries=st.lists(TEXTS, min_size=1, max_size=3),
    k1=st.floats(1e-3, 1e3) | st.just(1.5),
    b=st.floats(0, 1),
    delta=st.floats(0, 10),
    depth=st.integers(1, 15),
    stops=st.booleans(),
)
def test_scores_are_the_bits_of_bm25s(
    method: Any, texts: list[str], queries: list[str], k1: float, b: float, delta: float, depth: int, stops: bool
) -> None:
    corpus = {f"d{number}": text for number, text in enumerate(texts)}
    formula: dict[str, Any] = {"method": method, "k1": k1, "b": b, "delta": delta}
    stop_words = ["the", "dog"] if stops else []
    expected = rank_documents(corpus, queries, stop_words=stop_words, depth=depth, **formula)  # type: ignore[arg-type]
    assert search(build(corpus, None, stop_words), queries, depth, **formula) == expected


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data(), size=st.integers(1, 300))
def test_sums_over_many_words_are_added_as_by_numpy(method: Any, data: st.DataObject, size: int) -> None:
    corpus = {
        "a": " ".join(f"w{n}" for n in range(60)),
        "b": "w1 w2 w2",
        "c": " ".join(f"w{n}" for n in range(0, 60, 7)),
    }
    words = data.draw(st.lists(st.integers(0, 70), min_size=size, max_size=size))
    query = " ".join(f"w{word}" for word in words)
    assert search(build(corpus), [query], method=method, delta=0.7) == rank_documents(
        corpus, [query], stop_words=None, method=method, delta=0.7
    )


def test_equal_scores_come_in_descending_order_of_the_bytes_of_ids() -> None:
    ids = ["d1", "d10", "d2", "é", "z", "", "𝔘", "\uff5a", "d" * 30, "d" * 31]
    found = search(build(dict.fromkeys(ids, "fox") | {"other": "hen"}), ["fox"], 9)[0]
    assert [doc_id for doc_id, _ in found] == sorted(ids, key=str.encode, reverse=True)[:9]


def test_golden_scores() -> None:
    """The float32 scores that bm25s 0.3.16 gave, in hex."""
    corpus = {"a": "red fox", "b": "red red hen hen", "c": "owl"}
    found = {method: search(build(corpus), ["red fox red"], method=method)[0] for method in METHODS}
    assert {method: [(key, score.hex()) for key, score in rows] for method, rows in found.items()} == GOLDEN


GOLDEN = {
    "lucene": [("a", "0x1.a469f80000000p-1"), ("b", "0x1.bf55920000000p-2")],
    "robertson": [("a", "0x1.bf37d60000000p-3")],
    "atire": [("a", "0x1.0536b80000000p+1"), ("b", "0x1.e262bc0000000p-1")],
    "bm25+": [("a", "0x1.165c040000000p+2"), ("b", "0x1.7f9b4c0000000p+1")],
    "bm25l": [("a", "0x1.3f27840000000p+1"), ("b", "0x1.e545f40000000p+0")],
}


def test_words_can_stand_for_others() -> None:
    asked: list[str] = []

    def stem(words: Sequence[str]) -> list[list[str]]:
        asked.extend(words)
        return [[word.removesuffix("es")] for word in words]

    index = build({"d1": "foxes foxes", "d2": "fox the hen"}, None, ["the"], stem, stems=True)
    assert asked == ["foxes", "fox", "hen"]
    assert [doc_id for doc_id, _ in search(index, ["fox"])[0]] == ["d1", "d2"]


def test_an_error_of_a_callback_comes_through() -> None:
    def fail(*_: Any) -> Any:
        raise LookupError("no stem")

    with pytest.raises(LookupError, match="no stem"):
        build({"d": "fox"}, None, (), fail, stems=True)
    builder = kernels.Bm25Builder("words", (), same, stems=False)
    builder.add(pl.Series(["d"]), pl.Series(["fox"]))
    with pytest.raises(LookupError, match="no stem"):
        builder.finish(b"", fail)


def test_nothing_is_found_without_words() -> None:
    empty = build({})
    assert empty.documents == 0 and search(empty, ["fox"]) == [[]]
    assert search(build({"d": "", "e": "x"}), ["x fox", ""]) == [[], []]


@pytest.mark.parametrize(("key", "value"), [("k1", 0.0), ("k1", float("inf")), ("b", 1.5), ("delta", float("nan"))])
def test_parameters_out_of_range_are_refused(key: str, value: float) -> None:
    with pytest.raises(ValueError, match="k1 must be above 0, b between 0 and 1"):
        search(build({"d": "fox"}), ["fox"], **{key: value})  # type: ignore[arg-type]


def test_a_file_is_what_is_in_memory_and_is_found_damaged(tmp_path: Path) -> None:
    corpus = {f"d{number}": f"fox w{number % 7} w{number % 11}" for number in range(3000)}
    path = tmp_path / "index"
    whole = search(build(corpus, path), ["w1 w2 fox", "w3"])
    assert whole == search(build(corpus), ["w1 w2 fox", "w3"])
    content = path.read_bytes()
    assert kernels.Bm25Index.open(path).note == b"note"
    for size in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(DataError, match="index"):
            search(kernels.Bm25Index.open(path), ["w1 w2 fox"])
    for place in range(0, len(content), 4099):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        try:
            assert search(kernels.Bm25Index.open(path), ["w1 w2 fox", "w3"]) == whole
        except DataError as error:
            assert "not a whole BM25 index" in str(error)
