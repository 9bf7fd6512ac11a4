"""Golden files: the expected bytes of reports.

`UPDATE_GOLDEN=1 pytest tests/reports` rewrites them; read the diff before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(__file__).parent.parent / "golden" / "reports"


def assert_golden(name: str, content: bytes) -> None:
    path = _FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(content)
    assert content.decode() == path.read_bytes().decode()
