""""""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

import rageval_spec
from rageval_spec.errors import UsageError
from rageval_spec.generation import offline_questions
from rageval_spec.generation.chunks import Chunk
from rageval_spec.generation.documents import DocumentSet, read_documents
from rageval_spec.generation.offline_questions import (
    GAP,
    REASONS,
    Form,
    OfflineQuestions,
    Reason,
    Unit,
    Vocabulary,
    find_words,
    fold,
    hide,
    list_frequent,
    make_offline_set,
    make_questions,
    rank_sentences,
    read_plainly,
)
from tests.generation.manual import write_manual

TEXTS = [
    "Drain the pump before the first frost. Store the pump upright in a shed. Ice can crack the impeller of a pump.",
    "Sharpen the mower blade twice each season. A dull mower blade tears the grass. Clean the mower deck after rain.",
    "Turn the compost heap every second week. Bacteria in compost need oxygen to work. Hot compost kills the seeds.",
    "Open the greenhouse vent on sunny mornings. Tomatoes in a greenhouse wilt in heat. Wash its panes in spring.",
]


def unit(text: str, name: str = "u", title: str = "", document: str | None = None) -> Unit:
    return Unit(Chunk(name, document or name, 0, len(text), text), title, ((0, len(text)),))


def corpus(titles: Mapping[int, str] | None = None) -> list[Unit]:
    return [unit(text, f"u{place}", (titles or {}).get(place, "")) for place, text in enumerate(TEXTS)]


def only(form: Form, units: list[Unit], count: int = 20) -> OfflineQuestions:
    return make_questions(units, count, shares={form: 1})


def test_what_a_question_is_made_from_is_held_out_of_its_source() -> None:
    units = corpus()
    made = only("sentence", units)
    assert len(made.questions) == 4
    for question in made.questions:
        (place,) = question.units
        assert made.held_out[place] == ((question.start, question.end),)
        left = hide(units[place].text, made.held_out[place])
        assert question.text in units[place].text
        assert question.text not in left


def test_the_overlap_is_the_share_of_telling_words_that_is_left() -> None:
    units = corpus()
    for question in only("keywords", units).questions:
        left = hide(units[question.units[0]].text, [(question.start, question.end)])
        shared = {word.term for word in find_words(question.text)} & {word.term for word in find_words(left)}
        assert (question.overlap > 0) == bool(shared)
        assert question.overlap < 1


def test_a_gap_stands_for_the_most_telling_word_wherever_it_is() -> None:
    for question in only("cloze", corpus()).questions:
        assert GAP in question.text
        assert question.answer
        assert question.answer.casefold() not in question.text.casefold()


def list_questions(form: Form, telling: str) -> list[str]:
    """The questions that are made of one sentence, over ten seeds."""
    units = [unit(f"{telling} It works. It can be changed.", "asked"), *corpus()]
    made = (make_questions(units, 5, seed=seed, shares={form: 1}) for seed in range(10))
    return [one.text for every in made for one in every.questions if one.units == (0,) and one.start == 0]


def test_a_gap_is_never_in_a_name_and_no_other_form_of_its_answer_is_left() -> None:
    names = list_questions("cloze", "Set OTEL_EXPORTER_ENDPOINT and OTEL_EXPORTER_HEADERS before collectors restart.")
    assert names
    for text in names:
        assert GAP in text
        assert not {f"_{GAP}", f"{GAP}_"} & {text[at : at + 2] for at in range(len(text))}
    valves = list_questions("cloze", "Valve seats and valves wear, and valve springs tire.")
    assert not [text for text in valves if "valve" in text.casefold()]


@pytest.mark.parametrize("form", ["sentence", "keywords"])
def test_names_with_underscores_are_never_cut(form: Form) -> None:
    names = {"MAX_QUEUE_SIZE", "MAX_SHARED_BATCH_BYTES"}
    texts = list_questions(form, "Early collectors restart whenever MAX_QUEUE_SIZE exceeds MAX_SHARED_BATCH_BYTES.")
    assert texts
    assert {word for text in texts for word in text.split() if word.isupper()} <= names


def test_brackets_and_quotation_marks_that_lost_their_pair_are_left_out() -> None:
    texts = list_questions(
        "sentence", 'Workshops sell wooden benches (oak, beech and larch from "Northern forests" only).'
    )
    assert texts
    for text in texts:
        assert (text.count("("), text.count('"') % 2) == (text.count(")"), 0)


def test_questions_are_short_however_long_the_sentence_is() -> None:
    long = " ".join(f"zubo{number} kralo{number}" for number in range(25))
    units = [unit(f"{long}. A zubo1 stands beside kralo2. And a zubo4 stands beside kralo5.", "long"), *corpus()]
    for form in ("sentence", "cloze", "keywords"):
        made = [question for question in only(form, units).questions if question.units == (0,)]
        assert made
        assert all(len(question.text.split()) <= 12 for question in made)


def test_a_text_of_two_sentences_is_not_asked_because_too_little_would_be_left() -> None:
    assert only("sentence", [unit("Drain the old pump. Store the pump upright in a shed."), *corpus()[1:]]).questions
    found = only("sentence", [unit("Drain the old pump. Store the pump upright in a shed."), *corpus()[1:]])
    assert all(question.units != (0,) for question in found.questions)


def test_a_question_that_another_text_could_answer_is_dropped() -> None:
    units = [*corpus(), unit(TEXTS[0], "twin")]
    made = only("sentence", units)
    assert {dropped.reason for dropped in made.dropped if dropped.question.units == (0,)} == {"several_sources"}
    assert {dropped.detail for dropped in made.dropped if dropped.question.units == (0,)} == {"twin"}


def test_the_same_question_is_not_asked_twice() -> None:
    text = "Our zubo kralo had a mivek trona. Then our zubo kralo had a mivek trona." + " So it was." * 5
    made = make_questions([unit(text), *corpus()], 40, shares={"sentence": 1})
    assert sum(question.units == (0,) for question in made.questions) == 1
    assert "duplicate" in {dropped.reason for dropped in made.dropped}


def test_titles_are_questions_only_if_the_text_does_not_say_them_and_are_left_out() -> None:
    made = only("title", corpus({0: "How to protect garden machines from ice", 1: "Dull mower blade tears"}))
    assert [(question.text, question.units) for question in made.questions] == [
        ("How to protect garden machines from ice", (0,))
    ]
    assert made.untitled == {0}


def test_a_long_document_is_searched_for_its_title_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Counter[str]()
    monkeypatch.setattr(offline_questions, "_says", lambda text, title: bool(read.update([text])))
    units = [unit("Pumps hum. ", f"u{place}", "Pumps", "d") for place in range(30)]
    only("title", units)
    assert read.total() == 30


def test_a_title_with_which_the_text_begins_is_left_out_of_it_too() -> None:
    made = only("title", corpus({1: "Sharpen the mower blade twice"}))
    assert made.held_out == {1: ((0, 29),)}
    assert hide(TEXTS[1], made.held_out[1]).startswith("each season.")


def test_texts_with_the_same_title_are_all_sources_of_its_question() -> None:
    title = "How to protect garden machines from ice"
    made = only("title", corpus({0: title, 3: title}))
    assert [set(question.units) for question in made.questions] == [{0, 3}]


def test_vague_titles_are_dropped() -> None:
    made = only("title", corpus({0: "About this"}))
    assert [dropped.reason for dropped in made.dropped] == ["too_vague"] * len(made.dropped)
    assert made.questions == ()


def test_the_mix_is_kept_and_what_a_corpus_cannot_give_goes_to_other_forms() -> None:
    made = make_questions(corpus(), 4, shares={"sentence": 50, "keywords": 50, "title": 50})
    assert Counter(question.form for question in made.questions) == {"sentence": 2, "keywords": 2}


def test_a_seed_gives_the_same_questions_and_another_one_others() -> None:
    one, same, other = (make_questions(corpus(), 4, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.questions != other.questions


def test_every_document_has_its_turn_before_one_has_a_second() -> None:
    units = [unit(text, f"u{place}", document="ab"[place == 3]) for place, text in enumerate(TEXTS)]
    made = only("sentence", units, 2)
    assert {units[question.units[0]].chunk.doc_id for question in made.questions} == {"a", "b"}


def test_headings_are_held_out_and_take_the_title_along_if_they_are_vague(tmp_path: Path) -> None:
    from rageval_spec.generation.offline_questions import make_offline_set

    documents = read_documents(write_manual(tmp_path / "manual"))
    made = make_offline_set(documents, 8, shares={"heading": 1}, size=60)
    assert made.rows
    for row in made.rows:
        assert "Ordering a spare" in row["question"]
        texts = {one["doc_id"]: one["text"] for one in made.corpus}
        assert row["evidence"][0]["quote"] not in texts[row["relevant"][0]]


def test_what_is_held_out_of_markdown_is_where_it_was_written() -> None:
    text = (
        "# Pumps\n\nThe **impeller** of a [pump](https://x.org/impeller) cracks in *hard* frost. It is so. It was so."
    )
    made = only("sentence", [unit(text)._replace(spans=((9, len(text)),)), *corpus()])
    (question,) = (one for one in made.questions if one.units == (0,))
    assert "https" not in question.text
    assert "*" not in question.text
    assert text[question.start : question.end].startswith("The **impeller**")


def test_markup_is_no_part_of_a_question() -> None:
    text = "- See **the** [`pump` manual](https://x.org/a_b) for snake_case and <b>bold</b> _words_."
    assert read_plainly(text) == "See the pump manual for snake_case and bold words."


def test_held_out_parts_leave_no_double_space_and_code_as_it_is() -> None:
    assert hide("One. Two. Three.", [(5, 9)]) == "One. Three."
    assert hide("One. Two.", [(0, 4)]) == "Two."
    assert hide("One.\n\n  code:\n    deep", [(0, 4)]) == "code:\n    deep"
    assert hide("A. B.\n\nx:\n    y", [(3, 5)]) == "A. x:\n    y"


@pytest.mark.parametrize(("count", "shares"), [(0, {"sentence": 1}), (1, {"sentence": 0})])
def test_impossible_requests_are_refused(count: int, shares: dict[Form, float]) -> None:
    with pytest.raises(UsageError, match="at least"):
        make_questions(corpus(), count, shares=shares)


def test_a_corpus_without_sentences_gives_no_questions() -> None:
    made = make_questions([unit("word"), unit("", "v")], 5)
    assert not made.questions
    assert not made.dropped


def test_every_reason_is_explained() -> None:
    assert set(REASONS) == set(get_args(Reason))


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


@pytest.fixture
def manual(tmp_path: Path) -> DocumentSet:
    return read_documents(write_manual(tmp_path / "manual"))


def test_rows_say_how_they_were_made_and_where_they_come_from(manual: DocumentSet) -> None:
    made = make_offline_set(manual, 20, size=60)
    texts = {document.doc_id: document.text for document in manual.documents}
    assert len(made.rows) == len({row["query_id"] for row in made.rows}) == 20
    for row in made.rows:
        assert row["made_by"] == "no-model"
        assert row["language"] == "en"
        assert row["difficulty"] in {"easy", "medium", "hard"}
        assert [source["document"] for source in row["sources"]] == row["relevant_documents"]
        for found in row["evidence"]:
            text = texts[found["document"]]
            assert text[found["document_start"] : found["document_end"]] == found["quote"]


def test_the_corpus_holds_all_chunks_without_what_was_asked(manual: DocumentSet) -> None:
    made = make_offline_set(manual, 20, size=60)
    texts = {row["doc_id"]: row["text"] for row in made.corpus}
    assert {doc_id for row in made.rows for doc_id in row["relevant"]} <= set(texts)
    quotes = [(found["quote"], found["chunk"]) for row in made.rows for found in row["evidence"]]
    assert quotes
    assert not [quote for quote, chunk in quotes if quote in texts[chunk]]


def test_a_corpus_keeps_its_documents_and_their_ids(tmp_path: Path) -> None:
    sentence = (
        "The {0} of plant {1} opens at dawn. Visitors of plant {1} must see the {0} first. Plant {1} closes early. "
    )
    rows = [{"_id": f"k{n}", "title": "", "text": sentence.format(f"gate{n}", n) * 9} for n in range(6)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    made = make_offline_set(read_documents(tmp_path), 5, size=20)
    assert [row["doc_id"] for row in made.corpus] == [f"k{n}" for n in range(6)]
    assert {doc_id for row in made.rows for doc_id in row["relevant"]} <= {f"k{n}" for n in range(6)}


def test_no_document_is_on_both_sides_of_a_split(manual: DocumentSet) -> None:
    made = make_offline_set(manual, 30, split="30:70", size=60)
    sides = {(row["split"], name) for row in made.rows for name in row["relevant_documents"]}
    assert {side for side, _ in sides} == {"validation", "test"}
    assert len({name for _, name in sides}) == len(sides)
    with pytest.raises(UsageError, match="such as 30:70"):
        make_offline_set(manual, 30, split="thirty")


def test_it_is_said_when_the_corpus_gives_fewer_questions(manual: DocumentSet) -> None:
    made = make_offline_set(manual, 500, size=60)
    assert len(made.rows) < 500
    assert made.remarks[0].startswith(f"the corpus gives only {len(made.rows)} of 500 questions")


def test_dropped_questions_have_their_reason(tmp_path: Path) -> None:
    folder = write_manual(tmp_path / "manual")
    (folder / "copy.md").write_text((folder / "pump.md").read_text())
    rejected = make_offline_set(read_documents(folder), 500, size=60).rejected
    assert "several_sources" in {row["reason"] for row in rejected}
    assert all(row["reason"] and row["why"] and row["question"] and row["chunks"] for row in rejected)


def test_the_set_runs_in_a_spec_as_it_is(manual: DocumentSet, tmp_path: Path) -> None:
    made = make_offline_set(manual, 20, size=60)
    for name, rows in (("golden.jsonl", made.rows), ("golden.corpus.jsonl", made.corpus)):
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    spec = {
        "version": 1,
        "name": "own-documents",
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl", "corpus": "golden.corpus.jsonl"}},
        "systems": {"bm25": {"use": "bm25"}},
        "metrics": ["ndcg@10", "target_rank"],
    }
    evaluation = rageval_spec.run(spec, folder=tmp_path, store=None, record=False, quiet=True)
    ndcg = evaluation.aggregates.filter(evaluation.aggregates["metric"] == "ndcg@10").row(0, named=True)
    assert ndcg["scored"] == 20
    assert 0.3 < ndcg["mean"] < 1
