"""`RankingOptions`: how rankings are read. The command line, specs, `evaluate` and the drop-ins all use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Literal, TypeAlias, get_args

from rageval_spec.errors import UsageError
from rageval_spec.kernels.arguments import check_between, check_count

TieRule: TypeAlias = Literal["trec_eval", "trec_eval_2023", "float64", "input", "ranx"]
"""How documents with equal scores are ordered.

- `trec_eval`: as in trec_eval's tag v9.0.8 (commit d95ca64, 2020), which prints its version as 9.0.7: scores as
  float32, ties by doc_id descending, bytewise.
- `trec_eval_2023`: as in trec_eval's tag trec_eval-9.0.8 (2023), which prints its version as 9.0.8: scores as float64,
  ties as above.
- `float64`: another name for `trec_eval_2023`.
- `input`: scores as float64, ties in the order of the run's rows.
- `ranx`: scores as float64, ties as the library ranx orders them.
"""
Missing: TypeAlias = Literal["zero", "skip"]
"""How a query of the qrels that is not in the run is treated: as an empty ranking ("zero"), or excluded ("skip")."""
Duplicates: TypeAlias = Literal["error", "first"]
"""How a document that a query has twice is treated: as an error, or only its first row counts ("first")."""

# Plain tuples: a `Literal` takes as long to hash as a whole ranking may take to check, and options are made for each.
_TIE_RULES: tuple[str, ...] = get_args(TieRule)
_MISSING: tuple[str, ...] = get_args(Missing)
_DUPLICATES: tuple[str, ...] = get_args(Duplicates)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingOptions:
    """How rankings are read. The defaults are those of trec_eval, whose own options are in brackets.

    Attributes:
        ties: how documents with equal scores are ordered.
        depth: use only the first `depth` documents of a ranking; None for all (`-M`).
        judged_only: remove unjudged documents, after the cut at `depth` (`-J`).
        drop_self: remove a document whose id is the query's.
        relevance_level: the lowest relevance that counts as relevant, at least 1 (`-l`).
        missing: a query of the qrels that is not in the run is excluded ("skip"), or counts as an empty ranking
            ("zero", `-c`).
        duplicates: a document that a query has twice is an error ("error"), or only its first row counts ("first").
        tie_range: also compute the lowest and the highest value over all orders of tied documents.

    Raises:
        UsageError: a word is not one of those above, or a number is not whole.
        ValueError: a number is out of range.
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
        """Check every setting, and raise as described above."""
        check_choice("ties", self.ties, _TIE_RULES)
        check_choice("missing", self.missing, _MISSING)
        check_choice("duplicates", self.duplicates, _DUPLICATES)
        if self.depth is not None:
            check_count("depth", check_whole("depth", self.depth))
        check_between("relevance_level", check_whole("relevance_level", self.relevance_level), 1, 2**31 - 1)


def check_choice(setting: str, value: object, words: Sequence[str]) -> None:
    """Raise `UsageError` if `value` is not one of the words."""
    if value not in words:
        raise UsageError(f"{setting} {value!r} is not known; write one of {', '.join(words)}")


def check_whole(setting: str, value: object) -> int:
    """Return a whole number, including one of numpy's types, as an `int`; otherwise raise `UsageError`."""
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{setting} {value!r} is not a whole number") from None
