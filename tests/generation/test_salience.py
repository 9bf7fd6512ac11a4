from __future__ import annotations

import pytest

from rageval_spec.generation.salience import Vocabulary, find_words, fold, list_frequent, rank_sentences


def test_words_are_folded_and_keep_their_places() -> None:
    text = "The Pumps' filters don't fit."
    assert [(word.term, text[word.start : word.end]) for word in find_words(text)] == [
        ("the", "The"),
        ("pump", "Pumps"),
        ("filter", "filters"),
        ("don't", "don't"),
        ("fit", "fit"),
    ]


@pytest.mark.parametrize(
    ("word", "term"), [("Glass", "glass"), ("virus", "virus"), ("is", "is"), ("Ada's", "ada"), ("2s", "2s")]
)
def test_only_plurals_lose_their_ending(word: str, term: str) -> None:
    assert fold(word) == term


def test_scripts_without_spaces_are_read_in_pairs() -> None:
    assert [word.term for word in find_words("凍結前 x")] == ["凍結", "結前", "x"]


def test_rare_words_weigh_more_and_frequent_ones_nothing() -> None:
    vocabulary = Vocabulary(
        ["The pump runs on the farm.", "The pump stands here for the winter.", "The bees sleep in it."]
    )
    assert vocabulary.weigh("bee") > vocabulary.weigh("pump") > vocabulary.weigh("the") == 0
    assert vocabulary.language == "en"
    assert vocabulary.count_texts("pump") == 2


def test_words_in_many_texts_of_a_large_corpus_tell_nothing() -> None:
    texts = [f"zub{number} kral" for number in range(30)]
    assert Vocabulary(texts).is_common("kral")
    assert not Vocabulary(texts[:10]).is_common("kral")


def test_texts_with_most_of_the_weight_of_words_are_found() -> None:
    vocabulary = Vocabulary(["pump filter seal", "pump filter", "bees", "seal"])
    assert vocabulary.find_texts(["pump", "filter", "seal"], 0.99) == [0]
    assert vocabulary.find_texts(["pump", "filter", "seal"], 0.5) == [0, 1]
    assert vocabulary.find_texts(["absent"], 0.5) == []


def test_the_most_telling_sentence_is_about_what_the_text_is_about() -> None:
    text = "It was late. The pump needs a new filter. A pump without a filter breaks."
    ranked = rank_sentences(text, [(0, len(text))], Vocabulary([text, *["It was late and long."] * 5]))
    assert ranked[-1].text == "It was late."
    assert all(text[one.start : one.end] == one.text for one in ranked)


def test_only_sentences_inside_the_spans_are_ranked() -> None:
    text = "# Heading one\n\nThe pump runs."
    assert [one.text for one in rank_sentences(text, [(15, len(text))], Vocabulary([text]))] == ["The pump runs."]


def test_a_language_that_is_not_known_has_no_frequent_words() -> None:
    assert list(list_frequent(None)) == list(list_frequent("xx")) == []
    assert "und" in set(list_frequent("de"))
