"""Files of questions and answers, as users have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROWS = [
    {"id": f"q{number}", "question": f"Who is {name}?", "reference": f"{name} is a king", "level": level}
    for number, (name, level) in enumerate((("Ada", "easy"), ("Bob", "hard"), ("Cid", "easy"), ("Dan", "hard")))
]
ANSWERS = [{**row, "answer": "a king", "contexts": [f"{row['question']} A king."]} for row in ROWS]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
