"""numpy, polars and what is used of rich, imported when something of them is first used, and the types of arrays.

They take from a twentieth to a fifth of a second to import, and many commands need none: `validate`, `plan`, `--help`.
"""

from __future__ import annotations

import os
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = [
    "Bools", "Console", "Floats", "Ints", "JustifyMethod", "Padding", "RenderableType", "Rule", "Table", "Text", "box",
    "cell_len", "chop_cells", "np", "pl",
]  # fmt: skip

_ARENAS = f"narenas:{os.cpu_count() or 1}"
os.environ.setdefault("_RJEM_MALLOC_CONF", f"dirty_decay_ms:200,muzzy_decay_ms:0,{_ARENAS}")
"""Polars' allocator has an arena for each core, not four, and gives memory back soon: phases of an evaluation are
short, and each needs other sizes. An evaluation of 100,000 answers needs 100 MB less, and no more time."""

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray
    from rich import box
    from rich.cells import cell_len, chop_cells
    from rich.console import Console, JustifyMethod, RenderableType
    from rich.padding import Padding
    from rich.rule import Rule
    from rich.table import Table
    from rich.text import Text

    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
else:

    class _Library:
        """A library, or one class or function of it."""

        def __init__(self, module: str, name: str = "") -> None:
            self._place = module, name

        @cached_property
        def _found(self) -> Any:
            module, name = self._place
            return getattr(import_module(module), name) if name else import_module(module)

        def __getattr__(self, attribute: str) -> Any:
            """Import the library for what is asked of it, and keep that, so that it is as fast as a module."""
            found = self.__dict__[attribute] = getattr(self._found, attribute)
            return found

        def __call__(self, *values: Any, **options: Any) -> Any:
            return self._found(*values, **options)

        def __instancecheck__(self, one: object) -> bool:
            return isinstance(one, self._found)

    np, pl, box = _Library("numpy"), _Library("polars"), _Library("rich.box")
    cell_len, chop_cells = _Library("rich.cells", "cell_len"), _Library("rich.cells", "chop_cells")
    Console, Padding = _Library("rich.console", "Console"), _Library("rich.padding", "Padding")
    Rule, Table, Text = _Library("rich.rule", "Rule"), _Library("rich.table", "Table"), _Library("rich.text", "Text")
    Bools = Floats = Ints = JustifyMethod = RenderableType = Any
