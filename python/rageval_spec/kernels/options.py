"""How rankings are read: one object for every door, from the command line to the drop-ins."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Literal, TypeAlias, get_args

from rageval_spec.errors import UsageError
from rageval_spec.kernels.arguments import check_between, check_count

TieRule: TypeAlias = Literal["trec_eval", "trec_eval_2023", "float64", "input", "ranx"]
"""How documents with equal scores are ordered.

- `trec_eval`: as trec_eval's tag v9.0.8 (commit d95ca64, 2020): scores as float32, ties by doc_id descending, bytewise.
- `trec_eval_2023`: as its tag trec_eval-9.0.8 (2023), which reads scores as float64; ties as above. The program that
  calls itself 9.0.8 is this one; the other calls itself 9.0.7.
- `float64`: another name of the same order.
- `input`: scores as float64, ties in the order of the run's rows.
- `ranx`: scores as float64, ties as the library ranx orders them.
"""
Missing: TypeAlias = Literal["zero", "skip"]
"""What becomes of a query of the qrels that is not in the run."""
Duplicates: TypeAlias = Literal["error", "first"]
"""What becomes of a document that a query has twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingOptions:
    """How rankings are read. The defaults are trec_eval's; its own options are in brackets.

    Attributes:
        ties: how documents with equal scores are ordered.
        depth: look at the first so many documents of a ranking only; at all of them where None (`-M`).
        judged_only: remove unjudged documents first (`-J`), after `depth`.
        drop_self: remove a document whose id is the query's.
        relevance_level: the lowest relevance that counts as relevant, at least 1 (`-l`).
        missing: a query of the qrels that is not in the run is left out ("skip"), or counts as an empty ranking
            ("zero", `-c`).
        duplicates: a document that a query has twice is an error, or its first row counts.
        tie_range: also compute the lowest and highest value over all orders of tied documents.

    Raises:
        UsageError: a word that is not one of those above, or a number that is not whole.
        ValueError: a number out of range.
    """

    ties: TieRule = "trec_eval"
    depth: int | None = None
    judged_only: bool = False
    drop_self: bool = False
    relevance_level: int = 1
    missing: Missing = "skip"
    duplicates: Duplicates = "error"
    tie_range: bool = False

    def __post_init__(self) -> None:
        """Check each setting."""
        check_choice("ties", self.ties, TieRule)
        check_choice("missing", self.missing, Missing)
        check_choice("duplicates", self.duplicates, Duplicates)
        if self.depth is not None:
            check_count("depth", check_whole("depth", self.depth))
        check_between("relevance_level", check_whole("relevance_level", self.relevance_level), 1, 2**31 - 1)


def check_choice(setting: str, value: object, choices: object) -> None:
    """Refuse a word that a `Literal` does not list."""
    if value not in get_args(choices):
        raise UsageError(f"{setting} {value!r} is not known; write one of {', '.join(get_args(choices))}")


def check_whole(setting: str, value: object) -> int:
    """Return a whole number, of numpy's types too, as Python's own."""
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{setting} {value!r} is not a whole number") from None
