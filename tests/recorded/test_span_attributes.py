from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from rageval_spec.recorded.span_attributes import EVALUATION, NAMES, find, find_all, gather

PAGE = (Path(__file__).parents[2] / "docs" / "exchange" / "otel.md").read_text()
ALL = [name.removesuffix(".N") for names in NAMES.values() for name in names]


def list_column(number: int) -> set[str]:
    """The names of the table that stand in a column of the table of the documentation."""
    cells = (line.split("|")[number] for line in PAGE.splitlines() if line.count("|") == 5 and "`" in line)
    return {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)} & {*ALL}


def test_every_name_is_in_the_table_once_for_each_meaning() -> None:
    assert [meaning for meaning, names in NAMES.items() if len(names) != len(set(names))] == []


def test_the_names_of_opentelemetry_are_those_of_its_package() -> None:
    package = pytest.importorskip(
        "opentelemetry.semconv._incubating.attributes.gen_ai_attributes",
        reason="needs opentelemetry-semantic-conventions: uv pip install opentelemetry-semantic-conventions",
    )
    known = {value for name, value in vars(package).items() if name.startswith("GEN_AI_") and isinstance(value, str)}
    assert {*list_column(2), *EVALUATION.values()} - known == {"service.name"}


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
    assert list_column(3) - known - {"metadata", "annotations", "evaluations"} == set()


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


def test_every_name_is_in_the_documentation_and_those_of_opentelemetry_have_their_version() -> None:
    assert [name for name in ALL if f"`{name}`" not in PAGE] == []
    unversioned = {name for name in list_column(2) if not re.search(rf"`{re.escape(name)}`[^|]* 1\.\d\d", PAGE)}
    assert unversioned == {"service.name"}
