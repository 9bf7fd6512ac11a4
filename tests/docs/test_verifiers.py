"""The table of docs/verifiers.md is that of the code, its examples are valid specs, and its conversion is right."""

from __future__ import annotations

import json
import os
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

from rageval_spec.inference.verifiers import VERIFIERS
from rageval_spec.models.onnx import OnnxModel, OnnxNode
from rageval_spec.pipeline.planning import preflight
from rageval_spec.plugin import Context
from tests.onnx_from_checkpoints.folders import CROSS_ENCODER, write_cross_encoder, write_detector, write_tokenizer
from tests.onnx_from_checkpoints.t5_models import write_t5

PAGE = (Path(__file__).parents[2] / "docs" / "verifiers.md").read_text(encoding="utf-8")
REST = """
version: 1
datasets: {golden: {use: jsonl, path: golden.jsonl}}
systems: {bot: {use: file, path: golden.jsonl}}
"""
METRICS = "metrics: [{use: faithfulness, judge: faith}]\n"
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_table_is_that_of_the_code() -> None:
    table = PAGE.partition("<!-- known -->\n")[2].partition("<!-- /known -->")[0].splitlines()[2:]
    expected = [
        f"| [{verifier.key}]({verifier.sources[0]}) | {verifier.family} | {verifier.license} | {verifier.language} | "
        f"{'no bound' if verifier.max_length is None else verifier.max_length} |"
        for verifier in VERIFIERS.values()
    ]
    assert table == expected


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    row = {"query_id": "q", "question": "?", "answer": "Yes.", "contexts": ["Yes."]}
    (tmp_path / "golden.jsonl").write_text(json.dumps(row))
    for name, count in (("checker", 2), ("own", 2), ("alignscore", 3)):
        labels = {str(number): f"LABEL_{number}" for number in range(count)}
        write_cross_encoder(tmp_path / "models" / name, config={**CROSS_ENCODER, "id2label": labels})
    write_detector(tmp_path / "models" / "tagger")
    write_t5(tmp_path / "models" / "own-flan-t5")
    return tmp_path


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_is_valid(project: Path, example: str) -> None:
    path = project / "spec.yaml"
    path.write_text(REST + example + ("" if "metrics:" in example else METRICS))
    loaded, _ = preflight.inspect(path, ())
    assert not loaded.warnings


def test_the_line_of_validate_is_what_it_prints(project: Path) -> None:
    (printed,) = re.findall(r"```text\njudges\.faith: (.*?)\n```", PAGE, re.DOTALL)
    path = project / "spec.yaml"
    model = "models: {verifier: {use: onnx, model: lytang/MiniCheck-Flan-T5-Large}}\n"
    path.write_text(REST + model + "judges: {faith: {use: nli, model: verifier}}\n" + METRICS)
    (reading,) = preflight.inspect(path, ())[1]["judges.faith"]
    assert ", ".join((reading.file, *reading.details)) == printed


def test_a_converted_alignscore_gives_the_logits_of_its_three_labels(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="AlignScore's checkpoints are written and read by torch")
    transformers = pytest.importorskip("transformers", reason="the reference is transformers' RoBERTa")
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 20,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "type_vocab_size": 1,
    }
    config = transformers.RobertaConfig(**sizes, intermediate_size=32, max_position_embeddings=40, pad_token_id=1)
    encoder = transformers.RobertaModel(config).eval()
    heads = {name: torch.nn.Linear(16, width) for name, width in (("bin_layer", 2), ("tri_layer", 3), ("reg_layer", 1))}
    state = {f"base_model.{name}": tensor for name, tensor in encoder.state_dict().items()}
    state |= {f"{head}.{name}": tensor for head, layer in heads.items() for name, tensor in layer.state_dict().items()}
    torch.save({"state_dict": state}, tmp_path / "AlignScore-large.ckpt")
    folder = tmp_path / "models" / "alignscore"
    folder.mkdir(parents=True)
    config.save_pretrained(folder)
    write_tokenizer(folder)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        exec(textwrap.dedent(code), {})
    finally:
        os.chdir(before)
    node = OnnxNode(use="onnx", model=str(folder), published_as="yzha/AlignScore")
    model = OnnxModel(node, Context("m"))
    assert model.labels == ("entailment", "neutral", "contradiction")
    pair = ("the cat sat", "a dog ran")
    from tokenizers import Tokenizer

    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(*pair).ids
    with torch.no_grad():
        pooled = encoder(torch.tensor([ids])).pooler_output
        expected = heads["tri_layer"](pooled).numpy()
    assert np.allclose(model.score([pair]).logits, expected, atol=1e-5)
