from __future__ import annotations

import gc
import os
import runpy
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.browser import start_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# CI tries the same examples each time, so that its result does not depend on luck; everybody else explores.
settings.register_profile("untimed", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("untimed")

# Without it, texts would be as wide as the terminal of whoever runs the tests. A pipe is this wide.
os.environ.setdefault("COLUMNS", "100")

# Must come before anything that runs a model is imported; see CONTRIBUTING.md.
if os.environ.get("RAGEVAL_PERTURB"):
    folder = Path(__file__).parent / "perturbation"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    runpy.run_path(str(folder / "sitecustomize.py"))

SHARED_DATA = "RAGEVAL_SHARED_DATA"
TREC_EVAL_REFERENCE = "RAGEVAL_TREC_EVAL_REFERENCE"


def pytest_xdist_auto_num_workers() -> int:
    """Half as many workers again as processors: a worker spends a third of its time waiting for servers and kills."""
    return (os.cpu_count() or 1) * 3 // 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The garbage collector would look through hundreds of thousands of tests and modules again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real collections: `$RAGEVAL_SHARED_DATA`, or `shared/data` next to the repository."""
    return folder_beside(SHARED_DATA, "data", "real collections")


@pytest.fixture(scope="session")
def trec_eval_reference() -> Path:
    """The folder with real runs and the output of trec_eval for them: `runs`, `qrels`, `expected`."""
    return folder_beside(TREC_EVAL_REFERENCE, "bench/trec_eval_reference", "runs that trec_eval has evaluated")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for the tests of one file; they are skipped where there is none."""
    with start_browser() as started:
        yield started


def folder_beside(variable: str, place: str, needs: str) -> Path:
    """The folder that the variable names, or else `shared/<place>` next to the repository; skips the test if absent."""
    beside = Path(__file__).resolve().parents[2] / "shared" / place
    folder = Path(os.environ.get(variable, beside))
    if not folder.is_dir():
        pytest.skip(f"needs {needs}, and there is no folder {folder}; set {variable}")
    return folder


# A shell starts a background job with SIGINT ignored, and every process that the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
