"""Chunks that belong together by what they say, for questions that need several of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import log
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec import kernels
from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.generation.chunks import Chunk

NEAREST = 10
"""How many of a chunk's nearest neighbours by embedding are looked at."""
MOST_SHARERS = 20
"""A name that stands in more chunks than this, or in more than a tenth of them, does not connect two of them."""
_MOST_NAMES = 3
"""How many shared names count, so that two lists of the same names do not come before everything else."""
_SAME = 0.6
"""The share of common words from which on two chunks say the same."""
_TOO_NEAR = 0.97
"""The cosine from which on two chunks say the same."""
_COMPARED_AT_ONCE = 10_000
_WORD = re.compile(r"\w+")


class Group(NamedTuple):
    """Chunks about the same things.

    Attributes:
        chunks: the positions of the chunks, ascending.
        names: the rare names that all of them contain, the rarest first; empty if only their meaning is near.
        similarity: the lowest cosine between two of them; None without vectors.
    """

    chunks: tuple[int, ...]
    names: tuple[str, ...]
    similarity: float | None = None


class _Pair(NamedTuple):
    score: float
    names: tuple[str, ...]
    similarity: float | None


def find_groups(
    chunks: Sequence[Chunk], vectors: NDArray[np.float32] | None, count: int, *, size: int = 2
) -> list[Group]:
    """Up to `count` groups of chunks about the same things, the best connected first.

    Two chunks are connected if they share rare names, or if each is among the other's nearest neighbours in the space
    of embeddings. Chunks that stand side by side in a document are not, nor are two that say the same. No chunk is in
    two groups before every chunk with a connection is in one. The same chunks and vectors give the same groups.

    Args:
        chunks: the chunks, in the order of their documents.
        vectors: their embeddings, [chunks, dimensions]; None to use only names.
        count: the most groups.
        size: the number of chunks in a group.

    Raises:
        UsageError: `size` is below 2, or there are not as many vectors as chunks.
    """
    if size < 2:
        raise UsageError(f"a group has at least 2 chunks, not {size}")
    if vectors is not None and len(vectors) != len(chunks):
        raise UsageError(f"there are {len(chunks)} chunks, but {len(vectors)} vectors")
    pairs = _connect(chunks, vectors)
    order = sorted(pairs, key=lambda pair: (-pairs[pair].score, pair))
    around: dict[int, set[int]] = defaultdict(set)
    for first, second in order:
        around[first].add(second)
        around[second].add(first)
    groups: dict[tuple[int, ...], Group] = {}
    while len(groups) < count:
        used, before = set[int](), len(groups)
        for pair in order:
            if len(groups) == count or used.issuperset(pair) or not used.isdisjoint(pair):
                continue
            members = _grow(pair, size, around, pairs, used)
            if members is not None and members not in groups:
                groups[members] = _describe(members, pairs)
                used.update(members)
        if len(groups) == before:
            break
    return list(groups.values())


def find_names(text: str) -> list[str]:
    """The names in a text that can connect it with others: no numbers, no dates, no single letters."""
    found = (name.casefold() for name in kernels.names(text))
    return [name for name in found if len(name) > 2 and not any(letter.isdigit() for letter in name)]


def _connect(chunks: Sequence[Chunk], vectors: NDArray[np.float32] | None) -> dict[tuple[int, int], _Pair]:
    """All connected pairs of positions."""
    names = [frozenset(find_names(chunk.text)) for chunk in chunks]
    sharers = Counter(name for found in names for name in found)
    rare = {name for name, many in sharers.items() if 2 <= many <= max(2, min(MOST_SHARERS, len(chunks) // 10))}
    weights = {name: log(len(chunks) / sharers[name]) / max(1.0, log(len(chunks))) for name in rare}
    candidates = set(_share_names(names, rare))
    if vectors is not None:
        candidates |= set(_find_nearest(vectors))
    apart = sorted(pair for pair in candidates if not _stand_together(*(chunks[place] for place in pair)))
    words = {place: frozenset(_WORD.findall(chunks[place].text.casefold())) for pair in apart for place in pair}
    return {
        pair: _weigh(names[pair[0]] & names[pair[1]] & rare, weights, similarity)
        for pair, similarity in zip(apart, _compare(vectors, apart), strict=True)
        if (similarity or 0) < _TOO_NEAR and _overlap(words[pair[0]], words[pair[1]]) < _SAME
    }


def _weigh(shared: Iterable[str], weights: Mapping[str, float], similarity: float | None) -> _Pair:
    rarest = tuple(sorted(shared, key=lambda name: (-weights[name], name)))
    score = sum(weights[name] for name in rarest[:_MOST_NAMES]) + (similarity or 0)
    return _Pair(score, rarest, similarity)


def _share_names(names: Sequence[frozenset[str]], rare: set[str]) -> Iterator[tuple[int, int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, found in enumerate(names):
        for name in found & rare:
            places[name].append(place)
    for sharing in places.values():
        yield from combinations(sharing, 2)


def _find_nearest(vectors: NDArray[np.float32]) -> Iterator[tuple[int, int]]:
    """Pairs of which each is among the other's nearest neighbours."""
    if len(vectors) < 2:
        return
    rows = kernels.top_k(vectors, vectors, NEAREST + 1, metric="cosine").indices.tolist()
    nearest = [{row for row in found if row != place} for place, found in enumerate(rows)]
    for place, found in enumerate(nearest):
        yield from ((place, other) for other in found if place < other and place in nearest[other])


def _stand_together(first: Chunk, second: Chunk) -> bool:
    """Whether one follows the other in a document."""
    return first.doc_id == second.doc_id and abs(_number(first) - _number(second)) == 1


def _number(chunk: Chunk) -> int:
    """The place of a chunk in its document, as its id says."""
    number = chunk.chunk_id.rpartition("#")[2]
    return int(number) if number.isdecimal() else 0


def _compare(vectors: NDArray[np.float32] | None, pairs: Sequence[tuple[int, int]]) -> Iterator[float | None]:
    """The cosine of each pair; None without vectors."""
    if vectors is None:
        yield from (None for _ in pairs)
        return
    for start in range(0, len(pairs), _COMPARED_AT_ONCE):
        part = pairs[start : start + _COMPARED_AT_ONCE]
        first, second = (vectors[[pair[side] for pair in part]] for side in (0, 1))
        yield from kernels.cosine_rows(first, second).tolist()


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """The share of the shorter text's words that the longer one has too."""
    return len(first & second) / max(1, min(len(first), len(second)))


def _grow(
    pair: tuple[int, int],
    size: int,
    around: Mapping[int, set[int]],
    pairs: Mapping[tuple[int, int], _Pair],
    used: set[int],
) -> tuple[int, ...] | None:
    """The pair with further chunks that are connected with all of its members; None if there are too few."""
    members = list(pair)
    while len(members) < size:
        shared = set.intersection(*(around[member] for member in members)) - used
        if not shared:
            return None
        members.append(max(shared, key=lambda one: (sum(pairs[_sort(one, member)].score for member in members), -one)))
    return tuple(sorted(members))


def _sort(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)


def _describe(members: tuple[int, ...], pairs: Mapping[tuple[int, int], _Pair]) -> Group:
    inside = [pairs[pair] for pair in combinations(members, 2)]
    shared = [name for name in inside[0].names if all(name in pair.names for pair in inside)]
    cosines = [pair.similarity for pair in inside if pair.similarity is not None]
    return Group(members, tuple(shared), min(cosines) if cosines else None)
