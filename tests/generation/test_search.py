import polars as pl
import pytest

from rageval_spec.generation.search import choose_stop_words, find_ranks, make_search, measure_difficulty
from rageval_spec.plugin import Context

CORPUS = pl.DataFrame(
    {
        "doc_id": ["pump", "lamp", "door"],
        "title": ["Pumps", "Lamps", "Doors"],
        "text": ["The pump delivers water.", "The lamp gives light by day.", "The door opens, and the lamp stays on."],
    }
)


def test_the_products_own_retriever_ranks_the_chunks() -> None:
    search = make_search(CORPUS, None, 10, Context("golden"))
    rankings = search.rank({"q1": "Which lamp gives light?", "q2": "zebra"})
    assert rankings == {"bm25": {"q1": ["lamp", "door"], "q2": []}}
    assert search.rank({}) == {"bm25": {}}


def test_only_the_questions_are_counted_as_progress() -> None:
    shown: list[object] = []
    context = Context("golden", progress=lambda done, total, unit=None: shown.append(done))
    make_search(CORPUS, None, 10, context).rank({"q": "lamp"})
    assert not shown


def test_the_rank_of_several_sources_is_that_of_the_last_without_the_others() -> None:
    rankings = {"bm25": {"q": ["a", "b", "c", "d"]}, "dense": {"q": ["d", "a"]}}
    assert find_ranks(rankings, "q", ["b"]) == {"bm25": 2, "dense": None}
    assert find_ranks(rankings, "q", ["b", "a"]) == {"bm25": 1, "dense": None}
    assert find_ranks(rankings, "q", ["a", "d"]) == {"bm25": 3, "dense": 1}


@pytest.mark.parametrize(
    ("ranks", "difficulty"),
    [
        ({"bm25": 1}, "easy"),
        ({"bm25": 2}, "medium"),
        ({"bm25": 5}, "medium"),
        ({"bm25": 6}, "hard"),
        ({"bm25": None}, "hard"),
        ({"bm25": 1, "dense": 1}, "easy"),
        ({"bm25": 1, "dense": None}, "medium"),
        ({"bm25": 30, "dense": 4}, "medium"),
        ({"bm25": None, "dense": 9}, "hard"),
    ],
)
def test_difficulty_is_how_high_retrievers_rank_the_source(ranks: dict[str, int | None], difficulty: str) -> None:
    assert measure_difficulty(ranks) == difficulty


def test_stop_words_are_those_of_the_language_of_the_corpus() -> None:
    german = "Die Pumpe ist nicht an, und der Filter wird von der Firma mit einem neuen Netz geliefert."
    assert choose_stop_words([german] * 3) == "german"
    assert choose_stop_words(["The pump is not on, and the filter of the firm is in the box."]) == "english"
    assert choose_stop_words(["12345", ""]) == "none"
