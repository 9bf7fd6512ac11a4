""""""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from math import inf
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.findings import Failed
from rageval_spec.judging.segments import Segment
from rageval_spec.judging.span_detection import (
    PROMPTS,
    DetectionTask,
    DetectorLanguage,
    DetectorPrompt,
    Planner,
    PromptWindow,
    TaggedAnswer,
    WindowPlan,
    join_pieces,
    list_spans,
)

ANSWER = "Paris has 2 rivers. It is in Spain, they say!"


def tagged(text: str, *windows: Sequence[float]) -> TaggedAnswer:
    """One token for each word and each mark, which begins with the white space before it."""
    offsets = np.array([match.span() for match in re.finditer(r"\s*(\w+|[^\w\s])", text)], np.int64)
    return TaggedAnswer(text, offsets, np.array(windows))


def told(answer: TaggedAnswer, threshold: float = 0.5) -> list[tuple[str, bool, float, int]]:
    found = list_spans(answer, threshold)
    assert all(answer.text[span.segment.start : span.segment.end] == span.segment.text for span in found)
    return [(span.segment.text, span.is_supported, span.probability, span.window) for span in found]


#        Paris has  2    rivers  .   It   is   in  Spain  ,   they say   !
ODDS = [0.1, 0.2, 0.9, 0.7, 0.1, 0.1, 0.2, 0.3, 0.8, 0.1, 0.1, 0.4, 0.1]


def test_runs_of_unsupported_tokens_stand_between_the_rest_of_each_sentence() -> None:
    assert told(tagged(ANSWER, ODDS)) == [
        ("Paris has", True, 0.2, 0),
        ("2 rivers", False, 0.9, 0),
        ("It is in", True, 0.3, 0),
        ("Spain", False, 0.8, 0),
        ("they say!", True, 0.4, 0),
    ]
    assert tagged(ANSWER, ODDS).share_supported(0.5) == pytest.approx(7 / 10)


def test_the_threshold_itself_is_unsupported() -> None:
    answer = tagged("It is so.", [0.5, 0.49, 0.1, 0.1])
    assert [one[:2] for one in told(answer)] == [("It", False), ("is so.", True)]
    assert answer.share_supported(0.5) == pytest.approx(2 / 3)
    assert [one[:2] for one in told(answer, 0.6)] == [("It is so.", True)]


def test_a_run_can_go_on_into_the_next_sentence() -> None:
    answer = tagged("It is so. We know.", [0.1, 0.1, 0.9, 0.9, 0.9, 0.1, 0.1])
    assert [one[:2] for one in told(answer)] == [("It is", True), ("so. We", False), ("know.", True)]


def test_a_character_of_several_tokens_is_in_one_span() -> None:
    offsets = np.array([[0, 2], [3, 4], [3, 4], [3, 4], [4, 5]])
    answer = TaggedAnswer("It \u65e5\u672c.", offsets, np.array([[0.1, 0.9, 0.2, 0.8, 0.7]]))
    assert told(answer) == [("It", True, 0.1, 0), ("\u65e5\u672c", False, 0.9, 0)]
    assert answer.share_supported(0.5) == pytest.approx(2 / 5)


def test_a_token_is_as_well_supported_as_in_its_best_window() -> None:
    answer = tagged("It is so. We know.", [0.1, 0.2, 0.3, 0.9, 0.9, 0.9, 0.9], [0.9, 0.9, 0.9, 0.9, 0.2, 0.8, 0.9])
    assert told(answer) == [("It is so.", True, 0.3, 0), ("We", True, 0.2, 1), ("know.", False, 0.9, 1)]
    assert answer.share_supported(0.5) == pytest.approx(4 / 5)


def test_marks_count_neither_in_the_share_nor_as_spans() -> None:
    answer = tagged("It is: so!", [0.1, 0.1, 0.9, 0.1, 0.9])
    assert told(answer) == [("It is: so!", True, 0.1, 0)]
    assert answer.share_supported(0.5) == 1
    assert tagged("?! …", [0.9, 0.9, 0.9]).share_supported(0.5) is None
    assert told(tagged("?! …", [0.9, 0.9, 0.9])) == []


def test_text_without_a_token_is_not_called_supported() -> None:
    answer = TaggedAnswer("It is. So be it.", np.array([[0, 2], [2, 5]]), np.array([[0.1, 0.2]]))
    assert [one[:2] for one in told(answer)] == [("It is.", True)]
    nothing = TaggedAnswer("It is.", np.empty((0, 2), np.int64), np.empty((1, 0)))
    assert (told(nothing), nothing.share_supported(0.5)) == ([], None)


def test_what_two_pieces_share_counts_as_in_the_first() -> None:
    text = "One two three four."
    pieces = [Segment("One two three", 0, 13), Segment("three four.", 8, 19)]
    plan = WindowPlan([PromptWindow("a", []), PromptWindow("b", [])], pieces)
    first, second = np.array([[0, 3], [3, 7], [7, 13]]), np.array([[0, 5], [5, 10], [10, 11]])
    odds = [np.array(row) for row in ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.9, 0.7, 0.8], [0.9, 0.5, 0.4])]
    found = join_pieces(text, plan, [first, first, second, second], odds)
    assert found.offsets.tolist() == [[0, 3], [3, 7], [7, 13], [13, 18], [18, 19]]
    assert found.unsupported.tolist() == [[0.1, 0.2, 0.3, 0.7, 0.8], [0.4, 0.5, 0.6, 0.5, 0.4]]


PROMPT = DetectorPrompt("part", "{question} of {count}\n{passages}\nsay:", "tell\n{passages}\nsay:")


def count(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def plan(task: DetectionTask, **limits: float) -> WindowPlan:
    (found,) = Planner(PROMPT, count, **limits).plan([task])  # type: ignore[arg-type]
    assert isinstance(found, WindowPlan)
    return found


def parts_of(found: WindowPlan) -> list[list[str]]:
    return [[part.text for part in window.parts] for window in found.windows]


def sentences(*names: str) -> str:
    return " ".join(f"This is the sentence called {name}." for name in names)


def test_what_fits_is_read_at_once() -> None:
    found = plan(DetectionTask("Why?", ("One. Two.", " \n", "Three."), "It is so."), room=20)
    assert parts_of(found) == [["One. Two.", "Three."]]
    assert [part.source for part in found.windows[0].parts] == [0, 2]
    assert found.pairs == [("Why? of 2\npart 1: One. Two.\npart 2: Three.\nsay:", "It is so.")]


def test_passages_that_do_not_fit_together_are_read_whole_in_several_prompts() -> None:
    texts = [sentences(*pair) for pair in ("ab", "cd", "ef")]
    found = plan(DetectionTask("Why?", texts, "It is so."), room=40)
    assert parts_of(found) == [[texts[0]], [texts[1]], [texts[2]]]
    assert [window.prompt.splitlines()[1].split(":")[0] for window in found.windows] == ["part 1"] * 3
    assert parts_of(plan(DetectionTask("Why?", texts, "It is so."), room=45)) == [texts[:2], texts[2:]]


def test_a_passage_that_is_too_long_is_cut_between_sentences_that_neighbours_share() -> None:
    task = DetectionTask("Why?", (sentences(*"abcdefg"),), "It is so.")
    found = plan(task, room=36)
    assert parts_of(found) == [[sentences(*"abc")], [sentences(*"cde")], [sentences(*"efg")]]
    text = task.sources[0]
    assert all(text[part.start : part.end] == part.text for window in found.windows for part in window.parts)
    apart = plan(task, room=36, overlap=0)
    assert parts_of(apart) == [[sentences(*"abc")], [sentences(*"def")], [sentences(*"g")]]


def test_a_number_of_characters_bounds_the_passages_too() -> None:
    task = DetectionTask("Why?", (sentences(*"ab"), sentences(*"cd")), "It is so.")
    assert parts_of(plan(task, characters=70)) == [[sentences(*"ab")], [sentences(*"cd")]]
    assert parts_of(plan(task, characters=40)) == [[sentences(one)] for one in "abcd"]
    assert parts_of(plan(task, characters=200)) == [list(task.sources)]


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    words = " ".join(f"w{number}" for number in range(80))
    found = plan(DetectionTask("Why?", (words,), "It is so."), room=45)
    pieces = [part for window in found.windows for part in window.parts]
    assert " ".join(piece.text for piece in pieces) == words
    assert all(words[piece.start : piece.end] == piece.text for piece in pieces)
    assert len(plan(DetectionTask("Why?", ("x" * 1000,), "It is so."), characters=100).windows) >= 10


def test_a_long_answer_is_read_in_pieces() -> None:
    answer = sentences(*"abcdefghijkl")
    found = plan(DetectionTask("Why?", ("It is so. " * 30,), answer), room=80)
    assert len(found.pieces) > 1
    assert found.pieces[0].text.startswith(sentences("a"))
    assert found.pieces[1].start < found.pieces[0].end
    assert all(answer[piece.start : piece.end] == piece.text for piece in found.pieces)
    assert found.pieces[-1].end == len(answer)
    assert len(found.pairs) == len(found.pieces) * len(found.windows)
    # Half of the room is enough if the passages need less.
    assert len(plan(DetectionTask("Why?", ("It is so.",), answer), room=90).pieces) == 1


def test_a_question_that_leaves_no_room_is_told() -> None:
    tasks = [DetectionTask("why " * 60, ("It is so. " * 30,), "It is."), DetectionTask("Why?", ("So.",), "It is.")]
    failed, other = Planner(PROMPT, count, 80).plan(tasks)
    assert isinstance(failed, Failed)
    assert failed.reason.startswith("the question is too long: with the prompt's own words it has 63 tokens of the 80")
    assert isinstance(other, WindowPlan)


def test_sums_that_are_too_low_are_noticed() -> None:
    def count_more(texts: Sequence[str]) -> list[int]:
        return [len(text.split()) + (7 if "output" in text or "say:" in text else 0) for text in texts]

    def count_joined(texts: Sequence[str]) -> list[int]:
        """A text of several sentences has more tokens than its sentences."""
        return [len(text.split()) + 2 * text.count(". ") for text in texts]

    for counts in (count_more, count_joined):
        (found,) = Planner(PROMPT, counts, 60).plan(
            [DetectionTask("Why?", (sentences(*"abcdefghij"),), sentences("k"))]
        )
        assert isinstance(found, WindowPlan)
        assert all(sum(counts(pair)) <= 60 for pair in found.pairs)


@given(
    st.lists(st.text("ab. \n", max_size=150), min_size=1, max_size=5).filter(lambda texts: any(map(str.strip, texts))),
    st.text("ab. \n", min_size=1, max_size=200).filter(lambda text: bool(text.strip())),
    st.integers(45, 90),
    st.integers(0, 3),
    st.sampled_from([50.0, 90.0, inf]),
)
def test_everything_is_read_and_everything_fits(
    sources: list[str], answer: str, room: int, overlap: int, characters: float
) -> None:
    found = plan(DetectionTask("Why?", sources, answer), room=room, overlap=overlap, characters=characters)
    assert all(sum(count(pair)) <= room for pair in found.pairs)
    for source, text in enumerate(sources):
        read: set[int] = set()
        for window in found.windows:
            for part in window.parts:
                if part.source == source:
                    assert text[part.start : part.end] == part.text
                    read |= set(range(part.start, part.end))
        assert all(place in read for place, character in enumerate(text) if character.strip())
    said = {place for piece in found.pieces for place in range(piece.start, piece.end)}
    assert all(place in said for place, character in enumerate(answer) if character.strip())


@pytest.mark.parametrize("texts", [("One.",), ("One.", "Two.")])
def test_without_bounds_everything_is_read_at_once(texts: tuple[str, ...]) -> None:
    assert parts_of(plan(DetectionTask("", texts * 50, "It is."))) == [[*texts * 50]]


def test_the_prompt_has_the_question_and_the_numbered_passages() -> None:
    prompt = PROMPTS["en"].fill(["Paris is the {capital}.", "France has\n67 million people."], "Which {city}?")
    assert prompt == (
        "Briefly answer the following question:\n"
        "Which {city}?\n"
        "Bear in mind that your response should be strictly based on the following 2 passages:\n"
        "passage 1: Paris is the {capital}.\n"
        "passage 2: France has\n67 million people.\n"
        "In case the passages do not contain the necessary information to answer the question, please reply with: "
        '"Unable to answer based on given passages."\n'
        "output:"
    )


@pytest.mark.parametrize("question", ["", " \n"])
def test_without_a_question_a_summary_is_asked_for(question: str) -> None:
    assert PROMPTS["en"].fill(["a", "b"], question) == (
        "Summarize the following text:\npassage 1: a\npassage 2: b\noutput:"
    )


@pytest.mark.parametrize(
    ("language", "digest"),
    [
        ("en", "1b3a2254d4196d77"),
        ("de", "1eb4a467215911c8"),
        ("es", "641ca03e031e326b"),
        ("fr", "c1b3456deeaf58c4"),
        ("hu", "5b14bbb1da4c399d"),
        ("it", "e7c716be85a725f8"),
        ("pl", "4f9450e8d8978927"),
        ("zh", "a267fbe8e0b437dd"),
    ],
)
def test_the_templates_are_those_of_lettucedetect(language: DetectorLanguage, digest: str) -> None:
    # The sha256 of lettucedetect 0.2.3's qa_prompt_XX.txt and summary_prompt_XX.txt, one after the other.
    prompt = PROMPTS[language]
    question = prompt.question.format(question="${question}", count="${num_passages}", passages="${context}")
    content = question + prompt.summary.format(passages="${text}")
    assert sha256(content.encode()).hexdigest()[:16] == digest


def test_each_language_has_a_prompt() -> None:
    assert set(PROMPTS) == set(get_args(DetectorLanguage))
