"""The names that `rageval_spec.spec` exports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from rageval_spec import registry, spec
from rageval_spec.diagnostics import SpecError

SPEC = """\
version: 1
datasets: {d: {use: trec, qrels: q.txt}}
systems: {s: {use: file, path: s.run}}
metrics: [map, {use: ndcg, cutoff: 10}]
"""


def test_the_schema_is_draft_07_and_accepts_what_is_loaded() -> None:
    schema = spec.schema()
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(SPEC), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(SPEC.replace("cutoff", "cutof")), schema)
    with pytest.raises(SpecError):
        spec.loads(SPEC.replace("cutoff", "cutof"), check_files=False)


def test_the_schema_knows_the_words_of_other_distributions_unless_told_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    words, load = registry.words, registry.load
    monkeypatch.setattr(
        registry, "words", lambda section: (*words(section), "foreign") if section == "reports" else words(section)
    )
    monkeypatch.setattr(registry, "load", lambda section, word: load(section, "csv" if word == "foreign" else word))
    assert '"foreign"' in json.dumps(spec.schema())
    assert '"foreign"' not in json.dumps(spec.schema(builtin_only=True))


def test_a_caller_can_change_the_schema_it_got() -> None:
    first = spec.schema(builtin_only=True)
    first.clear()
    assert spec.schema(builtin_only=True)["properties"]["metrics"]


def test_every_public_name_exists() -> None:
    assert all(hasattr(spec, name) for name in spec.__all__)
    loaded = spec.loads(SPEC, check_files=False)
    assert isinstance(loaded, spec.Spec)
    assert [found.code for found in spec.check_inputs(loaded)] == ["missing-file", "missing-file"]


def test_loading_a_spec_needs_no_heavy_library(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    script = (
        "import sys; from rageval_spec.spec import load;"
        f"load({str(path)!r}, check_files=False);"
        "print([name for name in ('polars', 'numpy', 'rich', 'onnxruntime', 'httpx', 'scipy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
