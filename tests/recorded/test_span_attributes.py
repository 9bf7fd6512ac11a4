from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from rageval_spec.recorded.span_attributes import COMMON, EVALUATION, GEN_AI, NAMES, VERSIONS, find, find_all, gather


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def test_every_name_is_in_the_table_once_for_each_meaning_and_has_its_version() -> None:
    for meaning, names in NAMES.items():
        keys = [(name.attribute, name.is_prefix) for name in names]
        assert len(keys) == len(set(keys)), meaning
        for name in names:
            assert bool(name.since) == (name.convention == GEN_AI), name
            assert not name.since or (1, 26) <= _version(name.since) <= _version(VERSIONS[GEN_AI])
            assert not name.deprecated or _version(name.deprecated) > _version(name.since)


def test_the_names_of_opentelemetry_are_those_of_its_package() -> None:
    package = pytest.importorskip(
        "opentelemetry.semconv._incubating.attributes.gen_ai_attributes",
        reason="needs opentelemetry-semantic-conventions: uv pip install opentelemetry-semantic-conventions",
    )
    known = {value for name, value in vars(package).items() if name.startswith("GEN_AI_") and isinstance(value, str)}
    ours = {name.attribute for names in NAMES.values() for name in names if name.convention == GEN_AI}
    assert {*ours, *EVALUATION.values()} - known == {"service.name"}


def test_the_names_of_openinference_are_those_of_its_package() -> None:
    package = pytest.importorskip(
        "openinference.semconv.trace",
        reason="needs openinference-semantic-conventions: uv pip install openinference-semantic-conventions",
    )
    resource = import_module("openinference.semconv.resource")
    classes = [*vars(package).values(), *vars(resource).values()]
    known = {
        value
        for one in classes
        if isinstance(one, type)
        for value in vars(one).values()
        if isinstance(value, str) and "." in value
    }
    ours = {name.attribute for names in NAMES.values() for name in names if name.convention == "OpenInference"}
    assert ours - known - {"metadata", "annotations", "evaluations"} == set()


def test_the_first_name_in_the_table_wins() -> None:
    both = {"gen_ai.usage.prompt_tokens": 1, "gen_ai.usage.input_tokens": 2, "llm.token_count.prompt": 3}
    assert find(both, "input_tokens") == 2
    assert find({"input.value": "", "traceloop.entity.input": "x"}, "input") == "x"
    assert find({}, "input") is None


def test_flattened_lists_are_gathered_in_order() -> None:
    flat = {"p.10.id": "c", "p.2.id": "b", "p.0.id": "a", "p.0.deep.text": "t", "p.x.id": "no", "q.0.id": "no",
            "p.99999999999.id": "no"}  # fmt: skip
    assert gather(flat, "p.") == [{"id": "a", "deep.text": "t"}, {"id": "b"}, {"id": "c"}]


@pytest.mark.parametrize(
    "found",
    ['[{"id": "a"}]', [{"id": "a"}], {"id": "a"}, [{"document": {"id": "a"}}], [{"document.id": "a"}]],
)
def test_lists_of_objects_come_in_several_forms(found: object) -> None:
    (listed,) = find_all({"gen_ai.retrieval.documents": found}, "documents")
    assert [list(item.values()) for item in listed] == [["a"]]


def test_common_names_are_marked_as_no_convention() -> None:
    assert {name.attribute for name in NAMES["cost"] if name.convention == COMMON} == {
        "gen_ai.usage.cost",
        "gen_ai.usage.total_cost",
    }


def test_every_name_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exchange" / "otel.md").read_text()
    assert [name.attribute for names in NAMES.values() for name in names if f"`{name.attribute}`" not in page] == []
    shown = [name for names in NAMES.values() for name in names if name.since not in ("", "1.26")]
    assert [name.attribute for name in shown if not re.search(rf"`{name.attribute}`[^|]* {name.since}", page)] == []
