"""numpy and polars, imported when something of them is first used, and the types of arrays.

Each takes a tenth of a second or more to import, and many commands need neither: `validate`, `plan` and `--help`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = ["Bools", "Floats", "Ints", "np", "pl"]

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
else:

    class _Library:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            """Import the library for what is asked of it, and keep that, so that it is as fast as a module."""
            found = self.__dict__[attribute] = getattr(import_module(self._name), attribute)
            return found

    np, pl = _Library("numpy"), _Library("polars")
    Bools = Floats = Ints = Any
