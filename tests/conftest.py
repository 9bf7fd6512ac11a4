from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

SHARED_DATA = "RAGEVAL_SHARED_DATA"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real collections: where RAGEVAL_SHARED_DATA says, else `shared/data` beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get(SHARED_DATA, beside))
    if not folder.is_dir():
        pytest.skip(f"needs real collections, and there is no folder {folder}; set {SHARED_DATA}")
    return folder
