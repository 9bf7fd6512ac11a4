"""docs/show.md names every key of the JSON that it describes."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from rageval_spec.commands.compare.changes import KINDS, MetricChange, QuestionChange
from rageval_spec.drawing.cards import Card, CardValue, Mark, Missing, ShownContext

TEXT = (Path(__file__).parents[2] / "docs" / "show.md").read_text()
NAMED = set(re.findall(r"`(\w+)`", TEXT))


@pytest.mark.parametrize("shape", [Card, CardValue, Mark, Missing, ShownContext, MetricChange, QuestionChange])
def test_every_key_is_named(shape: type) -> None:
    inlined = {"others"}  # a card's other columns are keys by their own names
    assert {field.name for field in fields(shape)} - NAMED - inlined == set()


def test_every_kind_of_change_is_explained() -> None:
    assert [kind for kind in KINDS if not re.search(rf"^\|.*\b{kind}\b.*\|.*\|$", TEXT, re.MULTILINE)] == []
