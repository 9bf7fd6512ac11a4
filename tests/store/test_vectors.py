"""Files of vectors: what is kept of a vector, and what survives a kill, damage and other processes."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import RagevalError, StoreWarning
from rageval_spec.store import vectors as module
from rageval_spec.store.inventory import Rules, choose, list_entries, remove
from rageval_spec.store.store import FolderStore, MemoryAnswers
from rageval_spec.store.vectors import MISSING, UnusableVectorError, VectorFile, VectorForm

FORMS: tuple[VectorForm, ...] = ("float32", "float16", "int8", "binary")


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def open_file(folder: Path, form: VectorForm = "float32") -> VectorFile:
    return VectorFile(folder / "file", form, nullcontext)


def add(file: VectorFile, texts: dict[str, list[float]], cut: tuple[str, ...] = ()) -> list[int]:
    with file.claimed():
        vectors = np.array(list(texts.values()), np.float32)
        flags = np.array([text in cut for text in texts])
        rows: list[int] = file.append([digest(text) for text in texts], vectors, flags).tolist()
    return rows


def find(file: VectorFile, *texts: str) -> list[int]:
    rows: list[int] = file.find([digest(text) for text in texts]).tolist()
    return rows


def read(file: VectorFile) -> Any:
    return np.concatenate([values for _, values, _, _ in file.blocks()])


def test_what_each_form_keeps_by_hand(tmp_path: Path) -> None:
    vectors: dict[str, list[float]] = {"a": [1, -0.5, 0.25], "zero": [0, 0, 0], "b": [-2.1, 0, 1 / 3]}
    kept: dict[VectorForm, list[list[float]]] = {
        "float32": [[1, -0.5, 0.25], [0, 0, 0], [float(np.float32(-2.1)), 0, float(np.float32(1 / 3))]],
        "float16": [[1, -0.5, 0.25], [0, 0, 0], [-2.099609375, 0, 0.333251953125]],
        "int8": [[127, -64, 32], [0, 0, 0], [-127, 0, 20]],  # 63.5 is rounded to the even number, 31.75 to 32
        "binary": [[127, -64, 32], [0, 0, 0], [-127, 0, 20]],
    }
    for form in FORMS:
        file = open_file(tmp_path / form, form)
        assert add(file, vectors) == [0, 1, 2]
        ((start, values, scales, signs),) = file.blocks()
        assert (start, values.tolist()) == (0, kept[form])
        if values.dtype == np.int8:
            assert scales is not None
            assert scales.tolist() == pytest.approx([1 / 127, 0, 2.1 / 127])
        else:
            assert scales is None
        assert (signs is None) == (form != "binary")
        if signs is not None:
            assert signs.tolist() == [[0b1010_0000], [0], [0b0010_0000]]


@given(
    batches=st.lists(
        st.dictionaries(st.text(max_size=3), st.lists(st.floats(-9, 9, width=32), min_size=5, max_size=5), min_size=1),
        max_size=4,
    ),
    form=st.sampled_from(FORMS),
)
def test_every_text_finds_its_vector_again_also_in_another_process(
    tmp_path_factory: pytest.TempPathFactory, batches: list[dict[str, list[float]]], form: VectorForm
) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    file, expected = open_file(folder, form), dict[str, list[float]]()
    for batch in batches:
        new = {text: vector for text, vector in batch.items() if text not in expected}
        if new:
            assert add(file, new) == list(range(len(expected), len(expected) + len(new)))
        expected.update(new)
    file.seal()
    for one in (file, open_file(folder, form)):
        assert len(one) == len(expected)
        assert find(one, *expected) == list(range(len(expected)))
        assert find(one, "a text of more than three letters") == [MISSING]
        if not expected:
            continue
        values, scales = one.take(np.arange(len(one)))
        given = np.array(list(expected.values()), np.float32)
        if form == "float32":
            assert values.tolist() == given.tolist()
        else:
            error = np.abs(given).max(axis=1) / 2**11 if form == "float16" else scales.astype(np.float64) / 2
            kept = values.astype(np.float64) * (scales[:, None] if values.dtype == np.int8 else 1)
            assert (np.abs(kept - given) <= error[:, None] * 1.001 + 1e-7).all()


def test_more_rows_than_a_dict_holds_are_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NEW", 10)
    file, texts = open_file(tmp_path), [f"t{number}" for number in range(57)]
    for start in range(0, 57, 4):
        add(file, {text: [float(number)] for number, text in enumerate(texts[start : start + 4], start)})
        assert find(file, *texts[: start + 4]) == list(range(min(start + 4, 57)))


def test_which_texts_were_cut_is_kept(tmp_path: Path) -> None:
    add(open_file(tmp_path), {"a": [1], "b": [2], "c": [3]}, cut=("b",))
    assert open_file(tmp_path).is_cut(np.array([2, 1, 0])).tolist() == [False, True, False]


def test_a_process_that_was_killed_while_writing_loses_only_its_last_batch(tmp_path: Path) -> None:
    add(open_file(tmp_path), {"a": [1, 2], "b": [3, 4]})
    folder = tmp_path / "file"
    with (folder / "values").open("ab") as stream:
        stream.write(b"\1\2\3\4\5\6\7\10\11")  # a row and a bit, whose record was not written
    with (folder / "rows").open("ab") as stream:
        stream.write(b"\1\2\3")
    file = open_file(tmp_path)
    assert (len(file), find(file, "a", "b")) == (2, [0, 1])
    assert add(file, {"c": [5, 6]}) == [2]
    assert read(open_file(tmp_path)).tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(("name", "place"), [("values", 9), ("rows", 32), ("rows", 48), ("rows", 56)])
def test_an_altered_vector_is_left_out_and_made_again(tmp_path: Path, name: str, place: int) -> None:
    file = open_file(tmp_path, "float32")
    add(file, {"a": [1, 2], "b": [3, 4], "c": [5, 6]})
    file.seal()
    path = tmp_path / "file" / name
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.warns(StoreWarning, match=r"1 of 3 vectors in .* are damaged; their texts are embedded again"):
        file = open_file(tmp_path)
    assert find(file, "a", "b", "c") == [0, MISSING, 2]
    assert add(file, {"b": [3, 4]}) == [3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = open_file(tmp_path)
    assert find(again, "a", "b", "c") == [0, 3, 2]


def test_vectors_that_are_missing_at_the_end_are_made_again(tmp_path: Path) -> None:
    file = open_file(tmp_path)
    add(file, {"a": [1, 2], "b": [3, 4], "c": [5, 6]})
    file.seal()
    path = tmp_path / "file" / "values"
    path.write_bytes(path.read_bytes()[:12])
    with pytest.warns(StoreWarning, match="2 of 3 vectors are missing at the end of"):
        file = open_file(tmp_path)
    assert find(file, "a", "b", "c") == [0, MISSING, MISSING]
    assert add(file, {"b": [3, 4]}) == [1]


@pytest.mark.parametrize("content", ["", "[]", '{"version": 2, "form": "<f4", "dimension": 2}', '{"version": 1}'])
def test_a_file_of_another_version_is_begun_anew(tmp_path: Path, content: str) -> None:
    add(open_file(tmp_path), {"a": [1, 2]})
    (tmp_path / "file" / "vectors.json").write_text(content)
    with pytest.warns(StoreWarning, match=r"vectors.json cannot be used .*; its texts are embedded again"):
        file = open_file(tmp_path)
    assert (len(file), find(file, "a")) == (0, [MISSING])
    assert add(file, {"a": [1, 2, 3]}) == [0]


def test_a_file_is_checked_only_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = open_file(tmp_path)
    add(file, {"a": [1, 2]})
    file.seal()
    assert json.loads((tmp_path / "file" / "checked.json").read_bytes())["rows"] == 1
    monkeypatch.setattr(VectorFile, "_find_damaged", lambda _: pytest.fail("it has not changed"))
    assert find(open_file(tmp_path), "a") == [0]


def test_rows_of_another_process_are_seen_before_anything_is_written(tmp_path: Path) -> None:
    first, second = open_file(tmp_path), open_file(tmp_path)
    add(first, {"a": [1]})
    with second.claimed():
        assert find(second, "a", "b") == [0, MISSING]
    assert add(second, {"b": [2]}) == [1]
    assert add(first, {"c": [3]}) == [2]
    assert find(first, "a", "b", "c") == [0, 1, 2]


def test_a_claim_is_taken_once_for_what_lies_within(tmp_path: Path) -> None:
    taken: list[str] = []

    @contextmanager
    def claim() -> Iterator[None]:
        taken.append("claim")
        yield

    file = VectorFile(tmp_path / "file", "float32", claim)
    with file.claimed(), file.claimed():
        file.append([digest("a")], np.ones((1, 1), np.float32), np.zeros(1, np.bool_))
    assert taken == ["claim"]


@pytest.mark.parametrize(
    ("form", "value", "complaint"),
    [
        ("float32", float("nan"), "has the value NaN in column 1"),
        ("int8", float("-inf"), "has the value -inf in column 1"),
        ("float16", 70000.0, "has the value 70000.0 in column 1, which float16 cannot hold; write `vectors: float32`"),
    ],
)
def test_values_that_cannot_be_kept_are_named(tmp_path: Path, form: VectorForm, value: float, complaint: str) -> None:
    file = open_file(tmp_path, form)
    with pytest.raises(UnusableVectorError, match=complaint) as raised:
        add(file, {"a": [1, 2], "b": [1, value]})
    assert (raised.value.row, len(file)) == (1, 0)


def test_vectors_of_another_width_are_refused(tmp_path: Path) -> None:
    add(open_file(tmp_path), {"a": [1, 2]})
    with pytest.raises(RagevalError, match=r"vectors of 3 values, but those in .* have 2: another model may now have"):
        add(open_file(tmp_path), {"b": [1, 2, 3]})


def test_signs_follow_the_values(tmp_path: Path) -> None:
    add(open_file(tmp_path, "int8"), {"a": [1, -1]})
    file = open_file(tmp_path, "binary")
    assert [signs.tolist() for _, _, _, signs in file.blocks() if signs is not None] == [[[0b1000_0000]]]
    add(file, {"b": [-1, 2], "c": [3, 3]})
    expected = [[0b1000_0000], [0b0100_0000], [0b1100_0000]]
    for one in (file, open_file(tmp_path, "binary")):
        assert [signs.tolist() for _, _, _, signs in one.blocks() if signs is not None] == [expected]


def list_signs(file: VectorFile) -> list[list[list[int]]]:
    return [signs.tolist() for _, _, _, signs in file.blocks() if signs is not None]


def test_altered_signs_are_made_again(tmp_path: Path) -> None:
    file = open_file(tmp_path, "binary")
    add(file, {"a": [1, -1], "b": [-1, 2]})
    file.seal()
    expected = list_signs(file)
    (tmp_path / "file" / "signs").write_bytes(b"\x00\x00")
    assert list_signs(open_file(tmp_path, "binary")) == expected
    (tmp_path / "file" / "signs").write_bytes(b"\xff" * 7)
    assert list_signs(open_file(tmp_path, "binary")) == expected


def test_vectors_without_their_description_are_made_again(tmp_path: Path) -> None:
    file = open_file(tmp_path, "binary")
    add(file, {"a": [1, -1]})
    list_signs(file)
    (tmp_path / "file" / "vectors.json").unlink()
    with pytest.warns(StoreWarning, match=r"vectors\.json is missing; the texts of its vectors are embedded again"):
        file = open_file(tmp_path, "binary")
    add(file, {"b": [-1, 1]})
    assert list_signs(file) == [[[0b0100_0000]]]


def test_a_store_lists_and_removes_files_of_vectors(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    for model, form in (("aa11", "float32"), ("aa11", "int8"), ("bb22", "int8")):
        add(store.answers.open_vectors(model, form), {"a": [1, 2], "b": [3, 4]})  # type: ignore[arg-type]
    entries = [entry for entry in list_entries(tmp_path) if entry.kind == "vectors"]
    assert sorted((entry.key, entry.count) for entry in entries) == [
        ("aa11-float32", 2),
        ("aa11-int8", 2),
        ("bb22-int8", 2),
    ]
    assert all(entry.size > 2 * 32 for entry in entries)
    chosen = choose(entries, Rules(needed={"aa11"}))
    assert [entry.key for entry in chosen] == ["bb22-int8"]
    assert remove(tmp_path, chosen) == chosen
    assert [entry.key for entry in list_entries(tmp_path) if entry.kind == "vectors"] == [
        entry.key for entry in entries if entry not in chosen
    ]
    store.close()


def test_without_a_store_vectors_are_in_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    answers = MemoryAnswers()
    file = answers.open_vectors("m", "int8")
    add(file, {"a": [1, 2]})
    assert find(answers.open_vectors("m", "int8"), "a") == [0]
    assert find(answers.open_vectors("other", "int8"), "a") == [MISSING]
    assert list(tmp_path.iterdir())
    del answers, file
    assert not list(tmp_path.iterdir())
