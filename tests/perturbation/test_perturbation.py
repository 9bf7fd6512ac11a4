"""The mode of the suite that moves the last bits of what models compute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.perturbation.sitecustomize import RELATIVE, perturb

FOLDER = Path(__file__).parent
PROGRAM = "import rageval_spec.inference.session as s; print(s.Session._compute.__qualname__)"


def test_noise_is_small_and_depends_on_the_number_and_the_seed_alone() -> None:
    values = np.array([[1.5, -2.25, 0.0], [1e-9, 3e7, 1.5]], np.float32)
    found = perturb(values, 1)
    np.testing.assert_allclose(found, values, rtol=2 * RELATIVE)
    assert (found != values).any()
    assert found[0, 0] == found[1, 2]
    assert found[0, 2] == 0
    assert np.array_equal(perturb(values[:, :1], 1), found[:, :1])
    assert not np.array_equal(perturb(values, 2), found)


def test_commands_that_tests_start_compute_the_same_numbers() -> None:
    for seed, name in (("1", "compute"), ("", "Session._compute")):
        environment = {**os.environ, "RAGEVAL_PERTURB": seed}
        environment["PYTHONPATH"] = os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])
        found = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        assert found.stdout.strip().endswith(name)
