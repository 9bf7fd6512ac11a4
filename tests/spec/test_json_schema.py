"""The JSON Schema and the reader accept and reject the same specs, as far as a schema can express the rules."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.diagnostics import SpecError
from rageval_spec.kernels import parse_measure
from rageval_spec.spec import loads
from rageval_spec.spec.json_schema import build_schema

BEYOND_A_SCHEMA = {
    *[
        "unknown-name",
        "circular-reference",
        "unused-block",
        "duplicate-metric",
        "wrong-gate",
        "unknown-metric",
        "ambiguous-value",
        "unknown-baseline",
        "unusable-path",
        "wrong-history",
    ]
}
"""Codes of what no JSON Schema can say: references, contradictions, the grammar of measures, how YAML was written."""

VALID: dict[str, Any] = {
    "version": 1,
    "name": "whole",
    "datasets": {"support": {"use": "folder", "path": "data", "limit": 5}},
    "systems": {
        "keyword": {"use": "ranking", "path": {"support": "a.run"}, "format": "trec"},
        "sparse": {"use": "sparse", "k1": 1.2, "b": 1, "fields": {"title": 2}, "stop_words": ["a"], "stemmer": None},
        "remote": {"use": "remote", "url": "https://example.org", "headers": {"A": "b"}, "timeout": 0.5},
        "dense": {"use": "dense", "depth": 10},
        "fused": {"use": "hybrid", "systems": ["sparse", "dense"], "weights": {"dense": 2}},
    },
    "models": {"large": {"use": "onnx", "model": "e5", "precision": "int8", "max_length": None}},
    "judges": {"strict": {"use": "binary", "model": "large"}},
    "metrics": ["ndcg@10", "map", {"use": "recall", "cutoff": 5, "as": "found", "judged_only": True}],
    "ranking": {"ties": "input", "depth": 10, "tie_range": False},
    "statistics": {"confidence": 0.9, "seed": 1},
    "gates": [{"metric": "ndcg@10", "min": 0.4, "on": "lower"}, {"metric": "found", "max": 1, "system": "sparse"}],
    "limits": {"threads": None},
    "reports": ["terminal", {"use": "page", "theme": "dark", "path": "x.html"}],
}


@pytest.fixture(scope="module")
def validator(installation: None) -> Any:
    schema = build_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def errors_of_shape(data: Any) -> list[str]:
    """The reader's diagnostics of data, without those that a schema cannot express."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    try:
        loads(text, check_files=False)
    except SpecError as error:
        return [str(d) for d in error.diagnostics if d.code not in BEYOND_A_SCHEMA]
    return []


def paths(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from paths(value, (*path, key))


WORDS = [
    *["use", "as", "as_", "path", "min", "folder", "sparse", "page", "ndcg", "ndcg@5", "map", "faithful", "lower", "x"],
    *["", "a/b", "trec", "input", "english", "https://a", "recall@10", "P_5", "limit", "title", "stop_words", "trec "],
]
VALUES = (
    st.sampled_from(WORDS)
    | st.sampled_from([0, 1, 2, -1, 5.0, 0.5, 1.5, True, False, None, 100, 101, 1001])
    | st.sampled_from([[], {}, ["a"], [1], {"use": "folder"}, {"use": "sparse"}, {"title": 1}, {"use": "map"}, [None]])
)


@st.composite
def edited_specs(draw: st.DrawFn) -> Any:
    data = copy.deepcopy(VALID)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([path for path in paths(data) if path]))
        parent: Any = data
        for step in path[:-1]:
            parent = parent[step]
        action = draw(st.sampled_from(["replace", "remove", "add", "rename"]))
        if action == "replace":
            parent[path[-1]] = copy.deepcopy(draw(VALUES))
        elif action == "remove":
            del parent[path[-1]]
        elif action == "add" and isinstance(parent, list):
            parent.append(copy.deepcopy(draw(VALUES)))
        elif isinstance(parent, dict):
            parent[draw(st.sampled_from(WORDS))] = (
                parent.pop(path[-1]) if action == "rename" else copy.deepcopy(draw(VALUES))
            )
    return data


@given(data=edited_specs())
def test_the_schema_and_the_reader_agree(validator: Any, data: Any) -> None:
    found = errors_of_shape(data)
    by_schema = [f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(data)]
    if any(_is_no_measure(entry) for entry in _bare_metrics(data)):
        return
    assert bool(found) == bool(by_schema), (found, by_schema)


def test_the_spec_to_edit_is_valid(validator: Any) -> None:
    assert errors_of_shape(VALID) == []
    assert validator.is_valid(VALID)


def _bare_metrics(data: Any) -> list[str]:
    metrics = data.get("metrics")
    return [entry for entry in metrics if isinstance(entry, str)] if isinstance(metrics, list) else []


def _is_no_measure(text: str) -> bool:
    """For a text that is not a measure, the reader says more than the schema's pattern."""
    try:
        parse_measure(text)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"systems": {"a": {"use": "sparse", "k2": 1}}}, "'k2' was unexpected"),
        ({"systems": {"a": {"use": "sprase"}}}, "'sprase' is not one of ['dense', 'hybrid', 'ranking'"),
        ({"systems": {"a": {"use": "sparse", "b": 2}}}, "2 is greater than the maximum of 1"),
        ({"metrics": [{"use": "recall"}]}, "'cutoff' is a required property"),
        ({"metrics": [{"use": "ndcg", "gain": "exb"}]}, "'exb' is not one of ['linear', 'exp']"),
        ({"gates": [{"metric": "map", "mni": 1}]}, "'mni' was unexpected"),
        ({"reports": ["page"]}, "'page' is not one of ['terminal']"),
        ({"version": 2}, "2 is greater than the maximum of 1"),
    ],
)
def test_a_typo_gets_a_message_about_its_own_block(validator: Any, change: dict[str, Any], expected: str) -> None:
    messages = [error.message for error in validator.iter_errors({**VALID, **change})]
    assert len(messages) == 1
    assert expected in messages[0]


@pytest.mark.parametrize(
    "metric", ["ndcg", "nDCG@10", "NDCG@10", "ndcg_cut_10", "ndcg_cut.10", "P_5", "P@5", "AP", "map", "P(rel=2)@5"]
)
def test_the_schema_accepts_every_spelling_of_a_measure_that_the_kernel_accepts(validator: Any, metric: str) -> None:
    assert validator.is_valid({**VALID, "metrics": [metric], "gates": []})


@pytest.mark.parametrize("metric", ["ncdg@10", "nonsense", "faithful", "", "ndcgx"])
def test_the_schema_refuses_text_that_is_not_a_measure(validator: Any, metric: str) -> None:
    assert not validator.is_valid({**VALID, "metrics": [metric], "gates": []})


@pytest.mark.usefixtures("installation")
def test_keys_have_their_description_and_default() -> None:
    k1 = build_schema()["definitions"]["systems.sparse"]["properties"]["k1"]
    assert k1 == {"default": 0.9, "description": "Saturation.", "minimum": 0, "type": "number"}


@pytest.mark.usefixtures("installation")
def test_a_key_that_takes_a_name_is_described_by_its_section_unless_it_has_a_description() -> None:
    definitions = build_schema()["definitions"]
    assert definitions["systems.dense"]["properties"]["model"] == {
        "default": "minilm",
        "description": "The embedding model.",
        "type": "string",
    }
    hybrid = definitions["systems.hybrid"]["properties"]
    assert hybrid["systems"]["items"] == {"description": "The name of a block under `systems:`.", "type": "string"}
    assert hybrid["weights"]["additionalProperties"] == {"type": "number"}


@pytest.mark.usefixtures("installation")
def test_a_secret_is_text() -> None:
    definition = build_schema()["definitions"]["systems.remote"]["properties"]["api_key"]
    assert definition["type"] == ["string", "null"]
