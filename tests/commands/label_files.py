"""Files of labels for the commands that read them."""

from __future__ import annotations

from pathlib import Path


def write_labels(folder: Path) -> str:
    path = folder / "labels.csv"
    rows = [f"q{number},faithfulness,{who},{number % 2}" for number in range(4) for who in ("ann", "bob")]
    path.write_text("\n".join(["nr,metric,who,value", *rows]))
    return str(path)
