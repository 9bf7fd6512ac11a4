from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.commands.models.listing import find_models
from rageval_spec.commands.models.named import find_model
from rageval_spec.errors import RagevalError, UsageError
from tests.commands.models.fetched import COMMIT, invoke, write_fetched


def test_a_model_that_another_program_fetched_in_part_is_completed(caches: Path) -> None:
    write_fetched("owner/part", "model.safetensors", "tokenizer.json", folder=caches)
    (caches / "hub" / "models--owner--part" / ".no_exist" / COMMIT / "modules.json").unlink()
    assert find_models().hub[0].about.problem == "incomplete, or not in a format that onnx can use"
    with pytest.raises(RagevalError, match=r"'owner/part' is only partly on this machine(?!.*did you mean)"):
        find_model("owner/part")


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("minilmm", 2, "did you mean 'minilm'?"),
        ("all-MiniLM-L6-v2", 2, "as in sentence-transformers/all-MiniLM-L6-v2"),
        ("owner/encodr", 3, "did you mean 'owner/encoder'?"),
        ("owner/encodr", 3, "HF_HUB_OFFLINE is set"),
        ("./nothing", 2, "there is no folder './nothing'"),
    ],
)
def test_a_wrong_model_name_gets_a_hint(caches: Path, name: str, code: int, message: str) -> None:
    write_fetched("owner/encoder", "model.safetensors", "tokenizer.json", folder=caches)
    for command in (["export", name, "--output", caches / "new"], ["bench", name]):
        result = invoke(*command)
        assert result.exit_code == code
        assert message in result.stderr
    assert not (caches / "new").exists()


def test_a_model_without_any_name_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        find_model("no model!")
