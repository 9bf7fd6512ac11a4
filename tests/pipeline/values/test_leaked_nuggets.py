"""Systems that were given the nuggets, as a user runs them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.samples import Sample
from rageval_spec.data.traces import Document, Step
from rageval_spec.pipeline.values.answer_values import leak_notes
from tests.command_line import invoke

FACTS = ["the gate has two wings", "Pumps fill the wings with water.", "ships are told six hours before", "two wings"]
LEAK = "Mention that the GATE has two\n wings. Also, pumps fill the wings with water"


def make(query_id: str = "q1", nuggets: Any = FACTS, **parts: Any) -> Sample:
    return Sample(query_id, "?", columns={"nuggets": nuggets}, **parts)


def count(*samples: Sample, prompt: str | None = "") -> int:
    notes = leak_notes(samples, prompt)
    return sum(note.count or 0 for note in notes)


@pytest.mark.parametrize(
    ("given", "leaked"),
    [
        ({"contexts": (LEAK,)}, 1),  # two of three that have four words
        ({"contexts": ("x", LEAK), "context_ids": ("a", "b")}, 1),
        ({"contexts": tuple(FACTS)}, 0),  # one in each is what passages of a corpus have
        ({"contexts": (FACTS[0],)}, 0),
        ({"contexts": ("two wings, the gates have two",)}, 0),
        ({"contexts": None}, 0),
        ({"nuggets": FACTS[:1], "contexts": (FACTS[0],)}, 0),  # one nugget says nothing
        ({"nuggets": [{"importance": "vital"}], "contexts": (LEAK,)}, 0),  # told where it is judged
        ({"nuggets": None, "contexts": (LEAK,)}, 0),
        ({"steps": (Step("retrieval", documents=(Document(LEAK), Document())),)}, 1),
        ({"steps": (Step("model", input=LEAK),)}, 1),
        ({"steps": (Step("model", input="?", output=LEAK), Step("model", input=LEAK))}, 0),  # its own answer
    ],
)
def test_one_text_with_half_of_the_nuggets_is_a_leak(given: dict[str, Any], leaked: int) -> None:
    assert count(make(**given)) == leaked


def test_a_passage_may_have_the_nuggets_that_were_made_from_it() -> None:
    nuggets = [{"text": text, "documents": ["d7"]} for text in FACTS]
    assert count(make(nuggets=nuggets, contexts=(LEAK,), context_ids=("d7",))) == 0
    assert count(make(nuggets=nuggets, contexts=(LEAK,), context_ids=("d8",))) == 1
    assert count(make(nuggets=nuggets, contexts=(LEAK,))) == 1


def test_three_questions_are_needed_where_there_are_more() -> None:
    clean = [make(f"c{number}", contexts=("nothing",)) for number in range(3)]
    leaking = [make(f"q{number}", contexts=(LEAK,)) for number in range(3)]
    assert count(*clean, *leaking[:2]) == 0
    assert count(*clean, *leaking) == 3
    assert count(*leaking[:2], make("one", nuggets=FACTS[:1])) == 2  # all that can be checked


def test_a_template_that_has_the_nuggets_or_fills_them_in_is_a_leak() -> None:
    assert count(make(), prompt=f"Facts: {LEAK}") == 1
    assert count(make(), prompt=None) == 1
    assert count(make(nuggets=["short"]), prompt=None) == 0


SPEC = """\
version: 1
name: leak
datasets: {golden: {use: golden, path: golden.jsonl, nuggets: nuggets.jsonl}}
systems: {told: {use: file, path: told.jsonl}, honest: {use: file, path: honest.jsonl}}
metrics: [METRICS]
"""


def run(
    folder: Path,
    metrics: str = "{use: nuggets, judge: overlap}",
    code: str = "leaked_nuggets",
    more: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """The notes on a system whose contexts have the nuggets and one whose contexts do not; `more` are other questions
    with nuggets.
    """
    files: dict[str, list[dict[str, Any]]] = {name: [] for name in ("golden", "nuggets", "told", "honest")}
    for number in range(4):
        facts = [f"fact {one} of question {number}" for one in range(4)]
        known = {"id": f"q{number}", "answer": facts[0]}
        files["golden"].append({"id": f"q{number}", "question": "What?", "answer": "so"})
        files["nuggets"].append({"qid": f"q{number}", "query": "What?", "nuggets": [{"text": one} for one in facts]})
        files["told"].append({**known, "contexts": [{"id": "d1", "text": "\n".join(facts)}]})
        files["honest"].append({**known, "contexts": [{"id": "d2", "text": facts[0]}]})
    files["nuggets"] += [{"qid": one, "query": "?", "nuggets": ["a fact"]} for one in more]
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "spec.yaml").write_text(SPEC.replace("METRICS", metrics))
    done = invoke("run", str(folder / "spec.yaml"), "--no-history", "--no-store", "--quiet", "-o", str(folder / "out"))
    assert done.exit_code == 0, done.output
    notes = json.loads((folder / "out" / "results.json").read_text())["notes"]
    return [note for note in notes if note["code"] == code]


def test_the_results_name_the_system_and_the_first_question(tmp_path: Path) -> None:
    both = "{use: nuggets, judge: overlap}, {use: nuggets, judge: overlap, count: all, as: every}"
    [note] = run(tmp_path, both)  # once for all metrics
    assert (note["dataset"], note["system"], note["count"], note["level"]) == ("golden", "told", 4, "warning")
    assert note["message"] == (
        "4 of 4 questions came with at least half of their nuggets, word for word in one prompt or document (the "
        "first: q0, in d1), so a high share is no merit; take them out of what the system gets, or if they were made "
        "from such documents, name these in 'documents' of each nugget"
    )


COMMANDS = r"""
  filled: {use: command, command: CALL, per: query, input: {q: "{{ question }}", facts: "{{ nuggets }}"}}
  fixed: {use: command, command: CALL, per: query, input: {q: "{{ question }}", say: "Say fact \"0\" of all, fact\n
    \"1\" of all"}}
  clean: {use: command, command: CALL, per: query, input: {q: "{{ question }}", tone: "{{ tone }}"}}"""


def test_templates_are_looked_at(tmp_path: Path) -> None:
    row = {"question": "?", "tone": "kind", "nuggets": ['fact "0" of all', 'fact "1" of all', 'fact "2" of all']}
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps({"id": f"q{n}", **row}) + "\n" for n in range(3)))
    call = json.dumps([sys.executable, "-c", """print('{"answer": "x"}')"""])
    spec = SPEC.replace(", nuggets: nuggets.jsonl", "").replace("METRICS", "{use: nuggets, judge: overlap}")
    told, honest = "{told: {use: file, path: told.jsonl}, ", "honest: {use: file, path: honest.jsonl}}"
    (tmp_path / "spec.yaml").write_text(spec.replace(told + honest, COMMANDS.replace("CALL", call)))
    done = invoke("run", str(tmp_path / "spec.yaml"), "--no-history", "--no-store", "--quiet", "-o", str(tmp_path))
    assert done.exit_code == 0, done.output
    notes = json.loads((tmp_path / "results.json").read_text())["notes"]
    assert [one["system"] for one in notes if one["code"] == "leaked_nuggets"] == ["filled", "fixed"]


def test_nothing_is_looked_for_without_a_metric_of_nuggets(tmp_path: Path) -> None:
    assert run(tmp_path, "exact_match") == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ((), []),
        (("q9",), ["1 of 5 questions with nuggets is not in the dataset, such as 'q9' in nuggets.jsonl"]),
        (("8", "9"), ["2 of 6 questions with nuggets are not in the dataset, such as '8' in nuggets.jsonl"]),
    ],
)
def test_nuggets_of_other_questions_are_counted(tmp_path: Path, more: Sequence[str], told: list[str]) -> None:
    assert [note["message"] for note in run(tmp_path, code="unknown_nuggets", more=more)] == told
