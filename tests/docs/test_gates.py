"""The examples in docs/gates.md are specs that load, and the one that stops early does."""

from __future__ import annotations

import re
from pathlib import Path

from rageval_spec.runner import Options, run

GATES = (Path(__file__).parents[2] / "docs" / "gates.md").read_text(encoding="utf-8")
REST = """
version: 1
datasets: {golden: {use: jsonl, path: golden.jsonl}}
systems: {bot: {use: file, path: golden.jsonl}}
metrics: [exact_match]
history: none
"""


def test_the_example_of_stopping_asks_a_part_of_the_questions(tmp_path: Path) -> None:
    section = GATES.partition("\n## Stop when decided\n")[2].partition("\n## ")[0]
    example = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    told = re.search(r"golden: asked \d+ of (500 questions, in random order: every gate was decided)", section)
    assert example is not None and told is not None
    rows = (
        f'{{"query_id": "q{row}", "question": "?", "reference": "yes", "answer": "{"yes" if row % 4 else "no"}"}}\n'
        for row in range(500)
    )
    (tmp_path / "golden.jsonl").write_text("".join(rows))
    (tmp_path / "spec.yaml").write_text(REST + example[1])
    evaluation = run(tmp_path / "spec.yaml", Options(output=tmp_path / "out")).evaluation
    assert evaluation.verdict == "pass"
    note = evaluation.notes[0].message
    assert note.endswith(told[1])
    assert 50 <= int(note.split()[1]) <= 250
