"""Measure `overlap` with `combine: mean` and `combine: worst` on labelled answers, and on answers with one mistake.

    python benches/combining.py FOLDER [--resamples 1000]

FOLDER contains `faithfulness/`, `human/` and `rag_qa/` with the labelled sets. People labelled the answers of the first
five sets. In the others, half of the right answers of ClapNQ and PubMedQA are changed: a number or a name is replaced
with one from another question's contexts, or a sentence with one of another answer. AUROC and its intervals are those
of `benches/judges.py`, but over all rows.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from judges import READERS, Labelled, Task, build_judges, describe_auroc, read_rows, score
from rageval_spec import kernels
from rageval_spec.data.samples import Sample
from rageval_spec.judging.segments import split_segments
from rageval_spec.metrics.shared.judged_metrics import ANSWER_IN_CONTEXTS

SEED = 1
FAITHFUL_FROM = 4.5
"""A summary is right if its mean rating, from 1 to 5, is at least this."""
FARTHER = 17
"""How far away in the file the question is from which mistakes are taken."""
_NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")
_BLOCKS = {"mean": {"use": "overlap"}, "worst": {"use": "overlap", "combine": "worst"}}

Edit = Callable[[Sample, Sample, random.Random], str | None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    judges = build_judges(_BLOCKS, None, None)
    print("| set | answers | right | mean | worst |\n|---|---|---|---|---|")
    for task in list_tasks(options.folder):
        cells = [describe_auroc(score(judge, task), task, options.resamples) for judge in judges.values()]
        print(
            f"| {task.name} | {len(task.rows):,} | {task.labels_array.mean():.0%} | {' | '.join(cells)} |", flush=True
        )


def list_tasks(folder: Path) -> Iterator[Task]:
    for name, (reader, labels, criterion) in READERS.items():
        rows = list(reader(folder))
        yield Task(name, labels, criterion, rows)
        if name == "begin":
            several = [row for row in rows if len(split_segments(row.sample.answer or "")) > 1]
            yield Task(f"{name}, two sentences and more", labels, criterion, several)
    yield Task("summeval_op", "mean rating of faithfulness", ANSWER_IN_CONTEXTS, list(read_summaries(folder)))
    for name, samples in (("ClapNQ", read_clapnq(folder)), ("PubMedQA", read_pubmedqa(folder))):
        for mistake, edit in EDITS.items():
            rows = list(make_mistakes(samples, edit))
            yield Task(f"{name}, {mistake}", "as it was, or changed", ANSWER_IN_CONTEXTS, rows)


def read_summaries(folder: Path) -> Iterator[Labelled]:
    for row in read_rows(folder, "human/summeval_op"):
        ratings = row["ratings"]["faithfulness"].values()
        sample = Sample(row["id"], "", answer=row["response"], contexts=tuple(row["contexts"]))
        yield Labelled(sample, sum(ratings) / len(ratings) >= FAITHFUL_FROM, str(row["item"]))


def read_clapnq(folder: Path) -> list[Sample]:
    rows = [row for row in read_rows(folder, "rag_qa/clapnq_dev") if row["answerable"] and row["answers"]]
    return [make_sample(row, row["answers"][0]) for row in rows if len(split_segments(row["answers"][0])) > 1]


def read_pubmedqa(folder: Path) -> list[Sample]:
    rows = read_rows(folder, "rag_qa/pubmedqa_labeled")
    return [make_sample(row, row["answer"]) for row in rows if len(split_segments(row["answer"])) > 1]


def make_sample(row: dict[str, Any], answer: str) -> Sample:
    contexts = tuple(context["text"] for context in row["contexts"])
    return Sample(str(row["id"]), row["question"], answer=answer, contexts=contexts)


def make_mistakes(samples: Sequence[Sample], edit: Edit) -> Iterator[Labelled]:
    """The answers that can be changed, about half of them changed."""
    choice = random.Random(SEED)
    for place, sample in enumerate(samples):
        changed = edit(sample, samples[(place + FARTHER) % len(samples)], choice)
        if changed is not None:
            is_right = choice.random() < 0.5
            answer = sample.answer if is_right else changed
            yield Labelled(
                Sample(sample.query_id, "", answer=answer, contexts=sample.contexts), is_right, sample.query_id
            )


def swap_number(sample: Sample, other: Sample, choice: random.Random) -> str | None:
    answer = sample.answer or ""
    mine, theirs = list(_NUMBER.finditer(answer)), list(_NUMBER.finditer(" ".join(other.contexts or ())))
    if not mine or not theirs:
        return None
    place = choice.choice(mine)
    return answer[: place.start()] + choice.choice(theirs)[0] + answer[place.end() :]


def swap_name(sample: Sample, other: Sample, choice: random.Random) -> str | None:
    answer = sample.answer or ""
    mine = [name for name in list_names(answer) if name in answer and not answer.startswith(name)]
    theirs = list_names(" ".join(other.contexts or ()))
    return answer.replace(choice.choice(mine), choice.choice(theirs)) if mine and theirs else None


def list_names(text: str) -> list[str]:
    return [name for name in kernels.names(text) if not any(character.isdigit() for character in name)]


def swap_sentence(sample: Sample, other: Sample, choice: random.Random) -> str | None:
    sentences = [segment.text for segment in split_segments(sample.answer or "")]
    sentences[choice.randrange(len(sentences))] = choice.choice(split_segments(other.answer or "")).text
    return " ".join(sentences)


EDITS: dict[str, Edit] = {"a wrong number": swap_number, "a wrong name": swap_name, "a wrong sentence": swap_sentence}

if __name__ == "__main__":
    main()
