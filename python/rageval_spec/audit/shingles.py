"""Finds texts that share most of their character sequences, without comparing every text with every other one.

MinHash (Broder, 1997): of each of `_HASHES` hash functions, a text keeps the smallest hash of its shingles, which are
the sequences of `_SIZE` characters. Two texts keep the same one with a probability that is the share of shingles that
they have in common (Jaccard). Texts that agree on a whole band of hashes are candidates, and candidates are compared
exactly. A pair with a share of 0.7 is a candidate with a probability of 0.988, and one with 0.8 with 0.9998.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SIZE = 4
_BANDS, _ROWS = 16, 4
_HASHES = _BANDS * _ROWS
_BLOCK = 20_000
"""How many texts are hashed at once."""
_CROWD = 20
"""In a larger group of candidates, each text is compared with that many others only: those most like it by their other
hashes. A template that thousands of questions share would make the comparison quadratic."""


class Similar(NamedTuple):
    """Two texts by their numbers, the later one first, and the share of shingles that they have in common."""

    later: int
    earlier: int
    share: float


def find_similar(texts: Sequence[str], least: float, groups: Sequence[Hashable] | None = None) -> Iterator[Similar]:
    """Pairs of texts that share at least this part of their shingles, each pair once. Equal texts are pairs too.

    Args:
        texts: the texts.
        least: the least part that they share.
        groups: only texts of the same group are compared; None to compare all of them.
    """
    sets: dict[int, frozenset[str]] = {}
    for later, earlier in sorted(_find_candidates(texts, groups)):
        for number in (later, earlier):
            if number not in sets:
                sets[number] = list_shingles(texts[number])
        share = compare(sets[later], sets[earlier])
        if share >= least:
            yield Similar(later, earlier, share)


def list_shingles(text: str) -> frozenset[str]:
    """The sequences of characters of a text; a short text is one itself."""
    padded = f" {text} "
    return frozenset(padded[at : at + _SIZE] for at in range(max(1, len(padded) - _SIZE + 1)))


def compare(first: frozenset[str], second: frozenset[str]) -> float:
    """The share of shingles that two texts have in common (Jaccard)."""
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared)


def _find_candidates(texts: Sequence[str], groups: Sequence[Hashable] | None = None) -> set[tuple[int, int]]:
    import numpy as np

    if len(texts) < 2:
        return set()
    signatures = np.concatenate(
        [_sign(texts[start : start + _BLOCK]) for start in range(0, len(texts), _BLOCK)]
    )  # fmt: skip
    numbered: dict[Hashable, int] = {}
    own = np.array([numbered.setdefault(group, len(numbered)) for group in groups or [None] * len(texts)], np.uint32)
    pairs: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        part = np.column_stack([own, signatures[:, band * _ROWS : (band + 1) * _ROWS]])
        keys = part.view(np.dtype((np.void, part.dtype.itemsize * part.shape[1]))).ravel()
        order = np.argsort(keys, kind="stable")
        ends = np.flatnonzero(np.r_[keys[order][1:] != keys[order][:-1], True]) + 1
        for group in np.split(order, ends[:-1]):
            if len(group) > 1:
                pairs.update(_pair(group, signatures))
    return pairs


def _pair(group: NDArray[np.int64], signatures: NDArray[np.uint32]) -> Iterator[tuple[int, int]]:
    """The pairs of a group, the later text first; in a crowd, those of texts that are neighbours by their hashes."""
    if len(group) > _CROWD:
        group = group[sorted(range(len(group)), key=lambda at: signatures[group[at]].tobytes())]
    members = [int(one) for one in group]
    for at, one in enumerate(members):
        for other in members[at + 1 : at + _CROWD]:
            yield max(one, other), min(one, other)


def _sign(texts: Sequence[str]) -> NDArray[np.uint32]:
    """The smallest hash of each text's shingles by each hash function: shape (texts, _HASHES)."""
    import numpy as np

    padded = [f" {text} ".ljust(_SIZE) for text in texts]
    points = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    lengths = np.array([len(text) for text in padded])
    starts = np.r_[0, np.cumsum(lengths)[:-1]]
    hashes = np.zeros(len(points), dtype=np.uint64)
    for at in range(_SIZE):
        hashes[: len(points) - at] += points[at:] * np.uint64(_FACTORS[at])
    hashes = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(32)
    inside = np.ones(len(points), dtype=bool)
    for back in range(1, _SIZE):
        inside[starts + lengths - back] = False
    kept = np.cumsum(lengths - _SIZE + 1)
    own = hashes[inside]
    signs = np.empty((len(texts), _HASHES), dtype=np.uint32)
    for number, (factor, shift) in enumerate(_list_functions()):
        mixed = ((own * factor + shift) >> np.uint64(32)).astype(np.uint32)
        signs[:, number] = np.minimum.reduceat(mixed, np.r_[0, kept[:-1]])
    return signs


_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)


def _list_functions() -> Iterator[tuple[np.uint64, np.uint64]]:
    """Odd factors and shifts, the same in every process."""
    import numpy as np

    drawn = np.random.default_rng(20240229).integers(0, 2**63, size=(_HASHES, 2), dtype=np.uint64)
    for factor, shift in drawn:
        yield factor | np.uint64(1), shift
