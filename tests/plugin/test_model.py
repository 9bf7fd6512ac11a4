from __future__ import annotations

import pytest

from rageval_spec.data.outcomes import Note, join_notes, write_notes
from rageval_spec.plugin import Context, Model, ModelNode, note_truncated, note_truncated_texts
from rageval_spec.registry import load

ENDPOINT = {"base_url": "http://localhost:1/v1"}


class Prefixed(ModelNode):
    """A model's block with a key that the plugin leaves out of its digest, and one that it does not."""

    prefix: str = ""
    size: int = 1


class Texts(Model[Prefixed]):
    node_type = Prefixed
    not_in_answers = frozenset({"prefix"})


def key_of(word: str, **keys: object) -> str:
    plugin = load("models", word)
    model: Model[ModelNode] = plugin(plugin.node_type.model_validate({"use": word, **keys}), Context("m"))
    return model.key


def test_a_models_key_leaves_out_only_what_its_class_declares() -> None:
    plain, prefixed, larger = (
        Texts(Prefixed(use="texts", prefix=prefix, size=size), Context("m")).key
        for prefix, size in (("", 1), ("query: ", 1), ("", 2))
    )
    assert plain == prefixed != larger


def test_without_declarations_a_models_key_contains_its_whole_node() -> None:
    class Strict(Model[Prefixed]):
        node_type = Prefixed

    keys = {Strict(Prefixed(use="strict", prefix=prefix), Context("m")).key for prefix in ("", "query: ")}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("word", "keys", "digest"),
    [
        ("http", ENDPOINT, "a6c3de65ce703bde35d921c7aa31e5f9ce05a8f2988d4a473908f3179efccf22"),
        ("chat", ENDPOINT, "a1dc7c9c517315b29d17ac4f36512e598d6517235f920f1a49b19f3eafba0436"),
        ("onnx", {"model": "someone/absent"}, "278cd54ed7c9bbee1b781a50bae6bef0a989df99f4e1bdba7f65f8b5fe8fb690"),
    ],
)
def test_keys_of_stored_answers_never_change(word: str, keys: dict[str, str], digest: str) -> None:
    assert key_of(word, **{"model": "small", **keys}) == digest
    if word != "chat":
        assert key_of(word, **{"model": "small", **keys}, query_prefix="query: ", similarity="dot") == digest


def test_a_note_says_how_many_texts_were_cut_and_how_to_have_fewer_cut() -> None:
    assert write_notes(note_truncated(0, 3, "m")) == ()
    message = "1 of 3 texts is longer than m reads and was cut"
    assert write_notes(note_truncated(1, 3, "m")) == (Note("texts_truncated", message, count=1),)
    (note,) = write_notes(note_truncated(2, 2, "m", "query", "queries", advice="write less"))
    assert (note.code, note.count) == ("queries_truncated", 2)
    assert note.message == "2 of 2 queries are longer than m reads and were cut; write less"
    (note,) = write_notes(note_truncated(1, 1, "m", "pair of texts", "pairs of texts", code="pairs"))
    assert note.code == "pairs_truncated"


def test_a_text_that_two_parts_of_a_step_read_is_counted_once() -> None:
    first = note_truncated_texts(["a long one", "b"], [True, False], "m")
    second = note_truncated_texts(["a long one", "c"], [True, False], "m")
    (note,) = write_notes(join_notes([first, second]))
    assert (note.message, note.count) == ("1 of 3 texts is longer than m reads and was cut", 1)
    assert write_notes(join_notes([note_truncated_texts([], [], "m")])) == ()
