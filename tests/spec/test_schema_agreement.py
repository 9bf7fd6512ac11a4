"""The JSON Schema and `validate` accept and refuse the same specs, but for the checks in `BEYOND`.

Specs are generated from the schema itself, block by block, and then made wrong in up to two places.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rageval_spec import registry
from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads
from rageval_spec.spec.json_schema import build_schema

BEYOND = {
    "unknown-name": "a block names another one that the spec does not have",
    "circular-reference": "blocks name each other in a circle",
    "wrong-value": "a text has a form of its own (URLs, functions, moments), keys of a block exclude one another, or a "
    "metric to be shown as a percentage is no share",
    "wrong-gate": "a gate has no bound, or keys that need another one; bounds that contradict each other",
    "wrong-slice": "a slice has neither a column nor a condition",
    "wrong-weights": "`cluster`, `weight` or `weights` name a dataset that the spec does not have",
    "wrong-history": "keys that belong to another kind of history",
    "idle-stopping": "stopping early needs a gate that can be decided and a system that can be asked",
    "wrong-monitor": "a monitor names metrics, windows, notifiers and systems, which must fit it",
    "bands": "a scale of bands covers none of the metrics, or is not ordered",
    "misplaced-secret": "a secret stands where it could become visible",
    "duplicate-metric": "two metrics have one name",
    "duplicate-path": "two blocks write the same file",
    "missing-part": "a metric needs data that the dataset's block does not name",
}
"""The codes of the checks that a JSON Schema does not make: across blocks, between keys, and of the form of texts."""
SCHEMA = build_schema(builtin_only=True)
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
SECTIONS: tuple[registry.Section, ...] = ("datasets", "systems", "models", "judges", "labels", "metrics", "reports")
WORDS = [(section, word) for section in SECTIONS for word in sorted(registry.builtin_words(section))]
TEXTS = ("x", "a.csv", "http://localhost", "$.a", "min", "5%", "12h", "mod:name", "")
WRONG: tuple[Any, ...] = (
    None,
    True,
    False,
    "x",
    "",
    "1",
    -1,
    0,
    1,
    1.5,
    123456.75,
    [],
    {},
    [1],
    ["x"],
    {"a": 1},
    {"use": "x"},
)
Draw = Callable[[st.SearchStrategy[Any]], Any]


def generate(draw: Draw, part: Any, depth: int = 0) -> Any:
    """A value that fits a part of the schema, but for the form of texts."""
    if not isinstance(part, dict) or not part:
        return draw(st.sampled_from(WRONG))
    schema: dict[str, Any] = part
    if "$ref" in schema:
        return generate(draw, SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]], depth)
    if "const" in schema or "enum" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    if "anyOf" in schema:
        return generate(draw, draw(st.sampled_from(schema["anyOf"])), depth)
    kind = schema.get("type", "object" if "properties" in schema else None)
    kind = draw(st.sampled_from(kind)) if isinstance(kind, list) else kind
    if kind == "object":
        return _generate_object(draw, schema, depth)
    if kind == "array":
        size = draw(st.integers(schema.get("minItems", 0), max(2, schema.get("minItems", 0))))
        return [generate(draw, schema.get("items"), depth + 1) for _ in range(size)]
    if kind in ("integer", "number"):
        low: float = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        high: float = min(schema.get("maximum", schema.get("exclusiveMaximum", low + 9)), low + 9)
        return draw(st.integers(int(low), int(high)) if kind == "integer" else st.sampled_from([low, high]))
    others: dict[Any, tuple[Any, ...]] = {"string": TEXTS, "boolean": (True, False), "null": (None,)}
    return draw(st.sampled_from(others.get(kind, WRONG)))


def _generate_object(draw: Draw, schema: dict[str, Any], depth: int) -> dict[str, Any]:
    required = schema.get("required", ())
    optional = [key for key in schema.get("properties", {}) if key not in required]
    chosen = draw(st.lists(st.sampled_from(optional), max_size=3, unique=True)) if optional and depth < 4 else []
    made = {key: generate(draw, schema["properties"][key], depth + 1) for key in (*required, *chosen)}
    if isinstance(more := schema.get("additionalProperties"), dict):
        made["k"] = generate(draw, more, depth + 1)
    return made


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from list_paths(one, (*path, key))


def spoil(draw: Draw, content: dict[str, Any]) -> dict[str, Any]:
    """The spec with one place changed, removed or added."""
    spoilt = copy.deepcopy(content)
    *parents, last = draw(st.sampled_from([*list_paths(spoilt)]))
    owner: Any = spoilt
    for key in parents:
        owner = owner[key]
    match draw(st.sampled_from(["replace", "replace", "remove", "add"])):
        case "replace":
            owner[last] = draw(st.sampled_from(WRONG))
        case "remove":
            del owner[last]
        case "add" if isinstance(owner, dict):
            owner["colour"] = draw(st.sampled_from(WRONG))
        case _:
            owner.append(draw(st.sampled_from(WRONG)))
    return spoilt


def write_spec(section: str, block: Any) -> dict[str, Any]:
    """The smallest spec with a block in it."""
    content: dict[str, Any] = {
        "version": 1,
        "datasets": {"d": {"use": "trec", "qrels": "q"}},
        "systems": {"s": {"use": "bm25"}},
        "metrics": ["ndcg@10"],
    }
    if section in ("metrics", "reports"):
        return {**content, section: [block]}
    return {**content, section: {**content.get(section, {}), "b": block}}


@st.composite
def specs(draw: Draw) -> dict[str, Any]:
    if draw(st.integers(0, 3)):
        section, word = draw(st.sampled_from(WORDS))
        content = write_spec(section, {**generate(draw, SCHEMA["definitions"][f"{section}.{word}"]), "use": word})
    else:
        key = draw(st.sampled_from(sorted(SCHEMA["properties"])))
        content = {**write_spec("reports", "terminal"), key: generate(draw, SCHEMA["properties"][key])}
    for _ in range(draw(st.integers(0, 2))):
        content = spoil(draw, content) if content else content
    return content


def list_errors(content: Any) -> dict[str, str]:
    """The codes of the errors that `validate` finds, each with a message."""
    try:
        loads(json.dumps(content), check_files=False, environment={})
    except SpecError as error:
        return {one.code: one.message for one in error.diagnostics if one.severity == "error"}
    return {}


@given(specs())
@settings(max_examples=400)
@example(write_spec("systems", {"use": "command", "command": []}))
@example(write_spec("systems", {"use": "command", "command": ""}))
@example({})
def test_the_schema_and_validate_agree(content: dict[str, Any]) -> None:
    errors = list_errors(content)
    refusal = jsonschema.exceptions.best_match(VALIDATOR.iter_errors(content))
    if refusal is not None:
        assert errors, f"only the schema refuses it: {refusal.message}"
    elif structural := {code: message for code, message in errors.items() if code not in BEYOND}:
        pytest.fail(f"only validate refuses it: {structural}")


@pytest.mark.parametrize(("section", "word"), WORDS)
def test_an_unknown_key_and_a_missing_one_are_refused_by_both(section: registry.Section, word: str) -> None:
    required = SCHEMA["definitions"][f"{section}.{word}"].get("required", [])
    wrong = [write_spec(section, {"use": word, "colour": 1})]
    wrong += [write_spec(section, {"use": word})] if {*required} - {"use"} else []
    for content in wrong:
        assert not VALIDATOR.is_valid(content)
        assert {"unknown-key", "missing-key"} & {*list_errors(content)}
