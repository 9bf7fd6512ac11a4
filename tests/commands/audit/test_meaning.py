from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.commands.audit.meaning import find_meaning
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.pipeline.parts import Parts, build_parts
from rageval_spec.spec import load
from tests.tiny import write_spec


def open_parts(folder: Path, **models: object) -> Parts:
    return build_parts(load(write_spec(folder, metrics=["ndcg@10"], models=models)))


def test_without_a_model_words_are_compared(tmp_path: Path) -> None:
    meaning = find_meaning(None, None)
    assert meaning.embed is None and "an embedding model in the spec" in meaning.remark
    with pytest.raises(UsageError, match="the spec has no embedding model of this name; it has none"):
        find_meaning(open_parts(tmp_path), "minilm")


def test_a_model_behind_an_endpoint_is_only_asked_if_it_is_named(tmp_path: Path) -> None:
    endpoint = {"use": "http", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
    parts = open_parts(tmp_path, far=endpoint)
    assert find_meaning(parts, None).embed is None
    assert find_meaning(parts, "far").embed is not None
    with pytest.raises(UsageError, match="did you mean 'far'"):
        find_meaning(parts, "fa")


def test_a_local_model_that_cannot_be_opened_is_left_out_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RagevalError("it cannot be downloaded")

    parts = open_parts(tmp_path, near={"use": "onnx", "model": "minilm"})
    monkeypatch.setattr(parts.models["near"], "prepare", fail)
    meaning = find_meaning(parts, None)
    assert meaning.embed is None and "'near' cannot be opened: it cannot be downloaded" in meaning.remark
    with pytest.raises(RagevalError, match="cannot be downloaded"):
        find_meaning(parts, "near")
    monkeypatch.setattr(parts.models["near"], "prepare", lambda: None)
    assert "with the model 'near', by their meaning" in find_meaning(parts, None).remark
