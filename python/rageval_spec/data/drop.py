"""How far a number may fall: by an amount, or by a share of the baseline's number."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["low", "medium", "high"]
SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high")
"""How bad a drop is, from the least to the worst."""
_SHARE = re.compile(r"(\d{1,9}(?:\.\d+)?) ?%")


class Drop(NamedTuple):
    """The most that a number may fall; a rise where low values are better.

    Attributes:
        number: the amount, or the share as a fraction: 0.05 for `5%`.
        is_share: whether it is a share of the baseline's number.
    """

    number: float
    is_share: bool = False

    def resolve(self, base: float) -> float:
        """The amount, for a baseline of which the number is `base`."""
        return abs(base) * self.number if self.is_share else self.number

    def __str__(self) -> str:
        """As it is written in a spec: `0.02` or `5%`."""
        return f"{100 * self.number:.9g}%" if self.is_share else repr(self.number)


def read_drop(written: float | str) -> Drop:
    """The drop that a spec writes as a number or as a percentage: `0.02`, `5%`.

    Raises:
        ValueError: it is neither, or it is negative.
    """
    if isinstance(written, str):
        found = _SHARE.fullmatch(written)
        if found is None:
            raise ValueError(f"'{written}' is not a share such as 5%")
        return Drop(float(found[1]) / 100, is_share=True)
    if not 0 <= written < float("inf"):
        raise ValueError(f"{written} is not a finite number of 0 or more")
    return Drop(float(written))
