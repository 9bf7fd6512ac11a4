"""Chooses the chunks that each question is made from."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from random import Random
from typing import TYPE_CHECKING

from rageval_spec.generation.chunks import count_words

if TYPE_CHECKING:
    from rageval_spec.generation.chunks import Chunk
    from rageval_spec.generation.mixes import Slot

FEWEST_WORDS = 15
"""A chunk with fewer words is only asked about if all are as short."""

Places = tuple[int, ...]
"""The positions of one or several chunks."""


class Picker:
    """Deals chunks to questions: every document has its turn before one has a second, then every chunk.

    Attributes:
        per_chunk: how many questions are made from a chunk at most.
    """

    def __init__(self, chunks: Sequence[Chunk], groups: Sequence[Places], per_chunk: int, seed: int) -> None:
        """`groups` are positions of chunks that belong together, best first. The same seed deals the same chunks."""
        self.per_chunk = per_chunk
        self._order = [(place,) for place in _take_turns(chunks, seed)]
        self._groups = list(groups)
        self._used: Counter[int] = Counter()
        self._tried: set[tuple[Places, str, str]] = set()

    @property
    def can_group(self) -> bool:
        """Whether any chunks belong together."""
        return bool(self._groups)

    def pick(self, slots: Sequence[Slot]) -> list[Places | None]:
        """The chunks for each slot, no chunk twice; None where none is left that was not tried for such a question."""
        taken: set[int] = set()
        return [self._pick(slot, taken) for slot in slots]

    def count_use(self, places: Places) -> None:
        """Count a question that was written from these chunks."""
        self._used.update(places)

    def _pick(self, slot: Slot, taken: set[int]) -> Places | None:
        offered = self._groups if slot.kind == "multi_hop" else self._order
        free = [
            places
            for places in offered
            if taken.isdisjoint(places)
            and (places, slot.type, slot.kind) not in self._tried
            and max(self._used[place] for place in places) < self.per_chunk
        ]
        if not free:
            return None
        chosen = min(free, key=lambda places: max(self._used[place] for place in places))
        taken.update(chosen)
        self._tried.add((chosen, slot.type, slot.kind))
        return chosen


def _take_turns(chunks: Sequence[Chunk], seed: int) -> Iterator[int]:
    """The positions of chunks in random order, one of each document at a time."""
    long = [place for place, chunk in enumerate(chunks) if count_words(chunk.text) >= FEWEST_WORDS]
    documents: dict[str, list[int]] = defaultdict(list)
    for place in long or range(len(chunks)):
        documents[chunks[place].doc_id].append(place)
    random = Random(seed)
    turns = list(documents.values())
    random.shuffle(turns)
    for places in turns:
        random.shuffle(places)
    return (place for place in chain.from_iterable(zip_longest(*turns)) if place is not None)
