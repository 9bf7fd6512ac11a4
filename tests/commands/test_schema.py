from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import yaml

from tests.command_line import invoke


def test_schema_is_draft_7_and_accepts_the_sample_spec(spec: Path) -> None:

    schema = json.loads(invoke("schema").stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(spec.read_text()), schema)
