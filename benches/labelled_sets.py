"""What offline judges are worth on ten labelled sets: agreement, calibration, corrected means, guarantees and biases.

    python benches/labelled_sets.py [FOLDER] [--sets begin alce_utility] [--work FOLDER] [--rows 2000]

FOLDER contains `faithfulness/` and `human/` with the labelled sets. Each set becomes a spec with its answers and a file
of its labels. The script then does what a user does: `rageval-spec run`, `review agreement` and `calibrate`, and prints
Markdown tables from their JSON. `--rows` limits the answers of a set (whole questions, in the order of the file).
`--work` keeps the specs, labels and results, so that the same commands can be tried by hand.

Sets of pairs have no answer that is right: there the judge's preference is the difference of its values of the two
answers, and it is compared with people's preference.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FEW = 100
"""The number of answers whose labels correct a mean."""
GUARANTEE = 0.1
"""The share of wrong answers for which a promise is tried."""
OVERLAP = {"use": "faithfulness", "judge": "overlap"}
GROUNDING = {"use": "faithfulness", "judge": "embedding", "as": "grounding"}


@dataclass
class Labelled:
    """A labelled set as a spec: questions, the answers of each system, metrics, and labels.

    Attributes:
        metrics: the metrics, each with the criterion whose labels it is compared with.
        scale: the worst and the best label.
        labels: rows `query_id, system, criterion, annotator, value`, and perhaps `claim`.
        pairs: whether the labels are preferences between the two answers `a` and `b`, from -1 (a) to 1 (b).
    """

    name: str
    metrics: list[tuple[dict[str, Any], str]]
    scale: tuple[float, float] = (0.0, 1.0)
    questions: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    labels: list[dict[str, Any]] = field(default_factory=list)
    pairs: bool = False

    def add(self, query_id: str, system: str, text: str, /, **question: Any) -> None:
        """An answer, and its question if it is new."""
        contexts = question.pop("contexts", None)
        self.questions.setdefault(query_id, {"id": query_id, **question})
        row: dict[str, Any] = {"id": query_id, "answer": text}
        self.answers.setdefault(system, {})[query_id] = row if contexts is None else {**row, "contexts": contexts}

    def label(self, query_id: str, system: str, criterion: str, annotator: str, value: Any, **more: Any) -> None:
        """A person's judgement."""
        told = {"query_id": query_id, "system": system, "criterion": criterion, "annotator": annotator, "value": value}
        self.labels.append(told | more)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="*", choices=[*SETS], default=[*SETS])
    parser.add_argument("--work", type=Path)
    parser.add_argument("--rows", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        people: list[tuple[str, ...]] = []
        judges: list[tuple[str, ...]] = []
        means: list[tuple[str, ...]] = []
        biases: list[tuple[str, ...]] = []
        for name in options.sets:
            start = time.perf_counter()
            one = SETS[name](options.folder, options.rows)
            folder = write_spec(one, work / name)
            people += list(describe_people(one, folder))
            if one.metrics:
                run(folder, "run", "spec.yaml", "--quiet", "--output", "out", *STORE, expected=(0, 1))
            for metric, criterion in one.metrics if not one.pairs else ():
                found = calibrate(one, folder, metric, criterion)
                judges.append(describe_judge(one, metric, found))
                means.append(describe_mean(one, metric, found, calibrate(one, folder, metric, criterion, FEW)))
                biases += describe_biases(one, metric, found)
            if one.pairs:
                judges += list(describe_preferences(one, folder))
            print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    print_table(
        "How well people agree", ("set", "criterion", "items", "people", "decides", "value", "is enough"), people
    )
    print_table("What the judges are worth", JUDGED, judges)
    print_table(f"Means from the labels of {FEW} answers", MEANS, means)
    print_table("What makes the judges err (Holm-adjusted p below 0.05)", ("set", "metric", "effect"), biases)


STORE = ("--no-history",)
JUDGED = (
    "set",
    "metric",
    "items",
    "AUROC",
    "Spearman",
    "kappa, held out",
    "calibration error",
    f"at most {GUARANTEE:.0%} wrong",
)
MEANS = ("set", "metric", "all labels", "judge alone", "corrected", "labels alone", "100 labels are worth")


def run(folder: Path, *arguments: str, expected: Sequence[int] = (0,)) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "rageval_spec", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    if done.returncode not in expected:
        raise SystemExit(f"{folder.name}: {' '.join(arguments)}: {done.returncode}\n{done.stderr[-3000:]}{done.stdout}")
    return done.stdout


def write_spec(one: Labelled, folder: Path) -> Path:
    """The spec, its data and its labels."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "questions.jsonl", one.questions.values())
    for system, rows in one.answers.items():
        write_rows(folder / f"{system}.jsonl", rows.values())
    spec = {
        "version": 1,
        "name": one.name,
        "datasets": {one.name: {"use": "jsonl", "path": "questions.jsonl"}},
        "systems": {system: {"use": "file", "path": f"{system}.jsonl"} for system in one.answers},
        "metrics": [metric for metric, _ in one.metrics],
        "reports": [],
    }
    (folder / "spec.yaml").write_text(json.dumps(spec, indent=1))
    for criterion in dict.fromkeys(row["criterion"] for row in one.labels):
        columns = ["query_id", "system", "criterion", "annotator", "value", "claim"]
        with (folder / f"{criterion}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, columns)
            writer.writeheader()
            writer.writerows(row for row in one.labels if row["criterion"] == criterion)
    return folder


def write_rows(path: Path, rows: Any) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def describe_people(one: Labelled, folder: Path) -> Iterator[tuple[str, ...]]:
    for criterion in dict.fromkeys(row["criterion"] for row in one.labels):
        if len({row["annotator"] for row in one.labels if row["criterion"] == criterion}) < 2:
            continue
        (found,) = json.loads(run(folder, "review", "agreement", f"{criterion}.csv", "--format", "json"))
        deciding = next(one for one in found["coefficients"] if one["coefficient"] == found["deciding"])
        yield (
            one.name,
            criterion,
            f"{found['items']:,}",
            f"{len(found['annotators'])}",
            deciding["coefficient"],
            write_interval(deciding["value"], deciding["interval"]),
            "yes" if deciding["value"] >= 0.7 else "no",
        )


def calibrate(
    one: Labelled, folder: Path, metric: Mapping[str, Any], criterion: str, answers: int | None = None
) -> Mapping[str, Any]:
    """What `calibrate` finds with all labels, or with those of some answers drawn at random."""
    name = metric.get("as", metric["use"])
    rows = list(csv.DictReader((folder / f"{criterion}.csv").open()))
    if answers is not None:
        items = sorted({(row["query_id"], row["system"], row["claim"]) for row in rows})
        drawn = set(random.Random(7).sample(items, min(answers, len(items))))
        rows = [row for row in rows if (row["query_id"], row["system"], row["claim"]) in drawn]
    with (folder / f"{criterion}.{name}.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*rows[0], "metric"])
        writer.writeheader()
        writer.writerows(row | {"metric": name} for row in rows)
    labels = ("--labels", f"{criterion}.{name}.csv", "--scale", f"{one.scale[0]:g}..{one.scale[1]:g}")
    guarantee = ("--guarantee", f"wrong <= {GUARANTEE:.0%}")
    told = json.loads(run(folder, "calibrate", "out", *labels, *guarantee, "--format", "json"))
    (found,) = told["calibrations"]
    return dict(found)


def describe_judge(one: Labelled, metric: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[str, ...]:
    wanted, best = found["promise"]["wanted"], found["promise"]["best"]
    error = (found["reliability"] or {}).get("error")
    return (
        one.name,
        metric.get("as", metric["use"]),
        f"{found['items']:,}",
        find(found["discrimination"], "auroc"),
        find(found["association"], "spearman"),
        find(found["decisions"], "kappa"),
        "" if error is None else write_interval(error["value"], error["interval"]),
        f"sends {wanted['sent'] / wanted['labels']:.0%}" if wanted else f"no; {best['limit']:.0%}" if best else "no",
    )


def describe_mean(
    one: Labelled, metric: Mapping[str, Any], full: Mapping[str, Any], few: Mapping[str, Any]
) -> tuple[str, ...]:
    mean = few["mean"]
    return (
        one.name,
        metric.get("as", metric["use"]),
        f"{full['mean']['labelled']:.3f}",
        f"{mean['judged']:.3f}",
        write_interval(mean["value"], mean["interval"]),
        write_interval(mean["labelled"], mean["labelled_interval"]),
        "" if mean["worth"] is None else f"{mean['worth'] * FEW / mean['labels']:.0f}",
    )


def find(measures: Sequence[Mapping[str, Any]], name: str) -> str:
    one = next((one for one in measures if one["name"] == name), None)
    return "" if one is None or one["value"] is None else write_interval(one["value"], one["interval"])


def write_interval(value: float | None, interval: Mapping[str, float] | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" + ("" if interval is None else f" [{interval['low']:.3f}, {interval['high']:.3f}]")


def describe_biases(one: Labelled, metric: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for bias in found["biases"]:
        if bias["is_significant"]:
            yield one.name, metric.get("as", metric["use"]), bias["said"]


def describe_preferences(one: Labelled, folder: Path) -> Iterator[tuple[str, ...]]:
    """How often the judge prefers the answer that people prefer; ties of the judge count half."""
    import polars as pl

    from rageval_spec.calibration.measures import Measuring
    from rageval_spec.statistics.raters.discrimination import discriminate
    from rageval_spec.statistics.regression import associate

    values = pl.read_csv(folder / "out" / "values.csv") if (folder / "out" / "values.csv").is_file() else None
    values = pl.read_parquet(folder / "out" / "values.parquet") if values is None else values
    for metric, criterion in one.metrics:
        name = metric.get("as", metric["use"])
        wide = values.filter(metric=name).drop_nulls("value").pivot("system", index="query_id", values="value")
        people: dict[str, list[float]] = {}
        for row in one.labels:
            if row["criterion"] == criterion:
                people.setdefault(row["query_id"], []).append(row["value"])
        rows = [(people[key], b - a, key) for key, a, b in wide.select("query_id", "a", "b").drop_nulls().iter_rows()]
        judged = [difference for _, difference, _ in rows]
        preferred = [sum(votes) / len(votes) for votes, _, _ in rows]
        import numpy as np

        sides = np.array(preferred) != 0
        group = [re.sub(r"/.*", "", key) for _, _, key in rows]
        how = Measuring(group, 1000, 42)
        decided = Measuring([one for one, counts in zip(group, sides, strict=True) if counts], 1000, 42)
        spearman = how.measure("spearman", associate(np.array(judged), np.array(preferred))["spearman"])
        auroc = decided.measure("auroc", discriminate(np.array(judged)[sides], np.array(preferred)[sides] > 0)["auroc"])
        cells = [write_interval(one.value, read_interval(one.interval)) for one in (auroc, spearman)]
        yield (f"{one.name} ({criterion})", name, f"{len(rows):,} pairs", *cells, "", "", "")


def read_interval(interval: Any) -> Mapping[str, float] | None:
    return None if interval is None else {"low": interval.low, "high": interval.high}


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def read(path: Path) -> Iterator[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    yield from map(json.loads, content.splitlines())


def load_begin(data: Path, rows: int) -> Labelled:
    one = Labelled("begin", [(OVERLAP, "attributable"), (GROUNDING, "attributable")])
    labelled = [row for row in read(data / "faithfulness" / "begin.jsonl.gz") if row["label"] is not None]
    for row in labelled[:rows]:
        one.add(
            row["id"], "bot", row["response"], contexts=row["contexts"], question=row["history"], model=row["model"]
        )
        one.label(row["id"], "bot", "attributable", "people", row["label"])
    return one


def load_halueval(data: Path, rows: int) -> Labelled:
    one = Labelled("halueval_qa", [(OVERLAP, "right"), (GROUNDING, "right")])
    for row in list(read(data / "faithfulness" / "halueval_qa.jsonl"))[: rows // 2]:
        for system, answer, label in (("right", row["right_answer"], 1), ("made_up", row["hallucinated_answer"], 0)):
            one.add(row["id"], system, answer, contexts=row["contexts"], question=row["question"])
            one.label(row["id"], system, "right", "authors", label)
    return one


def load_scifact(data: Path, rows: int) -> Labelled:
    one = Labelled("scifact_claims", [(OVERLAP, "supported"), (GROUNDING, "supported")])
    for row in list(read(data / "faithfulness" / "scifact_claims.jsonl.gz"))[:rows]:
        contexts = [" ".join(document["sentences"]) for document in row["contexts"]]
        one.add(row["id"], "claims", row["claim"], contexts=contexts, question="Is it true?")
        one.label(row["id"], "claims", "supported", "authors", int(row["label"] == "SUPPORT"))
    return one


def load_realsumm(data: Path, rows: int) -> Labelled:
    """Labels of claims: one sentence of the reference is one content unit."""
    one = Labelled("realsumm_scu", [({"use": "completeness", "judge": "overlap"}, "present")])
    for row in list(read(data / "human" / "realsumm_scu.jsonl.gz"))[: min(rows, 300)]:
        units = [f"{claim['statement'].replace('.', '').strip()}." for claim in row["claims"]]
        query_id = row["id"]
        one.add(query_id, "summaries", row["response"], question="Summarise the article.", answer=" ".join(units))
        for number, claim in enumerate(row["claims"]):
            for worker, vote in enumerate(claim["votes"]):
                one.label(query_id, "summaries", "present", f"w{worker}", int(vote == "p"), claim=number)
    return one


def load_summeval(data: Path, rows: int) -> Labelled:
    one = Labelled("summeval_op", [(OVERLAP, "faithfulness"), (GROUNDING, "faithfulness")], scale=(1, 5))
    for row in list(read(data / "human" / "summeval_op.jsonl.gz"))[:rows]:
        query_id = f"item{row['item']}"
        one.add(query_id, row["model"], row["response"], contexts=row["contexts"], question="Summarise the reviews.")
        for criterion in ("faithfulness", "aspect_coverage"):
            for annotator, value in row["ratings"][criterion].items():
                one.label(query_id, row["model"], criterion, annotator, value)
    return one


def load_squality(data: Path, rows: int) -> Labelled:
    metrics = [
        ({"use": "completeness", "judge": "overlap"}, "selection"),
        ({"use": "rouge_l"}, "selection"),
        ({"use": "token_f1"}, "correctness"),
    ]
    one = Labelled("squality", metrics, scale=(0, 100))
    for row in list(read(data / "human" / "squality_human_eval.jsonl.gz"))[:rows]:
        query_id = "/".join(row["id"].split("/")[:2])
        others = [answer for answer in row["answers"] if answer.strip() != row["response"].strip()]
        one.add(query_id, row["model"], row["response"], question=row["question"], answer=others)
        for criterion in ("correctness", "selection"):
            for annotator, value in row["ratings"][criterion].items():
                one.label(query_id, row["model"], criterion, annotator, value)
    return one


def load_alce(data: Path, rows: int) -> Labelled:
    one = Labelled("alce_utility", [({"use": "answer_relevancy", "judge": "embedding"}, "utility")], scale=(1, 5))
    names: dict[str, str] = {}
    questions: dict[str, str] = {}
    for row in list(read(data / "human" / "alce_utility.jsonl"))[:rows]:
        system = names.setdefault(re.sub(r"^(asqa|eli5)-|\.json$", "", row["system"]), f"s{len(names)}")
        query_id = questions.setdefault(row["question"], f"{row['dataset']}{len(questions)}")
        one.add(query_id, system, row["response"], question=row["question"], source=row["dataset"])
        one.label(query_id, system, "utility", "people", row["utility"])
    return one


def load_pandalm(data: Path, rows: int) -> Labelled:
    one = Labelled("pandalm", [({"use": "answer_relevancy", "judge": "embedding"}, "overall")], pairs=True)
    for row in list(read(data / "human" / "pandalm_test.jsonl"))[: min(rows, 500)]:
        question = f"{row['instruction']}\n{row['input']}".strip()
        add_pair(one, row["id"], question, row["response_a"], row["response_b"])
        for annotator, vote in row["votes"]["overall"].items():
            one.label(row["id"], "", "overall", annotator, {0: 0, 1: -1, 2: 1}[vote])
    return one


def load_crowdrag(data: Path, rows: int) -> Labelled:
    metrics = [
        ({"use": "answer_relevancy", "judge": "embedding"}, "quality_overall"),
        ({"use": "answer_relevancy", "judge": "embedding", "as": "breadth"}, "coverage_broad"),
    ]
    one = Labelled("crowdrag25", metrics, pairs=True)
    texts = {row["id"]: row["response"] for row in read(data / "human" / "crowdrag25_responses.jsonl.gz")}
    for row in list(read(data / "human" / "crowdrag25_pairs.jsonl.gz"))[: min(rows, 500)]:
        query_id = f"{row['topic']}/{len(one.questions)}"
        add_pair(one, query_id, row["question"], texts[row["response_a"]], texts[row["response_b"]])
        for criterion in ("quality_overall", "coverage_broad"):
            for worker, vote in zip(row["workers"], row["votes"][criterion], strict=True):
                one.label(query_id, "", criterion, worker, {"n": 0, "a": -1, "b": 1}[vote])
    return one


def load_ragchecker(data: Path, rows: int) -> Labelled:
    metrics = [
        ({"use": "completeness", "judge": "overlap"}, "completeness"),
        ({"use": "token_f1"}, "overall"),
    ]
    one = Labelled("ragchecker_meta", metrics, pairs=True)
    for row in list(read(data / "human" / "ragchecker_meta.jsonl.gz"))[:rows]:
        query_id = f"{row['dataset']}-{row['query_id']}/{row['id']}"
        add_pair(one, query_id, row["question"], row["response_a"], row["response_b"], answer=row["answer"])
        for criterion in ("completeness", "correctness", "overall"):
            for annotator, vote in row["votes"][criterion].items():
                one.label(query_id, "", criterion, annotator, vote / 2)
    return one


def add_pair(one: Labelled, query_id: str, question: str, first: str, second: str, **more: Any) -> None:
    for system, answer in (("a", first), ("b", second)):
        one.add(query_id, system, answer, question=question, **more)


SETS: dict[str, Callable[[Path, int], Labelled]] = {
    "begin": load_begin,
    "halueval_qa": load_halueval,
    "scifact_claims": load_scifact,
    "realsumm_scu": load_realsumm,
    "summeval_op": load_summeval,
    "squality": load_squality,
    "alce_utility": load_alce,
    "pandalm": load_pandalm,
    "crowdrag25": load_crowdrag,
    "ragchecker_meta": load_ragchecker,
}

if __name__ == "__main__":
    main()
