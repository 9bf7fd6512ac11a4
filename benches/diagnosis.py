"""Diagnoses 420 answers whose cause of failure is known, and counts which cause the diagnosis gives each.

    python benches/diagnosis.py DATA > benches/diagnosis.md

DATA has `retrieval/xquad_en`: questions with their paragraph and gold answer. Each case is made from a question by a
rule, so that its cause is known: 20 questions for each of seven causes in each of three forms (short gold and short
answers, short gold and sentences, sentences and sentences). The bounds are set on every second case and checked on the
others.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rageval_spec.pipeline.results import diagnosis
from rageval_spec.pipeline.results.diagnosis import DecidingMetrics, find_causes
from rageval_spec.runner import Options, run
from rageval_spec.spec.blocks.spec_node import DiagnosisNode

FORMS = ("short gold, short answers", "short gold, sentences", "sentences, sentences")
EXPECTED = {
    "right": "fine",
    "nothing found, refused": "retrieval",
    "wrong context used": "retrieval",
    "nothing found, invented": "both",
    "nothing found, known anyway": "lucky",
    "refused wrongly": "generation",
    "fact swapped": "generation",
}
WITHOUT_RETRIEVAL = {
    "right": "fine",
    "wrong context used": "retrieval",
    "nothing found, invented": "generation",
    "fact swapped": "generation",
}
"""What can be told where nothing measures retrieval."""
REFUSAL = "I could not find this in the documents."
EACH = 20
SHORT = diagnosis.SHORT
SPEC = """\
version: 1
name: diagnosis
datasets: {golden: {use: jsonl, path: golden.jsonl}}
systems: {bot: {use: file, path: answers.jsonl}}
metrics: [token_f1, {use: faithfulness, judge: overlap}%s]
"""


@dataclass(frozen=True)
class Question:
    """A question with its paragraph, the gold span, and the sentence that has it."""

    text: str
    document: str
    gold: str
    sentence: str


@dataclass(frozen=True)
class Case:
    """A question as it was answered, and what went wrong."""

    form: str
    kind: str
    question: str
    reference: str
    answer: str
    contexts: tuple[str, ...]


def read_questions(data: Path) -> list[Question]:
    """The questions whose gold span stands in exactly one sentence, and not in the question."""
    folder = data / "retrieval" / "xquad_en"
    documents = {row["_id"]: row["text"] for row in read_rows(folder / "corpus.jsonl")}
    judged = dict(line.split("\t")[:2] for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:])
    found = []
    for row in read_rows(folder / "queries.jsonl"):
        document, gold = documents[judged[row["_id"]]], row["metadata"]["answers"][0]["text"]
        sentences = [one for one in re.split(r"(?<=[.!?])\s+(?=[A-Z])", document) if gold in one]
        if len(sentences) == 1 and len(gold.split()) <= 5 and gold not in row["text"] and len(sentences[0].split()) > 8:
            found.append(Question(row["text"], document, gold, sentences[0]))
    return found


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file."""
    return map(json.loads, path.read_text().splitlines())


def make_cases(questions: Sequence[Question], drawn: random.Random) -> list[Case]:
    """`EACH` cases of each kind and form."""
    return [
        make_case(form, kind, question, questions, drawn)
        for form, kind in product(FORMS, EXPECTED)
        for question in drawn.sample(questions, EACH)
    ]


def make_case(form: str, kind: str, one: Question, questions: Sequence[Question], drawn: random.Random) -> Case:
    """One question answered in this form, with what goes wrong in this kind."""
    apart = [other for other in questions if other.document != one.document and one.gold not in other.document]
    other = drawn.choice([q for q in apart if is_alike(q.gold, one.gold)] or apart)
    swapped = one.sentence.replace(one.gold, other.gold)
    is_short = form == FORMS[0]
    said = {
        "right": one.gold if is_short else shorten(one.sentence, one.gold),
        "known anyway": one.gold if is_short else one.sentence,
        "refused": REFUSAL,
        "wrong context used": other.gold if is_short else other.sentence,
        "invented": drawn.choice(apart).gold if is_short else swapped,
        "swapped": other.gold if is_short else swapped,
    }
    answer = next(text for word, text in said.items() if word in kind)
    missing = (other.document, drawn.choice(apart).document)
    contexts: tuple[str, ...] = (one.document, other.document) if EXPECTED[kind] in ("fine", "generation") else missing
    if kind == "fact swapped":
        contexts = (one.document, drawn.choice([q for q in apart if other.gold not in q.document]).document)
    if kind == "nothing found, invented":
        contexts = tuple(drawn.choice([q for q in apart if answer not in q.document]).document for _ in range(2))
    return Case(form, kind, one.text, one.gold if form != FORMS[2] else one.sentence, answer, contexts)


def is_alike(first: str, second: str) -> bool:
    """Whether two spans are both numbers, or both names, or neither."""
    return [any(map(str.isdigit, text)) for text in (first, second)] in ([True] * 2, [False] * 2) and (
        first[:1].isupper() == second[:1].isupper()
    )


def shorten(sentence: str, gold: str) -> str:
    """The sentence as an answer words it: without a clause at its end or its beginning that has no part of the gold."""
    clauses = sentence.rstrip(".").split(", ")
    while len(clauses) > 1 and gold not in clauses[-1] and gold in ", ".join(clauses[:-1]):
        clauses.pop()
    return "According to the documents, " + ", ".join(clauses) + "."


def diagnose(cases: Sequence[Case], folder: Path, *, measures_retrieval: bool) -> tuple[list[str], list[str]]:
    """The cause of each case as the diagnosis gives it, and as the values of token_f1 alone would."""
    rows = [{"id": f"q{n}", "question": case.question, "reference": case.reference} for n, case in enumerate(cases)]
    answers = [{"id": f"q{n}", "answer": case.answer, "contexts": case.contexts} for n, case in enumerate(cases)]
    for name, written in (("golden.jsonl", rows), ("answers.jsonl", answers)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in written))
    recall = ", {use: context_recall, judge: overlap}" if measures_retrieval else ""
    (folder / "spec.yaml").write_text(SPEC % recall)
    evaluation = run(folder / "spec.yaml", Options(output=folder / "out", no_store=True)).evaluation
    causes = dict(evaluation.samples.select("query_id", "cause").iter_rows())
    choice = DecidingMetrics("context_recall" if measures_retrieval else "not measured", "token_f1", "faithfulness")
    alone = find_causes(evaluation.values, choice, DiagnosisNode(), {})
    former = dict(alone.select("query_id", "cause").iter_rows())
    ids = [f"q{n}" for n in range(len(cases))]
    return [causes[one] for one in ids], [former[one] for one in ids]


def print_table(header: Sequence[object], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table."""
    print("|", " | ".join(map(str, header)), "|\n|", " | ".join("---" for _ in header), "|")
    for row in rows:
        print("|", " | ".join(map(str, row)), "|")
    print()


def print_confusion(cases: Sequence[Case], found: Sequence[str], expected: dict[str, str]) -> None:
    """How often each kind of case got each cause."""
    causes = ("fine", "retrieval", "both", "generation", "lucky", "undecided")
    counts = Counter((case.kind, cause) for case, cause in zip(cases, found, strict=True))
    rows = [
        (kind, f"`{wanted}`", *(counts[kind, cause] or "" for cause in causes)) for kind, wanted in expected.items()
    ]
    print_table(("what went wrong", "expected", *(f"`{cause}`" for cause in causes)), rows)


def count_right(cases: Sequence[Case], found: Sequence[str], expected: dict[str, str], form: str) -> str:
    """The cases of a form with the expected cause."""
    own = [(case, cause) for case, cause in zip(cases, found, strict=True) if case.form == form]
    return f"{sum(cause == expected[case.kind] for case, cause in own)} of {len(own)}"


def set_bounds(cases: Sequence[Case]) -> list[tuple[object, ...]]:
    """How the words decide by bounds, on the half that sets them and on the other; fewest wrong decisions first."""
    rows = []
    truths = [case.kind in ("right", "nothing found, known anyway") for case in cases]
    for short, low, high in product((4, 6, 8, 12), (0.4, 0.5, 0.6), (0.6, 0.7, 0.8, 0.9)):
        diagnosis.SHORT = short
        said = [diagnosis.decide_by_words(case.answer, [case.reference], case.question, low, high) for case in cases]
        found = list(zip(said, truths, strict=True))
        halves = [
            Counter("undecided" if one is None else one is truth for one, truth in found[start::2]) for start in (0, 1)
        ]
        rows.append((short, low, high, *(half[key] for half in halves for key in (False, "undecided", True))))
    return sorted(rows, key=lambda row: (row[3], row[4]))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    questions = read_questions(parser.parse_args().data)
    cases = make_cases(questions, random.Random(20250101))
    print("# Causes of wrong answers, where they are known\n")
    print("Made by `python benches/diagnosis.py DATA`: questions of XQuAD (English), offline judges (`overlap`).\n")
    for measures, expected in ((True, EXPECTED), (False, WITHOUT_RETRIEVAL)):
        asked = [case for case in cases if case.kind in expected]
        with tempfile.TemporaryDirectory() as folder:
            found, former = diagnose(asked, Path(folder), measures_retrieval=measures)
        print(f"## {'With `context_recall`' if measures else 'Where nothing measures retrieval'}: {len(asked)} cases\n")
        print_confusion(asked, found, expected)
        rows = [(form, *(count_right(asked, one, expected, form) for one in (found, former))) for form in FORMS]
        print_table(("gold and answers", "right cause", "by the values of token_f1 alone"), rows)
    print("## Bounds\n")
    print(
        f"Answers called right or wrong, on the half that sets the bounds and on the other ({len(cases) // 2} each).\n"
    )
    bounds = set_bounds(cases)
    chosen = next(row for row in bounds if row[:3] == (SHORT, 0.5, 0.7))
    header = ("words of a short gold answer", "wrong below", "right from", *("wrongly", "undecided", "rightly"))
    of_other_half = ("the other half: wrongly", "undecided", "rightly")
    print_table((*header, *of_other_half), [*bounds[:5], *([] if chosen in bounds[:5] else [chosen])])


if __name__ == "__main__":
    main()
