"""Finds and imports the module of a function that a spec names."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any


def find_beside(folder: Path, module: str) -> Path | None:
    """The file of a module in a folder; None if there is none."""
    path = folder.joinpath(*module.split("."))
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def is_installed(module: str) -> bool:
    """Whether a module can be imported from outside the spec's folder. Imports nothing."""
    return module.partition(".")[0] in sys.builtin_module_names or _find_spec(module) is not None


def find_installed(module: str) -> Path | None:
    """The file of an installed module; None if it has no file, like built-in modules. Imports nothing."""
    spec = _find_spec(module)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin is not None else None


def _find_spec(module: str) -> Any:
    """Where a module would be imported from. Does not import its parent packages."""
    places: Sequence[str] | None = None
    spec = None
    name = ""
    for step in module.split("."):
        name = f"{name}.{step}" if name else step
        try:
            spec = importlib.util.find_spec(name) if places is None else PathFinder.find_spec(name, places)
        except (ImportError, ValueError):
            return None
        if spec is None:
            return None
        places = list(spec.submodule_search_locations or ())
    return spec


def import_module(folder: Path, name: str) -> ModuleType:
    """Import the module next to the spec, else the installed one. The folder stays on `sys.path`, as for a script."""
    beside = find_beside(folder, name)
    if beside is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    if beside is None or Path(module.__file__ or "").resolve() == beside.resolve():
        return module
    # Another module with that name was imported earlier, such as one next to another spec.
    alias = f"{name.replace('.', '_')}_{abs(hash(beside))}"
    spec = importlib.util.spec_from_file_location(alias, beside)
    assert spec is not None and spec.loader is not None, "a file ending in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module
    spec.loader.exec_module(module)
    return module
