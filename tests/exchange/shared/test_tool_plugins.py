"""What holds for the dataset, the system and the report of every tool."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.exchange.shared import contracts

REQUIRED: dict[str, dict[str, Any]] = {
    "braintrust": {"project": "support"},
    "mlflow": {"experiment": "support"},
    "otel": {"path": "spans"},
    "trulens": {"path": "t.sqlite", "database": "t.sqlite"},
    "weave": {"project": "my-team/support"},
}
READ = ("braintrust", "langfuse", "langsmith", "mlflow", "otel", "phoenix", "trulens")


@pytest.mark.parametrize("section", ["datasets", "systems"])
def test_a_tool_that_can_be_read_gives_questions_and_answers(section: registry.Section) -> None:
    for word in READ:
        assert word in registry.builtin_words(section)
        plugin = registry.load(section, word)
        assert plugin.node_type.model_fields.keys() >= plugin.source_type.node_type.model_fields.keys()
        assert plugin.__doc__ and plugin.node_type.__doc__


def test_a_tool_that_can_be_written_is_a_report() -> None:
    for word in (*READ, "weave"):
        plugin = registry.load("reports", word)
        assert plugin.target_type is contracts.load(word).target
    assert "ragas" not in registry.words("reports")  # a file, which `export` writes


def test_a_tool_without_a_source_is_neither_a_dataset_nor_a_system() -> None:
    assert "weave" not in registry.words("datasets") and "weave" not in registry.words("systems")


@pytest.mark.parametrize("word", [word for word in READ if word != "otel"])
def test_a_dataset_has_no_answers(word: str) -> None:
    node = registry.load("systems", word).node_type
    required = {key: value for key, value in REQUIRED.get(word, {}).items() if key in node.model_fields}
    with pytest.raises(ValidationError, match="a dataset has no answers; write it under 'datasets:'") as caught:
        node(use=word, dataset="golden", **required)
    assert [error["loc"] for error in caught.value.errors()] == [("dataset",)]


def test_a_spec_reads_spans_from_files_only() -> None:
    assert "listen" not in registry.load("systems", "otel").node_type.model_fields
    assert "listen" in contracts.load("otel").source.node_type.model_fields  # type: ignore[union-attr]


def test_other_names_of_a_tool_are_known() -> None:
    assert registry.load("systems", "phoenix").known_as == registry.load("reports", "phoenix").known_as
    assert "openinference" in registry.load("datasets", "otel").known_as
    assert "collector" in registry.load("reports", "otel").known_as
