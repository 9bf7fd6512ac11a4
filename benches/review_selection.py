"""Chosen labels: whether means stay right if people label the worst answers besides some at random.

    python benches/review_selection.py [--draws 300] [--rows 1500] [--data ../shared/data]

The answers of BEGIN and HaluEval have a person's label each; `overlap` judges them. Each draw chooses answers with
another seed, as `rageval-spec review select` does, shows the labels of these answers only, and asks for the mean of the
labels of all answers. For each way of choosing:

- `labels`: the mean number of chosen answers.
- `naive`: the mean of their labels, which ignores how they were chosen.
- `corrected`: the corrected mean, and how often its interval covers the mean of all labels.
- `labels alone`: the same without the judge.

The interval is for the questions that the answers are drawn from, so it covers the mean of these answers too often
rather than too rarely. Exits with 1 if it covers it in less than 93% of the draws, or if the mean is off by 0.01.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from corrected_means import list_begin, list_halueval

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.review.tasks import ChosenAnswer
    from rageval_spec.statistics.raters.corrected_means import CorrectedMean

HERE = Path(__file__).resolve().parent
LEAST, NEAR = 0.93, 0.01
WAYS: Mapping[str, Mapping[str, Any]] = {
    "the usual": {},
    "random 100": {"random": 100, "suspicions": ()},
    "random 100, low 50": {"random": 100, "suspicions": ("low",), "most": 50},
    "random 5%, unsure 40": {"random": 0.05, "suspicions": ("unsure",), "most": 40},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    options = parser.parse_args()
    is_right = True
    for name, rows in (
        ("begin", list_begin(options.data / "faithfulness" / "begin.jsonl.gz")),
        ("halueval_qa", list_halueval(options.data / "faithfulness" / "halueval_qa.jsonl")),
    ):
        evaluation, truth = judge(rows[: options.rows])
        print(f"\n{name}: {len(truth)} answers, mean of all labels {np.mean([*truth.values()]):.3f}")
        print(f"{'chosen':<22}{'labels':>8}{'naive':>8}{'corrected':>18}{'labels alone':>18}")
        for way, wanted in WAYS.items():
            is_right &= simulate(evaluation, truth, way, wanted, options.draws)
    sys.exit(0 if is_right else 1)


def judge(rows: list[dict[str, Any]]) -> tuple[Evaluation, dict[str, float]]:
    """The evaluation of the answers, and the label of each answer that has a value."""
    import rageval_spec

    asked = [
        {"id": f"{at:05d}", "question": "?", "answer": row["answer"], "contexts": row["contexts"]}
        for at, row in enumerate(rows)
    ]
    evaluation = rageval_spec.judge(asked, ["faithfulness"], judge="overlap").data
    scored = evaluation.values.drop_nulls("value").get_column("query_id").to_list()
    return evaluation, {name: rows[int(name)]["label"] for name in scored}


def simulate(
    evaluation: Evaluation, truth: Mapping[str, float], way: str, wanted: Mapping[str, Any], draws: int
) -> bool:
    """Print how good the means of one way of choosing are; whether the corrected one is right."""
    from rageval_spec.review.selection import WantedSelection, select_answers

    mean = np.mean([*truth.values()])
    counts, naive, values, hits, alone = [], [], [], [], []
    for seed in range(draws):
        chosen = select_answers(evaluation, WantedSelection(seed=seed, **wanted)).chosen
        found = correct(evaluation, chosen, truth)
        assert found.interval is not None and found.labelled_interval is not None
        counts.append(found.labels)
        naive.append(np.mean([truth[one.key[2]] for one in chosen if one.key[2] in truth]))
        values.append(found.value)
        hits.append(found.interval.low <= mean <= found.interval.high)
        alone.append(found.labelled_interval.low <= mean <= found.labelled_interval.high)
    numbers = f"{np.mean(counts):>8.0f}{np.mean(naive):>8.3f}{np.mean(values):>10.3f}{np.mean(hits):>8.1%}"
    print(f"{way:<22}{numbers}{np.mean(alone):>18.1%}", flush=True)
    return bool(np.mean(hits) >= LEAST and abs(np.mean(values) - mean) < NEAR)


def correct(evaluation: Evaluation, chosen: Sequence[ChosenAnswer], truth: Mapping[str, float]) -> CorrectedMean:
    """The corrected mean of people who give each chosen answer its label."""
    from rageval_spec.calibration.labelled_items import join_labels
    from rageval_spec.data.labels import Label
    from rageval_spec.statistics.raters.corrected_means import correct_mean, respect_bounds

    labels = [
        Label(one.key[2], "faithfulness", truth[one.key[2]], "ann", probability=one.probability)
        for one in chosen
        if one.key[2] in truth
    ]
    joined = join_labels(evaluation, labels, "faithfulness")
    weights = None if joined.weights is None else np.array(joined.weights)
    others = np.array([*joined.others.values()])
    labelled = np.array(joined.labelled)
    mean = correct_mean(np.array(joined.judged), labelled, others, weights=weights)
    return respect_bounds(mean, labelled, (0.0, 1.0), 0.95)


if __name__ == "__main__":
    main()
