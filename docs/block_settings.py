"""What the blocks of the documentation start from: files of readers, names of Python, and the rest of a spec."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[1]
SPECS = ROOT / "specs"
SUPPORT = Path("specs") / "data" / "support"
Names = dict[str, Any]

REST = {
    "version": "version: 1",
    "datasets": "datasets: {golden: {use: jsonl, path: golden.jsonl}}",
    "systems": "systems: {bot: {use: file, path: answers.jsonl}}",
    "models": """models:
  gpt: {use: chat, model: gpt-5-mini, base_url: "http://localhost:1"}
  nli: {use: onnx, model: MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli}""",
    "judges": "judges: {fast: {use: overlap}, strict: {use: claims, model: gpt}}",
    "metrics": """metrics: [exact_match, token_f1, ndcg@10, recall@100, context_recall,
  {use: faithfulness, judge: overlap}, {use: completeness, judge: overlap, as: correctness}]""",
    "slices": "slices: [difficulty, {name: long, where: {column: question, words: {min: 12}}}]",
}
"""What a part of a spec lacks, by section: a golden set, a system, models and judges, metrics and slices."""
REST_OF_MONITOR = {
    **{section: REST[section] for section in ("version", "models", "judges")},
    "systems": "systems: {live: {use: file, path: traces.jsonl, follow: true}}",
    "metrics": "metrics: [{use: faithfulness, judge: overlap}]",
}
"""The same for a part with `monitor:`."""
ENVIRONMENT: Mapping[str, str] = {"SLACK": "https://hooks.slack.com/services/x"}
"""Variables whose value must have a form."""


def copy_specs(folder: Path) -> Names:
    """The example specs of the repository, with their data."""
    shutil.copytree(SPECS, folder / "specs", ignore=shutil.ignore_patterns(".rageval"))
    return {}


def evaluate_quickstart(folder: Path) -> Names:
    """The quickstart's results, in rageval-results."""
    from rageval_spec.runner import Options, run

    copy_specs(folder)
    run(folder / "specs" / "quickstart.yaml", Options(output=folder / "rageval-results", no_store=True))
    return {}


def rank_systems(folder: Path) -> Names:
    """What people and a judge say of 12 systems on 40 topics: `people.tsv` and `judge.tsv`."""
    for name, noise in (("people", 0.0), ("judge", 0.06)):
        random = Random(7)
        lines = []
        for system in range(12):
            bias = Random(system).gauss(0, noise)
            for topic in range(40):
                value = 0.3 + 0.03 * system + bias + random.gauss(0, 0.08)
                lines.append(f"run{system + 1}\tt{topic + 1}\tnugget_recall\t{value:.3f}\n")
        (folder / f"{name}.tsv").write_text("run\ttopic\tmeasure\tvalue\n" + "".join(lines))
    return {}


def label_answers(folder: Path) -> Names:
    """240 answers made of the example documents, their results as `main`, and labels of 120 of them by two people.

    A third of the answers are wrong: they have a sentence of another document, or deny theirs.
    """
    from rageval_spec.runner import Options, run

    copy_specs(folder)
    lines = (folder / SUPPORT / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    sentences = [re.split(r"(?<=\.) ", text) for text in texts]
    rows, labels = [], []
    for number in range(240):
        own, other = sentences[number % len(texts)], sentences[(number * 7 + 3) % len(texts)]
        right = answer = own[number % len(own)]
        if number % 6 == 0:
            answer = f"{right} {other[number % len(other)]}"
        elif number % 6 == 1:
            answer = re.sub(r"\b(can|is|are|must|may)\b", r"\1 not", right, count=1)
        is_right = answer == right
        if number % 6 == 2:
            answer = " ".join(word for place, word in enumerate(right.split()) if place % 4) or right
            answer = answer.replace("the ", "our ")
        text = texts[number % len(texts)]
        rows.append({"id": f"q{number}", "question": f"Question {number}?", "answer": answer, "contexts": [text]})
        labels.append({"query_id": f"q{number}", "metric": "faithfulness", "value": "yes" if is_right else "no"})
    write_rows(folder / "answers.jsonl", rows)
    for file, annotator in (("ann", "ann"), ("bob", "bob"), ("labels", "ann")):
        write_table(folder / f"{file}.csv", [{**one, "annotator": annotator} for one in labels[:120]])
    (folder / "spec.yaml").write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: answers.jsonl}}\n"
        "systems: {bot: {use: file, path: answers.jsonl}}\nmetrics: [{use: faithfulness, judge: overlap}]\n"
        "labels: {people: {use: csv, path: labels.csv}}\n"
    )
    run(folder / "spec.yaml", Options(output=folder / "rageval-results", save_as="main"))
    return {}


def rank(_: Path) -> Names:
    """Judgements, two runs, and vectors."""
    import numpy as np

    import rageval_spec

    random = np.random.default_rng(0)
    queries, corpus = (random.normal(size=(rows, 8)).astype(np.float32) for rows in (5, 200))
    run = {"q1": {"d1": 0.9, "d3": 0.8, "d2": 0.7}, "q2": {"d1": 0.5, "d3": 0.4}}
    other = {"q1": {"d2": 0.9, "d1": 0.8}, "q2": {"d3": 0.5}}
    return {
        "rageval_spec": rageval_spec,
        "qrels": {"q1": {"d1": 1, "d2": 2}, "q2": {"d3": 1}},
        "run": run,
        "run_a": run,
        "run_b": other,
        "queries": queries,
        "corpus": corpus,
        "a": corpus[:5],
        "b": queries,
    }


def write_faulty_questions(folder: Path) -> Names:
    """A golden set with a contradiction, and a training set that has a question of it."""
    rows = [("How long is the notice period", "30 days"), ("How long is the notice period?", "14 days")]
    rows += [("When does the office open?", "At nine."), ("Who may cancel a contract?", "Both sides.")]
    write_rows(folder / "golden.jsonl", ({"question": one, "reference": two} for one, two in rows))
    write_rows(folder / "train.jsonl", [{"question": rows[2][0], "reference": rows[2][1]}])
    write_rows(folder / "answers.jsonl", ({"question": one, "answer": two} for one, two in rows))
    (folder / "spec.yaml").write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl}}\n"
        "systems: {bot: {use: file, path: answers.jsonl}}\nmetrics: [exact_match]\n"
    )
    return {}


def watch(folder: Path) -> Names:
    """The monitor of the example specs, which has judged its traces once; they began in the last days."""
    from click.testing import CliRunner

    from rageval_spec.cli import cli

    copy_specs(folder)
    text = (SPECS / "monitor.yaml").read_text(encoding="utf-8").replace("every: 5m", "every: 5m\n  settle: 0.1s")
    (folder / "spec.yaml").write_text(text.replace("path: data/", "path: specs/data/"), encoding="utf-8")
    traces = folder / SUPPORT / "live.jsonl"
    traces.write_text(move_to_now(traces.read_text(encoding="utf-8")), encoding="utf-8")
    write_page_sh(folder)
    for _ in range(2):  # what has just come is not judged yet
        CliRunner().invoke(cli, ["monitor", "run", str(folder / "spec.yaml"), "--once"])
        time.sleep(0.2)
    return {}


def write_page_sh(folder: Path) -> Names:
    """Traces, and a program that takes alerts."""
    shutil.copy(SPECS / "data" / "support" / "live.jsonl", folder / "traces.jsonl")
    (folder / "page.sh").write_text("#!/bin/sh\ncat >/dev/null\n")
    (folder / "page.sh").chmod(0o755)
    return {}


def keep_records(folder: Path) -> Names:
    """Two records, `main` and one of a branch, in a repository of git."""
    from rageval_spec.runner import Options, run

    copy_specs(folder)
    spec = folder / "spec.yaml"
    spec.write_text((SPECS / "regression_gate.yaml").read_text().replace("path: data/", "path: specs/data/"))
    git = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    subprocess.run(["git", "init", "--quiet", "-b", "main"], cwd=folder, check=True)
    (folder / ".gitignore").write_text(".rageval\nrageval-results\n")
    subprocess.run([*git, "add", "."], cwd=folder, check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "A spec"], cwd=folder, check=True)
    run(spec, Options(output=folder / "rageval-results", save_as="main", overrides=("gates=[]",)))
    subprocess.run([*git, "switch", "--quiet", "-c", "topic"], cwd=folder, check=True)
    spec.write_text(f"{spec.read_text()}# a change\n")
    run(spec, Options(output=folder / "rageval-results", save_as="pr"))
    return {}


def write_specs_of_pytest(folder: Path) -> Names:
    """A spec in evals/, for pytest."""
    copy_specs(folder)
    shutil.copytree(folder / "specs" / "data", folder / "evals" / "data")
    shutil.copy(SPECS / "trec_run.yaml", folder / "evals" / "support.yaml")
    return {}


def write_workbook(folder: Path) -> Names:
    """A golden set in Excel with a title above its header, and answers."""
    sys.path.insert(0, str(ROOT))
    from tests.reading.workbook_files import write_workbook as write

    names = ["id", "Question", "Ground Truth", "relevant_doc_ids", "difficulty", "category"]
    rows = [["t1", "why?", "because", "d1, d2", "easy", "cause"], ["t2", "how?", "so", "d3", "hard", "way"]]
    write(folder / "golden.xlsx", Golden=[["Questions of 2026"], names, *rows])
    write_rows(folder / "answers.jsonl", [{"id": "t1", "answer": "because"}, {"id": "t2", "answer": "no"}])
    return {}


def write_starting_points(folder: Path) -> Names:
    """What `init` starts from: golden sets, answers, a test set of ragas, BEIR and TREC files, and spans."""
    write_workbook(folder)
    rows = [{"id": "t1", "question": "why?", "answer": "so", "reference": "because"}]
    write_rows(folder / "answers.jsonl", [{"id": "t1", "answer": "so"}])
    write_table(folder / "answers.csv", rows)
    write_table(folder / "golden.csv", [{"id": "t1", "question": "why?", "reference": "so"}])
    write_rows(folder / "testset.jsonl", [{"user_input": "why?", "reference": "because", "reference_contexts": ["x"]}])
    shutil.copytree(SPECS / "data" / "support", folder / "data" / "scifact")
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n", encoding="utf-8")
    (folder / "bm25.run").write_text("q1 Q0 d1 1 0.9 bm25\n", encoding="utf-8")
    shutil.copy(SPECS / "data" / "support" / "spans.jsonl", folder)
    (folder / "fragen.csv").write_text("Frage,Antwort,Gold\nWarum?,Darum.,Darum.\n", encoding="utf-8")
    return {}


def write_former_key(folder: Path) -> Names:
    """A spec with a key that has had another name."""
    (folder / "evals").mkdir()
    write_rows(folder / "evals" / "golden.jsonl", [{"ask": "why?", "reference": "so"}])
    (folder / "evals" / "support.yaml").write_text(
        "version: 1\nname: support\n\ndatasets:\n"
        "  golden: {use: jsonl, path: golden.jsonl, fields: {text: ask}}\nsystems:\n"
        '  live: {use: http, url: "http://localhost:8000/ask"}\nmetrics: [token_f1]\n',
        encoding="utf-8",
    )
    return {}


def write_documents(folder: Path) -> Names:
    """The example documents as text files in docs/."""
    (folder / "docs").mkdir()
    for line in (SPECS / "data" / "support" / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        (folder / "docs" / f"{document['_id']}.txt").write_text(document["text"])
    return {}


def write_exports(folder: Path) -> Names:
    """Files of other tools, as the pages on migrating show them, results to export, and spans."""
    import polars as pl
    from check_blocks import read_blocks

    evaluate_quickstart(folder)
    for tool in ("deepeval", "promptfoo", "ragas"):
        page = ROOT / "docs" / "migrating" / f"{tool}.md"
        for block in read_blocks(page, page.read_text(encoding="utf-8")):
            if block.title and not block.title.endswith((".py", "spec.yaml")):
                (folder / block.title).write_text(block.text, encoding="utf-8")
    spans = move_to_now((SPECS / "data" / "support" / "spans.jsonl").read_text(encoding="utf-8"))
    (folder / "spans.jsonl.gz").write_bytes(gzip.compress(spans.encode()))
    (folder / "spans").mkdir()
    (folder / "spans" / "one.jsonl").write_text(spans, encoding="utf-8")
    (folder / "my_dataset" / "data").mkdir(parents=True)
    rows = pl.DataFrame({"question": ["why?"], "answer": ["so"]})
    rows.write_parquet(folder / "my_dataset" / "data" / "test-00000-of-00001.parquet")
    case = {"name": "n1", "input": "Where is it?", "actualOutput": "Shed.", "expectedOutput": "Shed."}
    (folder / "test_run_20260301_120000.json").write_text(json.dumps({"testCases": [case]}))
    return {}


def write_unknown_variable(folder: Path) -> Names:
    """A spec of a service whose body names a column that its questions do not have."""
    write_rows(folder / "golden.jsonl", [{"question": "why?", "reference": "so", "category": "cause"}])
    (folder / "spec.yaml").write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl}}\nsystems:\n  bot:\n    use: http\n"
        '    url: http://localhost:8000/ask\n    body:\n      filters:\n        - {cat: "{{ categry }}", x: 1}\n'
        '      q: "{{ question }}"\nmetrics: [exact_match]\n'
    )
    return {}


def move_to_now(text: str) -> str:
    """Records whose times, ISO or nanoseconds, are moved so that the last one was an hour ago."""
    iso = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
    nanoseconds = re.compile(r"(?<=UnixNano\": \")\d{19}")
    times = [datetime.fromisoformat(one).timestamp() for one in iso.findall(text)]
    times += [int(one) / 1e9 for one in nanoseconds.findall(text)]
    moved = int(time.time() - 3600 - max(times))
    text = iso.sub(lambda one: f"{datetime.fromisoformat(one[0]) + timedelta(seconds=moved):%Y-%m-%dT%H:%M:%SZ}", text)
    return nanoseconds.sub(lambda one: str(int(one[0]) + moved * 10**9), text)


def write_table(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


SETTINGS: Mapping[str, Callable[[Path], Names]] = {
    "documents": write_documents,
    "exports": write_exports,
    "faulty questions": write_faulty_questions,
    "labels": label_answers,
    "leaderboards": rank_systems,
    "monitor": watch,
    "pytest": write_specs_of_pytest,
    "quickstart": evaluate_quickstart,
    "ranking": rank,
    "former key": write_former_key,
    "records": keep_records,
    "specs": copy_specs,
    "starting points": write_starting_points,
    "traces": write_page_sh,
    "unknown variable": write_unknown_variable,
    "workbook": write_workbook,
}
"""By the name in `<!-- given: NAME -->`: writes files into a folder, and returns names for blocks of Python."""
