"""A spec with two systems and people's labels of their answers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import yaml

from rageval_spec.data.labels import digest_answer

QUESTIONS = 40
WORDS = ["red", "green", "blue", "fast", "slow", "big", "small", "hot", "cold", "new", "old", "wet", "dry"]


def answer(system: str, place: int) -> str:
    """A text of which some words are in the reference."""
    drawn = random.Random(f"{system}{place}")
    return " ".join(drawn.sample(WORDS, 5))


def reference(place: int) -> str:
    return " ".join(random.Random(place).sample(WORDS, 5))


def write(
    folder: Path,
    *,
    labelled: int = 20,
    value: Any = None,
    columns: str = "query_id,system,metric,value,answer_digest",
    systems: tuple[str, ...] = ("a", "b"),
    criterion: str = "token_f1",
    **sections: Any,
) -> Path:
    """A spec with two systems and labels of their first answers, half of which are good."""
    questions = [
        {"id": f"q{n}", "question": f"What {n}?", "reference": reference(n), "part": "even" if n % 2 == 0 else "odd"}
        for n in range(QUESTIONS)
    ]
    (folder / "golden.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in questions))
    lines = [columns]
    for system in ("a", "b"):
        texts = [(f"q{n}", answer(system, n)) for n in range(QUESTIONS)]
        rows = "".join(f"{json.dumps({'id': name, 'answer': text})}\n" for name, text in texts)
        (folder / f"{system}.jsonl").write_text(rows)
        for place, (name, text) in enumerate(texts[:labelled]):
            parts = {
                "query_id": name, "system": system, "metric": criterion, "answer_digest": digest_answer(text),
                "value": ("yes" if (place + (system == "b")) % 3 else "no") if value is None else value, "claim": "0",
            }  # fmt: skip
            lines.append(",".join(parts[column] for column in columns.split(",")))
    (folder / "labels.csv").write_text("\n".join(lines))
    content = {
        "version": 1,
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {name: {"use": "file", "path": f"{name}.jsonl", "holds": "answers"} for name in systems},
        "labels": {"people": {"use": "csv", "path": "labels.csv"}},
        "metrics": [{"use": "token_f1", "labels": "people"}],
        "statistics": {"resamples": 200, "permutations": 200},
        **sections,
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path
