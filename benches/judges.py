"""Measure how well judges without a language model tell right from wrong, on labelled data.

    python benches/judges.py [FOLDER] [--store FOLDER] [--nli MODEL] [--model MODEL] [--window 1] [--limit 0]
                             [--resamples 1000]

FOLDER contains `faithfulness/{begin,halueval_qa,scifact_claims}.jsonl[.gz]` and `human/realsumm_scu.jsonl.gz`. The
default is the folder in RAGEVAL_SHARED_DATA. With `--store`, embeddings are kept there and a second run takes seconds.
`--nli` names an entailment classifier, a folder or a model on the Hugging Face Hub; without it there is no row for
`nli`. `--model` names another embedding model, and prints only how the judge `embedding` does with it and with MiniLM,
beside `overlap`. `--limit` uses only this many questions or documents of each set.

All judges are built as a spec builds them. The samples are split in two halves by question: one half calibrates where
`cascade` is sure, and every figure comes from the other. AUROC is the probability that a sample with support scores
higher than one without (ties count half). Intervals are 95 % percentiles of a bootstrap over questions or documents,
so that answers to one question stay together.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearsonr, rankdata, spearmanr

from rageval_spec import registry
from rageval_spec.data.findings import Criterion, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.judges import embedding, overlap
from rageval_spec.judging import cosine_scale
from rageval_spec.metrics.shared.judged_metrics import ANSWER_IN_CONTEXTS, REFERENCE_IN_ANSWER
from rageval_spec.plugin import Context, Judge, Model
from rageval_spec.store.replies import FileAnswers
from rageval_spec.store.store import MemoryAnswers

Floats = NDArray[np.float64]
SEED = 7
PRECISION = 0.95
"""The share of a cascade step's decisions on the calibration half that must be right."""
GRID = np.round(np.arange(0.0, 1.0001, 0.01), 2)


class Labelled(NamedTuple):
    """A sample, whether it is right, its cluster (split and resampled as a whole), and its system."""

    sample: Sample
    is_right: bool
    cluster: str
    system: str = ""
    summary: str = ""


@dataclass(frozen=True)
class Task:
    """Samples to judge by one criterion."""

    name: str
    labels: str
    criterion: Criterion
    rows: list[Labelled]

    def half(self, number: int) -> Task:
        """0 for calibration, 1 for figures."""
        kept = [row for row in self.rows if hashlib.sha256(row.cluster.encode()).digest()[0] % 2 == number]
        return Task(self.name, self.labels, self.criterion, kept)

    @property
    def labels_array(self) -> NDArray[np.bool_]:
        return np.array([row.is_right for row in self.rows])


def read_rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file, which can be gzipped."""
    plain, packed = folder / f"{name}.jsonl", folder / f"{name}.jsonl.gz"
    with gzip.open(packed, "rt", encoding="utf-8") if packed.is_file() else plain.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def read_begin(folder: Path) -> Iterator[Labelled]:
    for row in read_rows(folder, "faithfulness/begin"):
        if row["label"] is not None:
            sample = Sample(row["id"], row["history"], answer=row["response"], contexts=tuple(row["contexts"]))
            yield Labelled(sample, row["label"] == 1, row["history"] + row["contexts"][0])


def read_halueval(folder: Path) -> Iterator[Labelled]:
    for row in read_rows(folder, "faithfulness/halueval_qa"):
        for key in ("right_answer", "hallucinated_answer"):
            sample = Sample(f"{row['id']} {key}", row["question"], answer=row[key], contexts=tuple(row["contexts"]))
            yield Labelled(sample, key == "right_answer", row["question"])


def read_scifact(folder: Path) -> Iterator[Labelled]:
    for row in read_rows(folder, "faithfulness/scifact_claims"):
        contexts = tuple(" ".join(context["sentences"]) for context in row["contexts"])
        sample = Sample(row["id"], "", answer=row["claim"], contexts=contexts)
        yield Labelled(sample, row["label"] == "SUPPORT", " ".join(map(str, row["cited_doc_ids"])))


def read_realsumm(folder: Path) -> Iterator[Labelled]:
    """One sample per content unit: did at least two of the three annotators find it in the summary?"""
    for row in read_rows(folder, "human/realsumm_scu"):
        for claim in row["claims"]:
            query_id = f"{row['id']} {claim['qid']}"
            sample = Sample(query_id, "", answer=row["response"], references=(claim["statement"],))
            is_there = 2 * claim["votes"].count("p") > len(claim["votes"])
            yield Labelled(sample, is_there, row["doc_id"], f"{row['kind']} {row['system']}", row["id"])


READERS: Mapping[str, tuple[Callable[[Path], Iterator[Labelled]], str, Criterion]] = {
    "begin": (read_begin, "fully attributable to the snippet, or not", ANSWER_IN_CONTEXTS),
    "halueval_qa": (read_halueval, "right answer, or made-up one", ANSWER_IN_CONTEXTS),
    "scifact_claims": (read_scifact, "supported by the abstracts, or not", ANSWER_IN_CONTEXTS),
    "realsumm_scu": (read_realsumm, "content unit in the summary, or not", REFERENCE_IN_ANSWER),
}


def read_task(folder: Path, name: str, limit: int) -> Task:
    """All rows, or those of this many clusters, evenly chosen."""
    reader, labels, criterion = READERS[name]
    rows = list(reader(folder))
    clusters = sorted({row.cluster for row in rows})
    if limit and len(clusters) > limit:
        kept = {*clusters[:: len(clusters) // limit][:limit]}
        rows = [row for row in rows if row.cluster in kept]
    return Task(name, labels, criterion, rows)


def build_judges(blocks: Mapping[str, Mapping[str, Any]], store: Path | None, nli: str | None) -> dict[str, Judge[Any]]:
    """Judges by name, built as a spec with these blocks builds them. The models are `minilm` and `nli`."""
    answers = MemoryAnswers() if store is None else FileAnswers(store, lambda: store.mkdir(parents=True, exist_ok=True))
    models: dict[str, Model[Any]] = {}
    judges: dict[str, Judge[Any]] = {}
    onnx = registry.load("models", "onnx")
    for name, model in {"minilm": "minilm", **({"nli": nli} if nli else {})}.items():
        models[name] = onnx(onnx.node_type(use="onnx", model=model), Context(name, Path.cwd(), answers=answers))
        models[name].prepare()
    for name, block in blocks.items():
        plugin = registry.load("judges", str(block["use"]))
        context = Context(name, models=models, judges=judges)
        judges[name] = plugin(plugin.node_type(**block), context)
    return judges


class Scored(NamedTuple):
    """Scores of a task's rows; NaN if the judge found nothing to judge."""

    scores: Floats
    deciders: list[str]
    notes: list[str]


def score(judge: Judge[Any], task: Task) -> Scored:
    assessment = judge.assess(task.criterion, [row.sample for row in task.rows])
    findings = [finding for finding in assessment.findings if isinstance(finding, Finding)]
    if len(findings) < len(task.rows):
        raise SystemExit(f"{judge.context.name} failed on {len(task.rows) - len(findings)} samples of {task.name}")
    scores = np.array([np.nan if finding.score is None else finding.score for finding in findings])
    return Scored(
        scores, [finding.decided_by or "" for finding in findings], [n.message for n in assessment.written_notes]
    )


def find_auroc(scores: Floats, right: NDArray[np.bool_]) -> float:
    """The area under the ROC curve, from the ranks of the scores; NaN if all labels are equal."""
    ones, zeros = int(right.sum()), int((~right).sum())
    if not ones or not zeros:
        return float("nan")
    return float((rankdata(scores)[right].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def _mean(hits: NDArray[np.bool_]) -> str:
    return f"{hits.mean():.3f}" if len(hits) else "none"


def resample(clusters: Sequence[str], rounds: int) -> Iterator[NDArray[np.intp]]:
    """Rows of clusters drawn with replacement."""
    _, codes = np.unique(np.array(clusters), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    random = np.random.default_rng(SEED)
    for _ in range(rounds):
        yield np.concatenate([groups[at] for at in random.integers(0, len(groups), len(groups))])


def describe_auroc(scored: Scored, task: Task, rounds: int) -> str:
    """`0.861 [0.848, 0.873]`, and how many rows have no score."""
    known = ~np.isnan(scored.scores)
    scores, right = scored.scores[known], task.labels_array[known]
    clusters = [row.cluster for row, is_known in zip(task.rows, known, strict=True) if is_known]
    drawn = [find_auroc(scores[rows], right[rows]) for rows in resample(clusters, rounds)]
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    missing = int((~known).sum())
    text = f"{find_auroc(scores, right):.3f} [{low:.3f}, {high:.3f}]"
    return f"{text} ({missing} without a score)" if missing else text


def find_band(halves: Sequence[tuple[Floats, NDArray[np.bool_]]]) -> tuple[float, float]:
    """The scores below and above which at least `PRECISION` are wrong or right. Sets have equal weight."""
    low = max((t for t in GRID if _share(halves, False, high=t) >= PRECISION), default=0.0)
    high = min((t for t in GRID if _share(halves, True, low=t) >= PRECISION), default=1.0)
    return float(low), float(high)


def _share(
    halves: Sequence[tuple[Floats, NDArray[np.bool_]]], right: bool, low: float = 0.0, high: float = 1.0
) -> float:
    """The share of rows scored from `low` to `high` that have the label. Each set has a total weight of 1."""
    chosen = [(low <= scores) & (scores <= high) for scores, _ in halves]
    hits = sum((one & (labels == right)).mean() for one, (_, labels) in zip(chosen, halves, strict=True))
    total = sum(one.mean() for one in chosen)
    return float(hits / total) if total else 0.0


def find_cut(halves: Sequence[tuple[Floats, NDArray[np.bool_]]]) -> float:
    """The threshold with the best mean of sensitivity and specificity. Tasks have equal weight."""

    def rate(cut: float) -> float:
        rates = [((s[y] >= cut).mean() + (s[~y] < cut).mean()) / 2 for s, y in halves]
        return float(np.mean(rates))

    return float(max(GRID, key=rate))


@dataclass(frozen=True)
class Bench:
    """Everything that the judges are asked, each once."""

    tasks: Sequence[Task]
    store: Path | None
    nli: str | None
    window: int
    rounds: int

    def run(self) -> None:
        """Print all tables as Markdown."""
        alone: dict[str, dict[str, Any]] = {
            "overlap": {"use": "overlap"},
            "embedding": {"use": "embedding", "window": self.window},
        }
        if self.nli:
            alone["nli"] = {"use": "nli", "model": "nli"}
        judges = build_judges(alone, self.store, self.nli)
        bands = self.calibrate(judges)
        low, high = bands["overlap"]
        for last in list(alone)[1:]:
            steps = [{"judge": "overlap", "low": low, "high": high}, last]
            alone[f"overlap > {last}"] = {"use": "cascade", "steps": steps}
        alone["mean of both"] = {"use": "panel", "judges": ["overlap", "embedding"], "by": "mean"}
        self.compare(build_judges(alone, self.store, self.nli))

    def calibrate(self, judges: Mapping[str, Judge[Any]]) -> dict[str, tuple[float, float]]:
        """Print where each judge is sure on the first halves, and the best cut between right and wrong."""
        columns = " | ".join(f"right of these: {task.name}" for task in self.tasks)
        print(f"| judge | sure up to | sure from | best cut | sure of | {columns} |")
        print("|---|---|---|---|---|" + "---|" * len(self.tasks))
        bands = {}
        for name, judge in judges.items():
            halves = []
            for task in (task.half(0) for task in self.tasks):
                scores = score(judge, task).scores
                known = ~np.isnan(scores)
                halves.append((scores[known], task.labels_array[known]))
            low, high = bands[name] = find_band(halves)
            sure = [(scores <= low) | (scores >= high) for scores, _ in halves]
            hits = [_mean(((s >= high) == y)[is_sure]) for (s, y), is_sure in zip(halves, sure, strict=True)]
            shares = np.mean([is_sure.mean() for is_sure in sure])
            cells = " | ".join(hits)
            print(f"| {name} | {low:.2f} | {high:.2f} | {find_cut(halves):.2f} | {shares:.0%} | {cells} |", flush=True)
        return bands

    def compare(self, judges: Mapping[str, Judge[Any]]) -> None:
        """Print AUROC on the second halves, and how many samples each step of a cascade decided."""
        found: dict[tuple[str, str], Scored] = {}
        print("\n| set | n | right | " + " | ".join(judges) + " |\n|---|---|---|" + "---|" * len(judges))
        halves = [task.half(1) for task in self.tasks]
        for task in halves:
            cells = []
            for name, judge in judges.items():
                found[task.name, name] = score(judge, task)
                cells.append(describe_auroc(found[task.name, name], task, self.rounds))
            share = f"{task.labels_array.mean():.0%}"
            print(f"| {task.name} | {len(task.rows):,} | {share} | {' | '.join(cells)} |", flush=True)
        print()
        for (task_name, name), scored in found.items():
            if any(scored.deciders):
                print(f"- {name}, {task_name}: {'; '.join(scored.notes)}")
        for task in halves:
            if task.name == "realsumm_scu":
                self.correlate(task, {name: found[task.name, name] for name in judges})

    def correlate(self, task: Task, found: Mapping[str, Scored]) -> None:
        """Print how completeness, the mean over a summary's content units, agrees with the share annotators found."""
        print("\n| judge | summaries: Pearson | Spearman | systems: Pearson | Spearman |\n|---|---|---|---|---|")
        for name, scored in found.items():
            cells = []
            for group in ("summary", "system"):
                ours, theirs = self._average(task, scored.scores, group)
                cells += [f"{pearsonr(ours, theirs)[0]:.3f}", f"{spearmanr(ours, theirs)[0]:.3f}"]
            print(f"| {name} | {' | '.join(cells)} |")

    def _average(self, task: Task, scores: Floats, group: str) -> tuple[list[float], list[float]]:
        groups: dict[str, list[int]] = {}
        for place, row in enumerate(task.rows):
            if not np.isnan(scores[place]):
                groups.setdefault(getattr(row, group), []).append(place)
        right = task.labels_array
        ours = [float(scores[places].mean()) for places in groups.values()]
        return ours, [float(right[places].mean()) for places in groups.values()]


def compare_models(tasks: Sequence[Task], store: Path | None, model: str, rounds: int) -> None:
    """Print what `embedding` is worth with another model, its cosines scaled and as they are, beside `overlap`.

    A score from the threshold up says "right". The best cut is that of the first halves; all else is of the second.
    """
    onnx = registry.load("models", "onnx")

    class Unscaled(onnx):  # type: ignore[misc,valid-type]
        is_calibrated = True

    answers = MemoryAnswers() if store is None else FileAnswers(store, lambda: store.mkdir(parents=True, exist_ok=True))
    kinds = {"minilm": ("minilm", onnx), "scaled": (model, onnx), "as they are": (model, Unscaled)}
    models = {
        name: kind(onnx.node_type(use="onnx", model=path), Context(name, Path.cwd(), answers=answers))
        for name, (path, kind) in kinds.items()
    }
    judges: dict[str, tuple[Judge[Any], float]] = {}
    for name, block, least in [
        ("overlap", {"use": "overlap"}, overlap.SUPPORTED_FROM),
        *((name, {"use": "embedding", "model": name}, embedding.SUPPORTED_FROM) for name in models),
    ]:
        plugin = registry.load("judges", block["use"])
        judges[name] = (plugin(plugin.node_type(**block), Context(name, models=models)), least)
    for one in models.values():
        one.prepare()
        if isinstance(one, Unscaled):
            continue
        scale = cosine_scale.find_scale(one)
        print(
            f"- {one.context.name}: unrelated texts {scale.mean:.3f}, 90% of pairs {scale.low:.3f} to {scale.high:.3f}"
        )
    print(
        "\n| judge | set | AUROC | accuracy | sensitivity | specificity | mean score |\n|---|---|---|---|---|---|---|"
    )
    for name, (judge, least) in judges.items():
        first, balanced = [], []
        for task in tasks:
            whole = score(judge, task)
            half = np.array([hashlib.sha256(row.cluster.encode()).digest()[0] % 2 for row in task.rows])
            known = ~np.isnan(whole.scores)
            first.append((whole.scores[known & (half == 0)], task.labels_array[known & (half == 0)]))
            later = Scored(whole.scores[half == 1], [], [])
            scores, right = whole.scores[known & (half == 1)], task.labels_array[known & (half == 1)]
            says = scores >= least
            hit, spared = says[right].mean(), (~says)[~right].mean()
            balanced.append((hit + spared) / 2)
            numbers = ((says == right).mean(), hit, spared, scores.mean())
            cells = " | ".join(f"{number:.3f}" for number in numbers)
            print(f"| {name} | {task.name} | {describe_auroc(later, task.half(1), rounds)} | {cells} |", flush=True)
        print(f"| {name}, best cut {find_cut(first):.2f} | mean of all | | {np.mean(balanced):.3f} (balanced) | | | |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=os.environ.get("RAGEVAL_SHARED_DATA"))
    parser.add_argument("--store", type=Path)
    parser.add_argument("--nli")
    parser.add_argument("--model")
    parser.add_argument("--window", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    if options.folder is None or not Path(options.folder).is_dir():
        parser.error("name the folder with the data, or set RAGEVAL_SHARED_DATA")
    tasks = [read_task(Path(options.folder), name, options.limit) for name in READERS]
    if options.model is not None:
        compare_models(tasks, options.store, options.model, options.resamples)
        return
    Bench(tasks, options.store, options.nli, options.window, options.resamples).run()


if __name__ == "__main__":
    main()
