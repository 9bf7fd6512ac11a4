"""What takes long to import or to make, made when it is first used, and the types of arrays.

numpy, polars and rich take from a twentieth to a fifth of a second to import, and many commands need none: `validate`,
`plan`, `--help`. A regular expression takes up to a millisecond.
"""

from __future__ import annotations

import os
import re
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = [
    "Bools", "Console", "Floats", "Ints", "JustifyMethod", "Padding", "RenderableType", "Rule", "Table", "Text", "box",
    "cell_len", "chop_cells", "compile_later", "np", "pl",
]  # fmt: skip

_ARENAS = f"narenas:{os.cpu_count() or 1}"
os.environ.setdefault("_RJEM_MALLOC_CONF", f"dirty_decay_ms:200,muzzy_decay_ms:0,{_ARENAS}")
"""Polars' allocator has an arena for each core, not four, and gives memory back soon: phases of an evaluation are
short, and each needs other sizes. An evaluation of 100,000 answers needs 100 MB less, and no more time."""

if TYPE_CHECKING:
    from collections.abc import Callable
    from re import compile as compile_later

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

    class _Later:
        """What `make` returns, made for the first attribute, call or check of a type."""

        def __init__(self, make: Callable[[], Any]) -> None:
            self._make = make

        @cached_property
        def _made(self) -> Any:
            return self._make()

        def __getattr__(self, attribute: str) -> Any:
            """Make it for what is asked of it, and keep that, so that it is as fast as the thing itself."""
            found = self.__dict__[attribute] = getattr(self._made, attribute)
            return found

        def __call__(self, *values: Any, **options: Any) -> Any:
            return self._made(*values, **options)

        def __instancecheck__(self, one: object) -> bool:
            return isinstance(one, self._made)

    def _import_later(module: str, name: str = "") -> _Later:
        """A library, or one class or function of it."""
        return _Later(lambda: getattr(import_module(module), name) if name else import_module(module))

    def compile_later(pattern: str, flags: int = 0) -> _Later:
        """The regular expression: a command needs few of the hundreds that its modules define."""
        return _Later(lambda: re.compile(pattern, flags))

    np, pl, box = _import_later("numpy"), _import_later("polars"), _import_later("rich.box")
    cell_len, chop_cells = _import_later("rich.cells", "cell_len"), _import_later("rich.cells", "chop_cells")
    Console, Padding = _import_later("rich.console", "Console"), _import_later("rich.padding", "Padding")
    Rule, Table = _import_later("rich.rule", "Rule"), _import_later("rich.table", "Table")
    Text = _import_later("rich.text", "Text")
    Bools = Floats = Ints = JustifyMethod = RenderableType = Any
