from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.inference.stored_outputs import Batch, TagBatch, embed_texts, score_pairs, tag_pairs
from rageval_spec.plugin import (
    Answers,
    Context,
    Embeddings,
    InputFile,
    Model,
    ModelNode,
    NoAnswers,
    Progress,
    TokenTags,
    ignore_progress,
)
from rageval_spec.progress import ProgressDisplay
from rageval_spec.store.store import MemoryAnswers


class Letters(Model[ModelNode]):
    """Gives vectors of a text's length and its number of a's; texts over ten letters are cut."""

    def __init__(self, answers: Answers | None = None, progress: Progress = ignore_progress, batch: int = 3) -> None:
        super().__init__(ModelNode(use="letters"), Context("m", answers=answers or NoAnswers(), progress=progress))
        self.batch = batch
        self.asked: list[str] = []

    def compute(self, texts: Sequence[str]) -> Iterator[Batch]:
        order = sorted(range(len(texts)), key=lambda position: -len(texts[position]))
        for start in range(0, len(order), self.batch):
            positions = order[start : start + self.batch]
            batch = [texts[position] for position in positions]
            self.asked += batch
            vectors = np.array([[len(text), text.count("a")] for text in batch], np.float32)
            yield Batch(np.array(positions), vectors, np.array([len(text) > 10 for text in batch]))

    def embed(self, texts: Sequence[str]) -> Embeddings:
        return embed_texts(self, texts, self.compute)


@given(st.lists(st.text(st.sampled_from("ab\x00\udc80é"), max_size=14), max_size=12), st.integers(1, 4))
def test_vectors_come_in_the_order_of_the_texts_and_equal_texts_are_computed_once(texts: list[str], batch: int) -> None:
    model = Letters(batch=batch)
    found = model.embed(texts)
    assert found.vectors.tolist() == [[len(text), text.count("a")] for text in texts]
    assert found.truncated.tolist() == [len(text) > 10 for text in texts]
    assert sorted(model.asked) == sorted(set(texts))


def test_only_what_is_new_is_computed() -> None:
    answers = MemoryAnswers()
    first = Letters(answers).embed(["a", "bb", "a"])
    model = Letters(answers)
    again = model.embed(["bb", "new and quite long", "a"])
    assert model.asked == ["new and quite long"]
    assert (first.reused, again.reused) == (0, 2)
    assert again.vectors.tolist() == [[2, 0], [18, 1], [1, 1]]
    assert again.truncated.tolist() == [False, True, False]
    assert Letters(answers).embed(["new and quite long"]).truncated.tolist() == [True]


def test_what_was_computed_before_an_error_is_kept() -> None:
    answers = MemoryAnswers()
    model = Letters(answers, batch=1)

    def break_off(texts: Sequence[str]) -> Iterator[Batch]:
        yield from list(model.compute(texts))[:2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_texts(model, ["aaa", "bb", "c"], break_off)
    after = Letters(answers)
    assert after.embed(["aaa", "bb", "c"]).reused == 2
    assert after.asked == ["c"]


def test_weights_that_give_nan_are_named(tmp_path: Path) -> None:
    for name in ("model.safetensors", "config.json"):
        (tmp_path / name).write_bytes(b"x")

    class Damaged(Letters):
        def inputs(self) -> Sequence[InputFile]:
            return [InputFile(tmp_path / name, ("model",)) for name in ("model.safetensors", "config.json")]

    def spoil(texts: Sequence[str]) -> Iterator[Batch]:
        yield Batch(np.arange(1), np.array([[np.nan]], np.float32), np.zeros(1, bool))

    with pytest.raises(DataError) as caught:
        embed_texts(Damaged(), ["cat"], spoil)
    assert f'gives NaN or infinity for "cat"; the weights in {tmp_path / "model.safetensors"} may be damaged' in str(
        caught.value
    )


def test_another_model_has_other_answers() -> None:
    answers = MemoryAnswers()
    Letters(answers).embed(["a"])
    other = Letters(answers)
    other.node = ModelNode(use="other")
    assert other.embed(["a"]).reused == 0


@pytest.mark.parametrize("damaged", [b"", bytes(4), b"\x00abc", bytes(5), bytes(13)])
def test_a_damaged_answer_is_computed_again(damaged: bytes) -> None:
    answers = MemoryAnswers()
    texts = ["first", "second"]
    Letters(answers).embed(texts)
    model = Letters(answers)
    (kept,) = answers._answers.values()
    kept[list(kept)[1]] = damaged
    found = model.embed(texts)
    assert len(model.asked) == 1
    assert found.vectors.tolist() == [[5, 0], [6, 0]]


def test_progress_counts_distinct_texts() -> None:
    seen: list[tuple[int, int]] = []
    Letters(progress=lambda done, total, unit=None: seen.append((done, total)), batch=2).embed(["a", "b", "a", "c"])
    assert seen == [(0, 3), (2, 3), (3, 3)]


def test_the_progress_display_counts_pairs_when_pairs_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    written = StringIO()
    monkeypatch.setattr(sys, "stderr", written)

    def compute(pairs: Sequence[tuple[str, str]]) -> Iterator[Batch]:
        yield Batch(np.arange(1), np.ones((1, 1), np.float32), np.zeros(1, bool))
        deadline = time.monotonic() + 10
        while "1/2 " not in written.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield Batch(np.arange(1, 2), np.ones((1, 1), np.float32), np.zeros(1, bool))

    with ProgressDisplay(interval=0.01) as display:
        score_pairs(Letters(progress=display.counting("reader", "texts")), [("q", "a"), ("q", "b")], compute)
    assert "reader: 1/2 pairs" in written.getvalue()
    assert "texts" not in written.getvalue()


def test_without_texts_the_model_is_not_called() -> None:
    found = Letters().embed([])
    assert found.vectors.shape[0] == 0
    assert found.truncated.tolist() == []


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_with_nan_or_infinity_is_refused_and_not_kept(value: float) -> None:
    answers = MemoryAnswers()

    def spoil(texts: Sequence[str]) -> Iterator[Batch]:
        yield Batch(np.arange(2), np.array([[1.0], [value]], np.float32), np.zeros(2, bool))

    with pytest.raises(DataError, match=r'models\.m: gives NaN or infinity for "bad \\"text\\""'):
        embed_texts(Letters(answers), ["good", 'bad "text"'], spoil)
    assert answers._answers == {}


def test_vectors_of_several_dimensions_are_refused() -> None:
    def mix(texts: Sequence[str]) -> Iterator[Batch]:
        yield Batch(np.array([0]), np.ones((1, 2), np.float32), np.zeros(1, bool))
        yield Batch(np.array([1]), np.ones((1, 3), np.float32), np.zeros(1, bool))

    with pytest.raises(DataError, match=r"models\.m: gives vectors of 3 and of 2 values"):
        embed_texts(Letters(), ["a", "b"], mix)


def embed_wide(answers: Answers, texts: Sequence[str], dimension: int) -> list[list[float]]:
    """Gives vectors of a given dimension, as if another model had taken over the name."""

    def compute(texts: Sequence[str]) -> Iterator[Batch]:
        yield Batch(
            np.arange(len(texts)), np.full((len(texts), dimension), dimension, np.float32), np.zeros(len(texts), bool)
        )

    found: list[list[float]] = embed_texts(Letters(answers), texts, compute).vectors.tolist()
    return found


@pytest.mark.parametrize("other", [1, 5])
def test_a_kept_vector_of_another_dimension_than_the_first_is_not_used(other: int) -> None:
    answers = MemoryAnswers()
    embed_wide(answers, ["first"], 3)
    embed_wide(answers, ["second"], other)
    assert embed_wide(answers, ["first", "second"], 3) == [[3, 3, 3]] * 2
    assert embed_wide(answers, ["second", "first"], 7) == [[3, 3, 3]] * 2  # all are stored by now


@pytest.mark.parametrize("now", [1, 5])
def test_a_model_whose_dimension_changed_is_refused(now: int) -> None:
    answers = MemoryAnswers()
    embed_wide(answers, ["first"], 3)
    complaint = rf"models\.m: gives vectors of {now} and of 3 values; .* from the store: .*--store.*--no-store"
    with pytest.raises(DataError, match=complaint):
        embed_wide(answers, ["first", "second"], now)


def test_a_model_that_skips_a_text_is_an_error() -> None:
    with pytest.raises(DataError, match=r"models\.m: no answer for 1 of 2 texts"):
        embed_texts(Letters(), ["a", "b"], lambda texts: iter([next(Letters(batch=1).compute(texts))]))


def test_pairs_differ_by_both_texts_and_where_the_first_one_ends() -> None:
    asked: list[tuple[str, str]] = []

    def compute(pairs: Sequence[tuple[str, str]]) -> Iterator[Batch]:
        asked.extend(pairs)
        logits = np.array([[len(left) - len(right)] for left, right in pairs], np.float32)
        yield Batch(np.arange(len(pairs)), logits, np.zeros(len(pairs), bool))

    pairs = [("ab", "c"), ("a", "bc"), ("c", "ab"), ("ab", "c")]
    assert score_pairs(Letters(), pairs, compute).logits.tolist() == [[1], [-1], [-1], [1]]
    assert asked == pairs[:3]


class Tagger(Letters):
    """Tags each letter of the second text with [1, its place]; pairs with more than ten letters are cut."""

    labels = 2

    def compute_tags(self, pairs: Sequence[tuple[str, str]]) -> Iterator[TagBatch]:
        for place in reversed(range(len(pairs))):
            self.asked.append("|".join(pairs[place]))
            letters = len(pairs[place][1])
            offsets = np.array([[at, at + 1] for at in range(letters)], np.int64).reshape(-1, 2)
            logits = np.array([[1.5] + [at] * (self.labels - 1) for at in range(letters)], np.float32)
            cut = np.array([letters > 10])
            yield TagBatch(np.array([place]), [offsets], [logits.reshape(-1, self.labels)], cut)

    def tag(self, pairs: Sequence[tuple[str, str]]) -> TokenTags:
        return tag_pairs(self, pairs, self.compute_tags)


def told(tags: TokenTags) -> list[tuple[Any, Any]]:
    return [(one.tolist(), two.tolist()) for one, two in zip(tags.offsets, tags.logits, strict=True)]


PAIRS = [("a", "xy"), ("a", ""), ("a", "xy"), ("ax", "y"), ("a", "long enough")]


def test_tags_of_any_number_of_tokens_are_stored_and_found_again() -> None:
    answers = MemoryAnswers()
    first = Tagger(answers).tag(PAIRS[:3])
    assert told(first) == [([[0, 1], [1, 2]], [[1.5, 0], [1.5, 1]]), ([], []), ([[0, 1], [1, 2]], [[1.5, 0], [1.5, 1]])]
    model = Tagger(answers)
    again = model.tag(PAIRS)
    assert set(model.asked) == {"a|long enough", "ax|y"}
    assert len(model.asked) == 2
    assert (first.reused, again.reused) == (0, 2)
    assert told(again)[:3] == told(first)
    assert again.truncated.tolist() == [False, False, False, False, True]
    stored = Tagger(answers).tag(PAIRS)
    assert told(stored) == told(again)
    assert stored.truncated.tolist() == again.truncated.tolist()
    assert {one.dtype.name for one in (*stored.offsets, *again.offsets)} == {"int64"}
    assert {one.shape[1] for one in stored.logits} == {2}


def test_tags_that_are_stored_in_another_form_are_computed_again() -> None:
    whole = (1).to_bytes(4, "little") + bytes(12)
    for content in (b"", b"\x02\x00", bytes(4), whole[:-1], whole + bytes(1), (2).to_bytes(4, "little") + bytes(12)):
        answers = MemoryAnswers()
        Tagger(answers).tag([("a", "x")])
        (kept,) = answers._answers.values()
        (digest,) = kept
        kept[digest] = sealed(b"\x00" + content)
        model = Tagger(answers)
        assert told(model.tag([("a", "x")])) == [([[0, 1]], [[1.5, 0]])]
        assert model.asked == ["a|x"]


def sealed(content: bytes) -> bytes:
    return content + zlib.crc32(content).to_bytes(4, "little")


def test_a_stored_vector_has_the_bytes_that_it_always_had() -> None:
    answers = MemoryAnswers()
    Letters(answers).embed(["a long text"])
    (kept,) = answers._answers.values()
    assert list(kept.values()) == [sealed(b"\x01" + np.array([11, 1], "<f4").tobytes())]


def test_tags_with_nan_or_another_number_of_labels_are_refused() -> None:
    class Spoilt(Tagger):
        def compute_tags(self, pairs: Sequence[tuple[str, str]]) -> Iterator[TagBatch]:
            for batch in super().compute_tags(pairs):
                yield batch._replace(logits=[each * np.float32(np.nan) for each in batch.logits])

    answers = MemoryAnswers()
    with pytest.raises(DataError, match=r'gives NaN or infinity for \["a", "xy"\]'):
        Spoilt(answers).tag([("a", "xy")])
    Tagger(answers).tag([("a", "xy")])
    other = Tagger(answers)
    other.labels = 3
    with pytest.raises(DataError, match="gives logits of 3 and of 2 values; those of 2 are from the store"):
        other.tag([("a", "xy"), ("b", "xy")])
