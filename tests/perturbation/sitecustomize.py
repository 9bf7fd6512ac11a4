"""Moves the last bits of everything that ONNX Runtime computes, as another family of processors would.

Python imports a module of this name when it starts. With `RAGEVAL_PERTURB` set, `tests/conftest.py` runs this one and
puts its folder on `PYTHONPATH`, so that the commands which tests start compute the same numbers as the tests.

A number's noise depends on its bits and on `RAGEVAL_PERTURB`, which is the seed, and on nothing else: on one machine,
equal inputs still give equal bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

VARIABLE = "RAGEVAL_PERTURB"
PERTURBED = "rageval_spec.inference.session"
"""The module whose `Session` returns all that ONNX Runtime computes."""
RELATIVE = 1e-6
"""The largest noise, relative to the number."""


def perturb(values: Any, seed: int) -> Any:
    """float32 numbers of any shape with their noise; zeros, NaN and infinity stay as they are."""
    import numpy as np

    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    mixed = ((bits + np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    noise = (mixed.astype(np.float64) / 2**24 * 2 - 1) * RELATIVE
    return (values * (1 + noise)).astype(np.float32)


class _Perturbing(Loader):
    """Loads the module and wraps `Session._compute`."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        seed, exact = int(os.environ[VARIABLE]), module.Session._compute

        def compute(session: Any, *arguments: Any) -> list[Any]:
            return [perturb(output, seed) for output in exact(session, *arguments)]

        module.Session._compute = compute


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path, target) if name == PERTURBED else None
        if found is not None and found.loader is not None:
            found.loader = _Perturbing(found.loader)
        return found


if os.environ.get(VARIABLE):
    sys.meta_path.insert(0, _Finder())
