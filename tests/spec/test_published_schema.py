"""The committed JSON Schema is up to date, and the specs of this repository are valid."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from rageval_spec import spec as spec_room
from rageval_spec.spec import json_schema
from rageval_spec.spec.json_schema import render_schema
from rageval_spec.spec.text.places import SourceText
from rageval_spec.spec.text.yaml_tree import read_yaml, to_data

ROOT = Path(__file__).parents[2]


def test_the_published_schema_is_up_to_date() -> None:
    published = (ROOT / json_schema.PUBLISHED).read_text(encoding="utf-8")
    assert published == render_schema(builtin_only=True), "python -m rageval_spec.spec.json_schema --write"


@pytest.mark.parametrize("path", sorted((ROOT / "specs").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_specs_of_this_repository_fit_the_published_schema(path: Path) -> None:
    schema = json.loads((ROOT / json_schema.PUBLISHED).read_text(encoding="utf-8"))
    root, _ = read_yaml(SourceText(path.name, path.read_text(encoding="utf-8")))
    assert root is not None
    jsonschema.Draft7Validator(schema).validate(to_data(root))
    assert spec_room.load(path).warnings == ()


def test_check_and_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "schemas" / "spec.schema.json"
    assert json_schema.main(["--check", str(path)]) == 1
    assert "--write" in capsys.readouterr().err
    assert json_schema.main(["--write", str(path)]) == 0
    assert json_schema.main(["--check", str(path)]) == 0
    path.write_text(path.read_text(encoding="utf-8").replace("bm25", "bm26"), encoding="utf-8")
    assert json_schema.main(["--check", str(path)]) == 1
    assert json_schema.main([]) == 2


def test_the_schema_of_the_installation() -> None:
    schema = spec_room.schema()
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema.Draft7Validator.check_schema(schema)
