"""Generated questions: whether sets of `generate --no-model` rank retrievers as people's questions do.

    python benches/generate.py [NAME...] [--data FOLDER] [--store FOLDER] [--count 300] [--seeds 3]

For each corpus, questions are generated without a model, and all retrievers answer them and people's questions.
Kendall's tau-b compares the two orders of the retrievers by mean nDCG@10: 1 is the same order, 0 is chance. Its
interval is from resampling both kinds of questions. `decided` counts the pairs of retrievers that people's questions
tell apart (a 95% interval of the paired difference without 0) and how many of those the generated ones put in the same
order. `left in` searches the whole corpus instead, from which nothing is held out.

The retrievers were chosen before the first result was seen. FIVE has two settings of BM25, a dense retriever, a hybrid
and a weak one; MORE adds seven, because five retrievers have only ten pairs. Development used only the corpora of
`DEVELOPMENT`, the figures are those of `TEST`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rageval_spec
from rageval_spec.generation.documents import read_documents
from rageval_spec.generation.offline_questions import make_offline_set

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "shared" / "data" / "retrieval"
TEST = ("scifact", "nq_oracle", "xquad_en")
DEVELOPMENT = ("2wikimultihop", "cranfield", "medline", "xquad_de")
METRIC = "ndcg@10"
MODELS: Mapping[str, Mapping[str, Any]] = {
    "minilm": {"use": "onnx", "model": "minilm"},
    "first16": {"use": "onnx", "model": "minilm", "max_length": 16},
    "first64": {"use": "onnx", "model": "minilm", "max_length": 64},
    "dims64": {"use": "onnx", "model": "minilm", "dimensions": 64},
}
FIVE: Mapping[str, Mapping[str, Any]] = {
    "bm25": {"use": "bm25"},
    "bm25 b=0 k1=3": {"use": "bm25", "stop_words": "none", "b": 0, "k1": 3},
    "dense": {"use": "dense", "model": "minilm"},
    "hybrid": {"use": "hybrid", "systems": ["bm25", "dense"]},
    "dense first16": {"use": "dense", "model": "first16"},
}
MORE: Mapping[str, Mapping[str, Any]] = {
    "bm25 k1=0.9 b=0.4": {"use": "bm25", "k1": 0.9, "b": 0.4},
    "bm25 no stop words": {"use": "bm25", "stop_words": "none"},
    "bm25+": {"use": "bm25", "method": "bm25+"},
    "dense first64": {"use": "dense", "model": "first64"},
    "dense dims64": {"use": "dense", "model": "dims64"},
    "hybrid 3:1": {"use": "hybrid", "systems": ["bm25", "dense"], "method": "weighted", "weights": [3, 1]},
    "hybrid weak": {"use": "hybrid", "systems": ["bm25 b=0 k1=3", "dense first16"]},
}
DRAWS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=TEST)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kinds", action="store_true", help="Show each kind of question by itself too.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        store = options.store or Path(temporary)
        for name in options.names:
            human = measure({"use": "beir", "path": str(options.data / name)}, store)
            show_means(name, human)
            for seed in range(options.seeds):
                generate_and_compare(options.data / name, human, store, options.count, seed, by_kind=options.kinds)


def generate_and_compare(
    folder: Path, human: Mapping[str, Values], store: Path, count: int, seed: int, *, by_kind: bool
) -> None:
    """Generate questions over a corpus and print how they rank the retrievers."""
    documents = read_documents(folder)
    made = make_offline_set(documents, count, seed=seed)
    whole = [{"doc_id": one.doc_id, "title": one.title, "text": one.text} for one in documents.documents]
    with tempfile.TemporaryDirectory() as temporary:
        for name, rows in (("golden", made.rows), ("corpus", made.corpus), ("whole", whole)):
            Path(temporary, f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        found, kept = (
            measure(
                {"use": "jsonl", "path": f"{temporary}/golden.jsonl", "corpus": f"{temporary}/{corpus}.jsonl"}, store
            )
            for corpus in ("corpus", "whole")
        )
    print(f"  seed {seed}: {len(made.rows)} questions, {len(made.rejected)} dropped")
    print("    " + ", ".join(f"{name} {column.mean():.3f}" for name, column in found.items()))
    print(f"    left in  five   {compare(human, kept, [*FIVE])}")
    kinds = [row["type"] for row in sorted(made.rows, key=lambda row: row["query_id"])]
    for kind in ("all", *sorted(set(kinds))) if by_kind else ("all",):
        part = {name: column[[kind in ("all", one) for one in kinds]] for name, column in found.items()}
        for title, names in (("five", [*FIVE]), ("twelve", [*FIVE, *MORE])):
            print(f"    {kind:<9}{title:<7}{compare(human, part, names)}", flush=True)


def measure(dataset: Mapping[str, Any], store: Path) -> dict[str, Values]:
    """The values of all retrievers on a dataset, in the order of its queries."""
    spec = {
        "version": 1,
        "name": "generate",
        "datasets": {"questions": dataset},
        "models": {name: dict(node) for name, node in MODELS.items()},
        "systems": {_name(name): _rename(node) for name, node in {**FIVE, **MORE}.items()},
        "metrics": [METRIC],
        "statistics": {"permutations": 100, "resamples": 100},
    }
    evaluation = rageval_spec.run(spec, store=store, record=False, folder=HERE)
    values = evaluation.values.sort("query_id")
    found = {name: values.filter(values["system"] == _name(name))["value"].to_numpy() for name in (*FIVE, *MORE)}
    return {name: np.nan_to_num(column.astype(float)) for name, column in found.items()}


def _name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def _rename(node: Mapping[str, Any]) -> dict[str, Any]:
    return {**node, **({"systems": [_name(name) for name in node["systems"]]} if "systems" in node else {})}


def show_means(title: str, values: Mapping[str, Values]) -> None:
    """Print the mean of each retriever."""
    print(f"\n{title}: {len(values['bm25']):,} questions of people")
    for name, column in sorted(values.items(), key=lambda item: -float(item[1].mean())):
        print(f"  {'*' if name in FIVE else ' '} {name:<22}{column.mean():.4f}")


def tau(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's tau-b."""
    from scipy.stats import kendalltau

    return float(kendalltau(first, second).statistic)


def compare(human: Mapping[str, Values], made: Mapping[str, Values], names: Sequence[str]) -> str:
    """Tau with its interval, and how many decided pairs agree."""
    random = np.random.default_rng(0)
    point = tau(*([float(values[name].mean()) for name in names] for values in (human, made)))
    drawn = []
    tables = [np.stack([values[name] for name in names]) for values in (human, made)]
    for _ in range(DRAWS):
        means = [table[:, random.integers(0, table.shape[1], table.shape[1])].mean(axis=1) for table in tables]
        drawn.append(tau(means[0].tolist(), means[1].tolist()))
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    pairs = [pair for pair in combinations(names, 2) if is_decided(human[pair[0]] - human[pair[1]], random)]
    same = sum((human[a].mean() > human[b].mean()) == (made[a].mean() > made[b].mean()) for a, b in pairs)
    return f"tau {point:+.2f} [{low:+.2f}, {high:+.2f}], decided {same} of {len(pairs)}"


def is_decided(differences: Values, random: np.random.Generator) -> bool:
    """Whether the mean difference is not 0, by its bootstrap interval."""
    count = len(differences)
    means = differences[random.integers(0, count, (DRAWS, count))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return bool(low > 0 or high < 0)


if __name__ == "__main__":
    main()
