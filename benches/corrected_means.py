"""Corrected means: how often their intervals cover what people would say, and how wide they are.

    python benches/corrected_means.py [--draws 2000] [--rows 500] [--labels 100] [--data ../shared/data]

The labelled sets give each answer a person's label; `overlap` and the lengths of the answers are the judges. Each draw
takes `rows` answers at random, hides all labels but those of `labels` of them, and asks for the mean of the labels of
the whole set. Contenders, in the same draws:

- `corrected`: this package (PPI++).
- `truescore`: the prediction-powered interval of truescore, if it is installed.
- `labels alone`: the interval of Student's t.
- `judge alone`: the mean of the judge's values with the interval of the normal distribution; it ignores the bias.

Exits with 1 if the corrected intervals cover less than 94% or more than 96% of the time, over all sets.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
HERE = Path(__file__).resolve().parent
NEAR = 0.01


class Labelled(NamedTuple):
    """Answers with a judge's values and people's labels, both from 0 to 1."""

    name: str
    judged: Floats
    labelled: Floats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--labels", type=int, default=100)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    options = parser.parse_args()
    contenders = {name: find for name, find in CONTENDERS.items() if name != "truescore" or find_spec("truescore")}
    print(f"{'set and judge':<28}{'mean':>7}" + "".join(f"{name:>30}" for name in contenders))
    print(f"{'':<35}" + f"{'covers':>14}{'width':>8}{'at 95%':>8}" * len(contenders))
    covered: list[float] = []
    for one in load_sets(options.data):
        found = {name: simulate(one, find, options) for name, find in contenders.items()}
        covered.append(found["corrected"].coverage)
        cells = "".join(f"{cell.coverage:>14.1%}{cell.width:>8.4f}{cell.width_at_95:>8.4f}" for cell in found.values())
        print(f"{one.name:<28}{one.labelled.mean():>7.3f}{cells}", flush=True)
    overall = float(np.mean(covered))
    print(f"\ncorrected, all sets: {overall:.1%} covered")
    sys.exit(0 if abs(overall - 0.95) <= NEAR else 1)


class Found(NamedTuple):
    """What a contender's intervals did: how often they covered the mean of the set, and how wide they were.

    `width_at_95` is the mean width after all intervals of the contender are stretched, or shrunk, by one factor so that
    they cover in exactly 95% of the draws. Only these widths compare contenders that cover differently often.
    """

    coverage: float
    width: float
    width_at_95: float


def simulate(one: Labelled, find: Callable[[Floats, Floats, Floats], tuple[float, float]], options: Any) -> Found:
    """What a contender does over all draws."""
    random = np.random.default_rng(7)
    truth, misses, widths = one.labelled.mean(), [], []
    for _ in range(options.draws):
        drawn = random.choice(len(one.judged), size=options.rows, replace=True)
        first, rest = drawn[: options.labels], drawn[options.labels :]
        low, high = find(one.judged[first], one.labelled[first], one.judged[rest])
        widths.append(high - low)
        misses.append(abs(truth - (low + high) / 2) / ((high - low) / 2))
    width = float(np.mean(widths))
    return Found(float(np.mean(np.array(misses) <= 1)), width, width * float(np.quantile(misses, 0.95)))


def find_corrected(judged: Floats, labelled: Floats, unlabelled: Floats) -> tuple[float, float]:
    from rageval_spec.statistics.raters.corrected_means import correct_mean, respect_bounds

    mean = correct_mean(judged, labelled, unlabelled)
    interval = respect_bounds(mean, labelled, (0.0, 1.0), 0.95).interval
    assert interval is not None
    return interval.low, interval.high


def find_labels_alone(judged: Floats, labelled: Floats, unlabelled: Floats) -> tuple[float, float]:
    from rageval_spec.statistics.raters.corrected_means import correct_mean

    interval = correct_mean(judged, labelled, unlabelled).labelled_interval
    assert interval is not None
    return interval.low, interval.high


def find_judge_alone(judged: Floats, _labelled: Floats, unlabelled: Floats) -> tuple[float, float]:
    everything = np.concatenate([judged, unlabelled])
    half = 1.96 * everything.std(ddof=1) / math.sqrt(len(everything))
    return everything.mean() - half, everything.mean() + half


def find_peer(judged: Floats, labelled: Floats, unlabelled: Floats) -> tuple[float, float]:
    from truescore import ppi_estimate

    found = ppi_estimate(np.concatenate([judged, unlabelled]), labelled, np.arange(len(labelled)))
    return found.low, found.high


CONTENDERS = {
    "corrected": find_corrected,
    "truescore": find_peer,
    "labels alone": find_labels_alone,
    "judge alone": find_judge_alone,
}


def load_sets(data: Path) -> Iterator[Labelled]:
    for name, rows in (
        ("halueval_qa", list_halueval(data / "faithfulness" / "halueval_qa.jsonl")),
        ("begin", list_begin(data / "faithfulness" / "begin.jsonl.gz")),
        ("scifact_claims", list_scifact(data / "faithfulness" / "scifact_claims.jsonl.gz")),
        ("summeval_op", list_ratings(data / "human" / "summeval_op.jsonl.gz")),
    ):
        labelled = np.array([row["label"] for row in rows], dtype=float)
        yield Labelled(f"{name}, overlap", judge(rows), labelled)
        lengths = np.array([len(row["answer"]) for row in rows], dtype=float)
        yield Labelled(f"{name}, length", lengths.argsort().argsort() / (len(rows) - 1), labelled)


def judge(rows: list[dict[str, Any]]) -> Floats:
    """The faithfulness of each answer by `overlap`; an answer that cannot be scored counts as 0.5."""
    import rageval_spec

    asked = [
        {"id": f"{place:06d}", "question": "?", "answer": row["answer"], "contexts": row["contexts"]}
        for place, row in enumerate(rows)
    ]
    values = rageval_spec.judge(asked, ["faithfulness"], judge="overlap").values.sort("query_id")
    assert values.height == len(rows)
    return values.get_column("value").fill_null(0.5).to_numpy()


def read(path: Path) -> Iterator[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    yield from map(json.loads, content.splitlines())


def list_halueval(path: Path) -> list[dict[str, Any]]:
    parts = (("right_answer", 1.0), ("hallucinated_answer", 0.0))
    return [
        {"answer": row[part], "contexts": row["contexts"], "label": label}
        for row in read(path)
        for part, label in parts
    ]


def list_begin(path: Path) -> list[dict[str, Any]]:
    return [
        {"answer": row["response"], "contexts": row["contexts"], "label": float(row["label"])}
        for row in read(path)
        if row["label"] is not None
    ]


def list_scifact(path: Path) -> list[dict[str, Any]]:
    return [
        {
            "answer": row["claim"],
            "contexts": [" ".join(document["sentences"]) for document in row["contexts"]],
            "label": float(row["label"] == "SUPPORT"),
        }
        for row in read(path)
    ]


def list_ratings(path: Path) -> list[dict[str, Any]]:
    return [
        {
            "answer": row["response"],
            "contexts": row["contexts"],
            "label": (float(np.mean([*row["ratings"]["faithfulness"].values()])) - 1) / 4,
        }
        for row in read(path)
    ]


if __name__ == "__main__":
    main()
