"""The package `kernels` itself: the names that it offers, and that it loads only what is used."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import pytest

from rageval_spec import kernels


def test_each_name_is_offered_to_type_checkers_and_at_run_time() -> None:
    tree = ast.parse(inspect.getsource(kernels))
    imported = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rageval_spec.kernels.")
        for alias in node.names
    }
    shown = {(f"rageval_spec.kernels.{module}", name) for name, module in kernels._MODULES.items()}
    typed_only = {("rageval_spec.kernels.inputs", name) for name in ("Numbers",)}
    assert imported == shown | typed_only
    for name in dir(kernels):
        assert getattr(kernels, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'rageval_spec\.kernels' has no attribute 'nothing'"):
        kernels.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_name_loads_no_other_kernels() -> None:
    code = (
        "import sys; from rageval_spec import kernels; kernels.parse_measure('ndcg@10');"
        "print(sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('rageval_spec.kernels.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['inputs', 'ranking_measures']"
