from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.generate.request import DATASET, Request, build_spec
from rageval_spec.errors import UsageError


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("A text.")
    return tmp_path


def build(corpus: Path, **options: Any) -> Any:
    return build_spec(Request(corpus, **{"model": "tiny", "base_url": "http://localhost:1", **options}))


def test_the_command_line_describes_the_whole_spec(corpus: Path) -> None:
    spec = build(corpus, checker="large", embedding="minilm", price="0.15/0.6", limits={"max_cost": 2.0})
    node = spec.datasets[DATASET]
    assert (node.model, node.checker, node.embedding, node.path) == ("tiny", "large", "minilm", str(corpus))
    assert {name: spec.models[name].model for name in ("tiny", "large")} == {"tiny": "tiny", "large": "large"}
    assert (spec.models["tiny"].price.input, spec.models["tiny"].price.output) == (0.15, 0.6)
    assert spec.models["tiny"].api_key is None, "a key is not sent to any other endpoint"
    assert spec.limits.max_cost == 2
    assert "minilm" in spec.models


def test_names_that_cannot_be_names_of_blocks_are_names_of_models(corpus: Path) -> None:
    spec = build(corpus, model="meta/llama-3.1:8b", judge="overlap")
    assert spec.datasets[DATASET].model == "model"
    assert spec.models["model"].model == "meta/llama-3.1:8b"
    assert "overlap" in spec.judges


def test_claude_is_asked_at_its_own_endpoint(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    spec = build(corpus, model="claude-sonnet-4-5", base_url=None)
    assert spec.models["claude-sonnet-4-5"].dialect == "anthropic"
    assert str(spec.models["claude-sonnet-4-5"].api_key) == "${secret:ANTHROPIC_API_KEY}"


def test_azure_needs_an_address(corpus: Path) -> None:
    with pytest.raises(UsageError, match="--dialect azure needs --base-url"):
        build(corpus, base_url=None, dialect="azure")


def test_shares_are_read_under_the_names_of_their_options(corpus: Path) -> None:
    spec = build(corpus, keys={"types": "factual:50,procedural:50", "multi_hop": "25%", "count": 7, "language": None})
    node = spec.datasets[DATASET]
    assert (node.types, node.multi_hop, node.count) == ({"factual": 50, "procedural": 50}, 25, 7)
    with pytest.raises(UsageError, match="--difficulty: unknown name 'eazy'; did you mean 'easy'"):
        build(corpus, keys={"difficulty": "eazy:100"})
