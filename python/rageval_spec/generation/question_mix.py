"""The mix of questions that a test set should have, and the chunks that each question is made from.

The mix also gives the order in which questions of each kind are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import isclose, prod
from random import Random
from typing import Literal, NamedTuple

from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.generation.chunks import Chunk, count_words, take_turns
from rageval_spec.wording import list_names

Kind = Literal["single", "multi_hop", "unanswerable"]
"""What answers a question: one chunk, several chunks together, or nothing in the corpus."""
PARTS = ("type", "difficulty", "style", "kind")
"""The fields of a slot that have shares."""
_WHOLE = 100


class Slot(NamedTuple):
    """A question to be written: its place in the test set, from 0, and what it should be like."""

    number: int
    type: str
    difficulty: str
    style: str
    kind: Kind


@dataclass(frozen=True)
class Mix:
    """The wanted shares of questions, in percent; those of each part sum to 100."""

    types: Mapping[str, float]
    difficulties: Mapping[str, float]
    styles: Mapping[str, float]
    multi_hop: float = 0
    unanswerable: float = 0

    @property
    def shares(self) -> Mapping[str, Mapping[str, float]]:
        single = _WHOLE - self.multi_hop - self.unanswerable
        kinds = {"single": single, "multi_hop": self.multi_hop, "unanswerable": self.unanswerable}
        every = zip(PARTS, (self.types, self.difficulties, self.styles, kinds), strict=True)
        return {part: {name: share for name, share in shares.items() if share > 0} for part, shares in every}

    def list_slots(self, count: int, seed: int) -> list[Slot]:
        """`count` questions in this mix. A larger count adds questions and changes none of the others.

        At any length, each share is met as closely as whole numbers allow, give or take one question, and so are the
        shares of combinations: hard questions are not all of one type.
        """
        return [slot for slot, _ in zip(self._walk(seed), range(count), strict=False)]

    def _walk(self, seed: int) -> Iterator[Slot]:
        shares = self.shares
        cells = list(product(*(shares[part] for part in PARTS)))
        Random(seed).shuffle(cells)
        wanted = [prod(shares[part][name] / _WHOLE for part, name in zip(PARTS, cell, strict=True)) for cell in cells]
        made = [Counter[str]() for _ in PARTS]
        joint = [0] * len(cells)
        number = 0
        while True:
            behind = [
                {name: share / _WHOLE * (number + 1) - made[place][name] for name, share in shares[part].items()}
                for place, part in enumerate(PARTS)
            ]
            best = max(
                range(len(cells)),
                key=lambda index: (
                    sum(lack[name] for lack, name in zip(behind, cells[index], strict=True))
                    + wanted[index] * (number + 1)
                    - joint[index]
                ),
            )
            joint[best] += 1
            for place, name in enumerate(cells[best]):
                made[place][name] += 1
            yield Slot(number, *cells[best])  # type: ignore[arg-type]
            number += 1


def read_shares(text: str, known: Mapping[str, object], where: str) -> dict[str, float]:
    """The shares in a text such as `factual:40,analytical:60`; equal ones where no name has a number."""
    parts = [part.strip().partition(":") for part in text.split(",") if part.strip()]
    if not parts:
        raise UsageError(f"{where}: no shares are given; write {_give_example(known)}")
    names = [name.strip() for name, _, _ in parts]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{where}: '{twice}' is given twice")
    numbers = [number.strip().removesuffix("%") for _, _, number in parts]
    if not any(numbers):
        return check_shares(dict.fromkeys(names, _WHOLE / len(names)), known, where)
    shares = {name: _read_number(name, number, known, where) for name, number in zip(names, numbers, strict=True)}
    return check_shares(shares, known, where)


def check_shares(shares: Mapping[str, float], known: Mapping[str, object], where: str) -> dict[str, float]:
    """The shares in percent; raises `UsageError` unless each has a known name, none is negative and they sum to 100."""
    for name, share in shares.items():
        if name not in known:
            hint = suggest(name, list(known)) or f"there are {list_names(list(known))}"
            raise UsageError(f"{where}: unknown name '{name}'; {hint}")
        if not 0 <= share <= _WHOLE:
            raise UsageError(f"{where}: the share of '{name}' is {share:g}, and must be from 0 to 100")
    total = sum(shares.values())
    if not isclose(total, _WHOLE, abs_tol=0.5):
        scaled = _scale(shares) if total else ""
        advice = f"; in the same proportions: {scaled}" if scaled else f"; write {_give_example(known)}"
        raise UsageError(f"{where}: the shares sum to {total:g}, and must sum to 100{advice}")
    return {name: share * _WHOLE / total for name, share in shares.items()}


def read_percentage(text: str, where: str) -> float:
    """The number in a text such as `25%` or `25`; raises `UsageError` if it is not from 0 to 100."""
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number <= _WHOLE:
        raise UsageError(
            f"{where}: '{text}' is not a share of the questions; write a number from 0 to 100, such as 25%"
        )
    return number


def _read_number(name: str, number: str, known: Mapping[str, object], where: str) -> float:
    try:
        return float(number)
    except ValueError:
        pass
    if not number:
        raise UsageError(f"{where}: '{name}' has no share, but others have; write {_give_example(known)}")
    raise UsageError(
        f"{where}: the share of '{name}' is '{number}', which is not a number; write {_give_example(known)}"
    )


def _give_example(known: Mapping[str, object]) -> str:
    names = list(known)[:2]
    return ",".join(f"{name}:{_WHOLE // len(names)}" for name in names)


def _scale(shares: Mapping[str, float]) -> str:
    """The shares in the same proportions, as whole numbers that sum to 100."""
    total = sum(shares.values())
    exact = {name: share * _WHOLE / total for name, share in shares.items()}
    whole = {name: int(share) for name, share in exact.items()}
    for name in sorted(exact, key=lambda name: whole[name] - exact[name])[: _WHOLE - sum(whole.values())]:
        whole[name] += 1
    return ",".join(f"{name}:{share}" for name, share in whole.items())


FEWEST_WORDS = 15
"""A chunk with fewer words is only asked about if all are as short."""

Places = tuple[int, ...]
"""The positions of one or several chunks."""


class Picker:
    """Deals chunks to questions: every document has its turn before one has a second, then every chunk."""

    def __init__(self, chunks: Sequence[Chunk], groups: Sequence[Places], per_chunk: int, seed: int) -> None:
        """`groups` are positions of chunks that belong together, best first. The same seed deals the same chunks."""
        self.per_chunk = per_chunk
        long = [place for place, chunk in enumerate(chunks) if count_words(chunk.text) >= FEWEST_WORDS]
        every = long or range(len(chunks))
        self._order = [(place,) for place in take_turns(every, [chunk.doc_id for chunk in chunks], Random(seed))]
        self._groups = list(groups)
        self._used: Counter[int] = Counter()
        self._tried: set[tuple[Places, str, str]] = set()

    @property
    def can_group(self) -> bool:
        return bool(self._groups)

    def pick(self, slots: Sequence[Slot]) -> list[Places | None]:
        """The chunks for each slot, no chunk twice; None where none is left that was not tried for such a question."""
        taken: set[int] = set()
        return [self._pick(slot, taken) for slot in slots]

    def count_use(self, places: Places) -> None:
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
