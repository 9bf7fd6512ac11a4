"""Blocks of specs that name a tool, built without a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rageval_spec import registry
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.tables import Collection
from rageval_spec.plugin import Context


def open_dataset(folder: Path, **block: Any) -> Collection:
    """The questions of a block of `datasets:`."""
    plugin = registry.load("datasets", block["use"])
    collection: Collection = plugin(plugin.node_type(**block), Context("golden", folder)).open()
    return collection


def list_answers(folder: Path, **block: Any) -> dict[str, dict[str, Any]]:
    """The rows of a system's answers by question; the same block gives the questions."""
    plugin = registry.load("systems", block["use"])
    questions = open_dataset(folder, **block)
    answers = plugin(plugin.node_type(**block), Context("prod", folder)).answer(questions).answers
    return {row["query_id"]: row for row in answers.iter_rows(named=True)}


def render_report(evaluation: Evaluation, folder: Path, **block: Any) -> str:
    """What a block of `reports:` prints once it has sent the values."""
    plugin = registry.load("reports", block["use"])
    content: bytes = plugin(plugin.node_type(**block), Context(block["use"], folder, output=folder)).render(evaluation)
    return content.decode()


def list_gold(collection: Collection) -> list[tuple[str, str, list[str]]]:
    """Each question's id and text, with its gold answers."""
    assert collection.queries is not None and collection.references is not None
    return [(*row, gold) for row, gold in zip(
        collection.queries.rows(), collection.references["references"].to_list(), strict=True
    )]  # fmt: skip
