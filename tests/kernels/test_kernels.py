"""The package `kernels` itself: that its names cost no library that they do not need."""

import subprocess
import sys


def test_the_names_of_measures_load_neither_numpy_nor_polars() -> None:
    code = (
        "import sys; from rageval_spec import kernels; kernels.parse_measure('ndcg@10');"
        "print(sorted({'numpy', 'polars'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
