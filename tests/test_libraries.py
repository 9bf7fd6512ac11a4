from __future__ import annotations

import subprocess
import sys

import numpy
import polars
import pytest

from rageval_spec.libraries import np, pl


def test_a_library_is_imported_when_something_of_it_is_used() -> None:
    program = (
        "import sys\n"
        "from rageval_spec.libraries import np, pl\n"
        "print([name for name in ('numpy', 'polars') if name in sys.modules])\n"
        "np.ones(1)\n"
        "print([name for name in ('numpy', 'polars') if name in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n['numpy']\n"


def test_what_it_has_is_what_the_library_has() -> None:
    assert np.ndarray is numpy.ndarray
    assert np.random is numpy.random
    assert pl.DataFrame is polars.DataFrame


def test_what_the_library_lacks_is_an_error_of_the_library() -> None:
    with pytest.raises(AttributeError, match="module 'numpy' has no attribute 'ndaray'"):
        np.ndaray  # type: ignore[attr-defined]  # noqa: B018
