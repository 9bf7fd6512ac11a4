"""The package itself: what it gives by its own name, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import rageval_spec

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1}}
RUN = {"q1": {"d2": 1.5, "d1": 1.2, "d4": 0.3}}


def test_every_public_name_can_be_had() -> None:
    assert dir(rageval_spec) == sorted(rageval_spec.__all__)
    for name in rageval_spec.__all__:
        assert getattr(rageval_spec, name) is not None
    assert rageval_spec.evaluate(QRELS, RUN, ["rr"]).means == {"rr": 0.5}


def test_the_version_is_that_of_the_distribution() -> None:
    assert rageval_spec.__version__ == version("rageval-spec")


def test_a_name_that_it_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'rageval_spec' has no attribute 'evalute'$"):
        _ = rageval_spec.evalute


def test_importing_it_imports_nothing_else() -> None:
    script = "import sys; before = set(sys.modules); import rageval_spec; print(sorted(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "rageval_spec" in found.stdout
    for name in ("polars", "numpy", "pydantic", "yaml", "click", "rageval_spec._core", "rageval_spec.kernels"):
        assert f"'{name}'" not in found.stdout


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys; before = {*sys.modules}; import rageval_spec; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"rageval_spec", "__future__"}
