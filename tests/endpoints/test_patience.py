from __future__ import annotations

import pytest

from rageval_spec import registry
from rageval_spec.endpoints.patience import PATIENCE
from rageval_spec.endpoints.tries import Limits, Tries, TryError
from tests.models.chat_endpoint import QuickClock

BLOCKS = [
    (section, word)
    for section in registry.SECTIONS
    for word in registry.words(section)
    if "patience" in registry.load(section, word).node_type.model_fields
]


def test_blocks_that_ask_endpoints_have_the_key() -> None:
    assert {("systems", "http"), ("models", "http"), ("models", "chat")} <= {*BLOCKS}


@pytest.mark.parametrize(("section", "word"), BLOCKS)
def test_patience_is_the_same_key_everywhere(section: registry.Section, word: str) -> None:
    first, this = (registry.load(*block).node_type.model_fields["patience"] for block in (BLOCKS[0], (section, word)))
    assert (this.default, this.description, this.metadata) == (PATIENCE, first.description, first.metadata)


def test_it_outlasts_a_limit_by_the_minute() -> None:
    """An endpoint that refuses everything for a minute is asked again until it answers."""
    clock = QuickClock()
    retries = registry.load("models", "chat").node_type.model_fields["retries"].default
    tries = Tries(Limits(4, retries), clock)
    until = clock.now() + 60

    def answer() -> str:
        if clock.now() < until:
            raise TryError("busy", is_temporary=True, is_refusal=True)
        return "yes"

    assert tries.make(answer) == "yes"
    assert clock.now() <= until + PATIENCE
