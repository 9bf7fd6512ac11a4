"""Measure how citations are read, and how well judges agree with people about them, on published answers.

    python benches/citations.py [FOLDER] [--nli MODEL] [--resamples 1000]

FOLDER contains `human/crowdrag25_*.jsonl.gz` and `rag_qa/{quotesum_dev.jsonl,lfrqa_*.jsonl.gz}`. The default is the
folder in RAGEVAL_SHARED_DATA. `--nli` names an entailment classifier, a folder or a model on the Hugging Face Hub.

Reading: the citations found, as a share of the numbers that stand in brackets. CrowdRAG-25 is read twice: told that
numbers begin at 0, and not told.

QuoteSum: people wrote answers from 2 to 6 sources and marked what they took from each. For every statement and source,
the judge says how far the source supports the statement. AUROC is the probability that a source that a person cites
scores higher than one that nobody cites there (ties count half). The metrics are those of the people's own citations,
and of the same citations moved to the next source. What a person did not cite may support the statement, too.

CrowdRAG-25: five people compared two answers to one question. The share of pairs in which the answer with more cited
documents is the one that they say covers more (`coverage_broad`), without ties.

Intervals are 95 % percentiles of a bootstrap over questions.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rageval_spec import registry
from rageval_spec.data.evidence.citations import list_statements
from rageval_spec.data.findings import Finding
from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.cited_statements import STATEMENT_IN_CITED
from rageval_spec.plugin import Context, Judge
from rageval_spec.recorded.citations import find_citations

SEED = 7
METRICS: Sequence[tuple[str, dict[str, Any]]] = (
    ("citation_support", {"mode": "precision", "citations": "all"}),
    ("citation_recall", {}),
    ("citation_precision", {}),
    ("sentence_precision", {"uncited": "skip"}),
)


def read(path: Path) -> list[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.decode().split("\n") if line]


def bootstrap(groups: Sequence[Sequence[Any]], statistic: Callable[[list[Any]], float], resamples: int) -> str:
    """The statistic of all items, and its interval over groups."""
    generator = np.random.default_rng(SEED)
    whole = statistic([one for group in groups for one in group])
    drawn = [generator.integers(0, len(groups), len(groups)) for _ in range(resamples)]
    values = [statistic([one for at in places for one in groups[at]]) for places in drawn]
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return f"{whole:.3f} [{low:.3f}, {high:.3f}]"


def auroc(pairs: list[tuple[bool, float]]) -> float:
    scores = np.array([score for _, score in pairs])
    is_cited = np.array([cited for cited, _ in pairs])
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positive = int(is_cited.sum())
    return float((ranks[is_cited].sum() - positive * (positive + 1) / 2) / (positive * (len(pairs) - positive)))


def count_in_brackets(text: str) -> int:
    return sum(len(re.findall(r"\d+", group)) for group in re.findall(r"\[[\d\s,–-]+\]", text))


def report_reading(folder: Path) -> None:
    rows = read(folder / "human/crowdrag25_responses.jsonl.gz")
    for first in (0, None):
        found = [find_citations(one["response"], None, one["reference_ids"], first=first) for one in rows]
        told = [find_citations(one["response"], None, one["reference_ids"], first=0) for one in rows]
        written = sum(count_in_brackets(one["response"]) for one in rows)
        unknown = sum(cited.context is None for of in found for cited in of)
        shifted = sum(one != other for one, other in zip(found, told, strict=True))
        print(
            f"crowdrag25, citations_from {first}: {sum(map(len, found))} of {written} read, {unknown} name nothing, "
            f"{shifted} of {len(rows)} answers counted from the wrong number"
        )
    for name in ("fiqa", "writing"):
        rows = read(folder / f"rag_qa/lfrqa_{name}.jsonl.gz")
        found = [find_citations(one["answer_with_citations"], None, [*map(str, one["gold_doc_ids"])]) for one in rows]
        unknown = sum(cited.context is None for of in found for cited in of)
        written = sum(count_in_brackets(one["answer_with_citations"]) for one in rows)
        print(f"lfrqa_{name}: {sum(map(len, found))} of {written} read, {unknown} name nothing")


def read_quotes(folder: Path) -> dict[str, list[Sample]]:
    """People's answers with what they cite, by question."""
    groups: dict[str, list[Sample]] = defaultdict(list)
    for row in read(folder / "rag_qa/quotesum_dev.jsonl"):
        texts = tuple(f"{one['title']}. {one['text']}" for one in row["contexts"])
        cited = find_citations(row["answer"], texts, None, first=1)
        sample = Sample(row["id"], row["question"], row["answer"], contexts=texts, citations=cited)
        groups[row["qid"]].append(sample)
    return groups


def report_agreement(name: str, judge: Judge[Any], quotes: dict[str, list[Sample]], resamples: int) -> None:
    asked: list[Sample] = []
    keys: list[tuple[str, bool]] = []
    for question, samples in quotes.items():
        for sample in samples:
            assert sample.contexts is not None
            for statement in list_statements(sample.answer or "", sample.citations or ()):
                cited = {one.context for one in statement.citations}
                for place, text in enumerate(sample.contexts if cited else ()):
                    asked.append(replace(sample, answer=statement.text, contexts=(text,)))
                    keys.append((question, place in cited))
    findings = judge.assess(STATEMENT_IN_CITED, asked).findings
    pairs: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for (question, is_cited), finding in zip(keys, findings, strict=True):
        if isinstance(finding, Finding) and finding.score is not None:
            pairs[question].append((is_cited, finding.score))
    groups = [*pairs.values()]
    counts = Counter(cited for group in groups for cited, _ in group)
    told = f"{counts[True]} cited and {counts[False]} other sources of statements"
    print(f"quotesum, {name}: AUROC {bootstrap(groups, auroc, resamples)}, {told}")
    for word, keys_of in METRICS:
        plugin = registry.load("metrics", word)
        node = plugin.node_type.model_validate({"use": word, "judge": name, **keys_of})
        metric = plugin(node, Context(word, judges={name: judge}))
        line = []
        for moved in (False, True):
            values = [_measure(metric, [_move(one) if moved else one for one in of]) for of in quotes.values()]
            line.append(bootstrap(values, lambda found: float(np.mean(found)) if found else np.nan, resamples))
        print(f"  {metric.name}: people's {line[0]}, moved {line[1]}")


def _measure(metric: Any, samples: list[Sample]) -> list[float]:
    return [one.value for one in metric.compute(samples).measurements if one.value is not None]


def _move(sample: Sample) -> Sample:
    count = len(sample.contexts or ())
    cited = tuple(replace(one, context=((one.context or 0) + 1) % count) for one in sample.citations or ())
    return replace(sample, citations=cited)


def report_coverage(folder: Path, resamples: int) -> None:
    rows = read(folder / "human/crowdrag25_responses.jsonl.gz")
    cited = {
        one["id"]: len({of.context for of in find_citations(one["response"], None, one["reference_ids"], first=0)})
        for one in rows
    }
    agreed: dict[str, list[bool]] = defaultdict(list)
    for pair in read(folder / "human/crowdrag25_pairs.jsonl.gz"):
        votes = Counter(pair["votes"]["coverage_broad"])
        difference, vote = cited[pair["response_a"]] - cited[pair["response_b"]], votes["a"] - votes["b"]
        if difference and vote:
            agreed[pair["topic"]].append((difference > 0) == (vote > 0))
    groups = [*agreed.values()]
    print(
        f"crowdrag25: the answer that cites more documents covers more, say most people, in "
        f"{bootstrap(groups, lambda found: float(np.mean(found)), resamples)} of {sum(map(len, groups))} pairs"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(os.environ.get("RAGEVAL_SHARED_DATA", ".")))
    parser.add_argument("--nli", help="an entailment classifier, for the judge nli")
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    report_reading(options.folder)
    quotes = read_quotes(options.folder)
    for name, judge in _make_judges(options.nli).items():
        report_agreement(name, judge, quotes, options.resamples)
    report_coverage(options.folder, options.resamples)


def _make_judges(classifier: str | None) -> dict[str, Judge[Any]]:
    overlap = registry.load("judges", "overlap")
    judges: dict[str, Judge[Any]] = {"overlap": overlap(overlap.node_type(use="overlap"), Context("overlap"))}
    if classifier is not None:
        onnx, nli = registry.load("models", "onnx"), registry.load("judges", "nli")
        model = onnx(onnx.node_type.model_validate({"use": "onnx", "model": classifier}), Context("nli"))
        judges["nli"] = nli(
            nli.node_type.model_validate({"use": "nli", "model": "nli"}), Context("nli", models={"nli": model})
        )
    return judges


if __name__ == "__main__":
    main()
