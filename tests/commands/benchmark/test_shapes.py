from __future__ import annotations

import pytest

from rageval_spec import registry
from rageval_spec.commands.benchmark.shapes import shape_of


@pytest.mark.parametrize(
    ("word", "model", "systems", "advice"),
    [
        ("bm25", None, None, "write bm25:"),
        ("dense", "model", None, "write dense:MODEL"),
        ("hybrid", None, "systems", "write hybrid:SYSTEM+SYSTEM"),
        ("rerank", "model", "system", "write rerank:MODEL@SYSTEM"),
    ],
)
def test_a_systems_keys_determine_what_it_takes_after_the_colon(
    word: str, model: str | None, systems: str | None, advice: str
) -> None:
    shape = shape_of(registry.load("systems", word).node_type)
    assert (shape.model and shape.model.key, shape.systems and shape.systems.key) == (model, systems)
    assert shape.describe(word) == advice
