"""Corrected ranking metrics: how often intervals cover what people's grades would give, and how wide they are.

    python benches/corrected_rankings.py [--data ../shared/data] [--collections scifact] [--draws 60]
        [--labels 100 200 400] [--errors spread rank query missed grades overlap] [--by-grade] [--not-stated]

Each collection's qrels are people's grades. The pool has the first 20 documents of two systems (BM25, and BM25 on three
words of the query) and all judged ones. A draw takes as many queries as there are, with replacement, lets a judge err
on them, takes labels by rank and query, and asks for the mean over all queries of the collection. `overlap` is a judge
that counts words instead of planted errors. `--by-grade` takes half of the labels where the judge says relevant, and
`--not-stated` does not say that each query has a relevant document.

For each measure there is a line for the two systems and their difference: the coverage of 95% intervals, their median
width, and the coverage of the interval of the judge's own mean. For precision, `alone` is the width from labels alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rageval_spec import kernels
from rageval_spec.libraries import pl
from rageval_spec.statistics.raters.corrected_rankings import GradedPairs, average_queries, correct_queries
from rageval_spec.statistics.weighted_clusters import lay_out_clusters

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
MEASURES = ("ndcg@10", "recall@10", "precision@10", "rr")
SHARES = (0.3, 0.35, 0.35)
DEPTH, FAR = 20, 9999


class Pool(NamedTuple):
    """Pairs by query: people's grades, the rank in each system (FAR if not retrieved), and the share of query words."""

    queries: Ints
    people: Ints
    ranks: tuple[Ints, Ints]
    overlap: Floats

    @property
    def best(self) -> Ints:
        return np.minimum(*self.ranks)

    def draw(self, random: np.random.Generator) -> Pool:
        """As many queries, with replacement."""
        ends = np.searchsorted(self.queries, np.arange(self.queries[-1] + 2))
        chosen = random.integers(0, len(ends) - 1, len(ends) - 1)
        rows = np.concatenate([np.arange(ends[one], ends[one + 1]) for one in chosen])
        queries = np.repeat(np.arange(len(chosen)), np.diff(ends)[chosen])
        return Pool(queries, self.people[rows], tuple(of[rows] for of in self.ranks), self.overlap[rows])


def load(folder: Path, most: int = 600) -> Pool:
    """The pool of the first queries of a collection."""
    words = re.compile(r"\w+").findall
    documents = {row["_id"]: words(f"{row.get('title', '')} {row['text']}".lower()) for row in read(folder, "corpus")}
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        judged[query][document] = int(grade)
    texts = {row["_id"]: words(row["text"].lower()) for row in read(folder, "queries")}
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, text in enumerate(documents.values()):
        for word, count in Counter(text).items():
            postings[word].append((place, count))
    names, lengths = [*documents], np.array([len(text) for text in documents.values()])
    columns: tuple[list[Any], ...] = ([], [], [], [], [])
    for number, query in enumerate([*judged][:most]):
        known = sorted(
            {word for word in texts[query] if word in postings}, key=lambda word: (len(postings[word]), word)
        )
        found = [search(of, postings, lengths, names) for of in (known, known[1:4])]
        for document in dict.fromkeys([*found[0], *found[1], *judged[query]]):
            share = len({*documents[document]} & {*known}) / max(1, len(known)) if document in documents else 0.0
            ranks = [of.index(document) + 1 if document in of else FAR for of in found]
            for column, value in zip(columns, (number, judged[query].get(document, 0), *ranks, share), strict=True):
                column.append(value)
    queries, people, first, second, overlap = map(np.array, columns)
    return Pool(queries, people, (first, second), overlap)


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    plain = folder / f"{name}.jsonl"
    text = (
        plain.read_text() if plain.exists() else gzip.decompress(plain.with_suffix(".jsonl.gz").read_bytes()).decode()
    )
    return [json.loads(line) for line in text.splitlines()]


def search(words: list[str], postings: dict[str, list[tuple[int, int]]], lengths: Ints, names: list[str]) -> list[str]:
    scores = np.zeros(len(names))
    for word in words:
        places, counts = np.array(postings[word]).T
        rarity = math.log(1 + (len(names) - len(places) + 0.5) / (len(places) + 0.5))
        scores[places] += rarity * counts * 1.9 / (counts + 0.9 * (0.6 + 0.4 * lengths[places] / lengths.mean()))
    return [names[place] for place in np.argsort(-scores, kind="stable")[:DEPTH] if scores[place] > 0]


def measure(queries: Ints, ranks: Ints, grades: Ints) -> Floats:
    """The values of `MEASURES`, shape (measures, queries). Queries are numbers without gaps, in ascending order."""
    counts = np.bincount(queries)
    column = np.arange(len(queries)) - np.repeat(np.cumsum(counts) - counts, counts)
    gains, places = np.zeros((len(counts), counts.max())), np.full((len(counts), counts.max()), float(FAR))
    gains[queries, column], places[queries, column] = np.maximum(grades, 0), ranks
    is_good, on_top = gains > 0, places <= 10
    first = np.where(is_good, places, FAR).min(axis=1)
    best = -np.sort(-gains, axis=1)[:, :10]
    ideal = (best / np.log2(np.arange(best.shape[1]) + 2)).sum(axis=1)
    found = (gains * on_top / np.log2(places + 1)).sum(axis=1)
    good = (is_good & on_top).sum(axis=1)
    return np.array(
        [found / np.where(ideal > 0, ideal, 1), good / np.maximum(1, is_good.sum(axis=1)), good / 10,
         np.where(first < FAR, 1 / first, 0.0)]
    )  # fmt: skip


def check(pool: Pool) -> None:
    """Make sure that the measures are the package's."""
    names = pl.Series([f"{query:05}" for query in pool.queries]), pl.Series([f"d{n}" for n in range(len(pool.queries))])
    table = pl.DataFrame({"query_id": names[0], "doc_id": names[1], "relevance": pool.people, "rank": pool.ranks[0]})
    run = table.filter(pl.col("rank") < FAR).select("query_id", "doc_id", score=-pl.col("rank").cast(float))
    options = kernels.RankingOptions(missing="zero")
    ranked = kernels.evaluate_ranking(table.select("query_id", "doc_id", "relevance"), run, MEASURES, options)
    assert np.abs(ranked.values - measure(pool.queries, pool.ranks[0], pool.people)).max() < 1e-9


def judge(pool: Pool, errors: str, random: np.random.Generator) -> Ints:
    """The judge's grades. `spread`: 5% of the others are taken for relevant and 25% of the relevant are missed."""
    people, best, highest, size = pool.people, pool.best, pool.people.max(), len(pool.people)
    if errors == "overlap":
        lexical: Ints = (pool.overlap >= np.sort(pool.overlap)[-int((people > 0).sum())]).astype(np.int64)
        return lexical
    chance = random.random(size)
    if errors == "grades":  # a third are one off
        moved = np.clip(people + random.choice([-1, 1], size), 0, max(highest, 1))
        graded: Ints = np.where(chance < np.where(people > 0, 0.3, 0.04), moved, people)
        return graded
    false, missed = np.full(size, 0.05), np.full(size, 0.25)
    if errors == "rank":
        false, missed = (
            np.select([best <= 3, best <= 10], of[:2], of[2]) for of in ([0.3, 0.08, 0.01], [0.05, 0.2, 0.5])
        )
    elif errors == "query":  # some queries have most of the errors
        spread = random.gamma(0.5, 2, pool.queries[-1] + 1)[pool.queries]
        false, missed = np.minimum(false * spread, 0.8), np.minimum(missed * spread, 0.9)
    elif errors == "missed":
        false = np.zeros(size)
    invented = random.integers(1, highest + 1, size)
    return np.where(people > 0, np.where(chance < missed, 0, people), np.where(chance < false, invented, 0))


def label(
    pool: Pool, judged: Ints, count: int, random: np.random.Generator, *, by_grade: bool
) -> tuple[Floats, Floats]:
    """People's grades of the labelled pairs, and one over their probabilities: by rank, and evenly over queries."""
    strata, shares = np.digitize(pool.best, [4, 11]), np.array(SHARES)
    if by_grade:
        strata, shares = 2 * strata + (judged > 0), np.repeat(shares / 2, 2)
    people, weights = np.full(len(judged), np.nan), np.ones(len(judged))
    for stratum, share in enumerate(shares):
        rows = np.flatnonzero(strata == stratum)
        if taken := min(len(rows), round(count * share)):
            order = np.lexsort((random.random(len(rows)), pool.queries[rows]))
            chosen = rows[order[((np.arange(taken) + random.random()) * len(rows) / taken).astype(int)]]
            people[chosen], weights[chosen] = pool.people[chosen], len(rows) / taken
    return people, weights


def simulate(whole: Pool, errors: str, count: int, options: argparse.Namespace) -> None:
    """Print the lines of one kind of errors and one number of labels."""
    queries = whole.queries[-1] + 1
    layout = lay_out_clusters(range(queries))
    truth = np.array([measure(whole.queries, of, whole.people).mean(axis=1) for of in whole.ranks])
    truth = np.array([*truth, truth[0] - truth[1]])
    hits, widths, own, alone = (np.zeros((options.draws, 3, len(MEASURES))) for _ in range(4))
    for draw in range(options.draws):
        random = np.random.default_rng(draw)
        pool = whole.draw(random)
        judged = judge(pool, errors, random)
        people, weights = label(pool, judged, count, random, by_grade=options.by_grade)
        strata = np.digitize(pool.best, [4, 11])
        pairs = GradedPairs(pool.queries, judged, strata, people, weights, not options.not_stated)

        def compute(grades: Ints, rows: Ints, pool: Pool = pool) -> Floats:
            names, numbers = np.unique(pool.queries[rows], return_inverse=True)
            found = np.zeros((2, len(MEASURES), queries))
            found[:, :, names] = [measure(numbers, ranks[rows], grades[rows]) for ranks in pool.ranks]
            return found.reshape(-1, queries)

        first, second = np.split(correct_queries(pairs, compute, draw), 2)
        machine = np.split(compute(judged, np.arange(len(judged))), 2)
        for which, (numbers, values) in enumerate(
            [(first, machine[0]), (second, machine[1]), (first - second, machine[0] - machine[1])]
        ):
            for place in range(len(MEASURES)):
                _, interval, _ = average_queries(numbers[place], layout, 0.95)
                wanted = truth[which, place]
                hits[draw, which, place] = interval.low <= wanted <= interval.high
                widths[draw, which, place] = interval.high - interval.low
                half = 1.96 * values[place].std() / math.sqrt(queries)
                own[draw, which, place] = abs(values[place].mean() - wanted) <= half
        for which, ranks in enumerate(pool.ranks):  # precision is a mean over pairs, which labels alone can tell
            part = np.where(ranks <= 10, np.nan_to_num(people > 0) * weights, 0.0) / (10 * queries)
            spread = np.bincount(pool.queries, part).var(ddof=1) * queries
            alone[draw, which, 2] = 2 * 1.96 * math.sqrt(spread)
    for place, name in enumerate(MEASURES):
        cells = "".join(
            f" | {hits[:, which, place].mean():.3f} {np.median(widths[:, which, place]):.3f} "
            f"({own[:, which, place].mean():.2f})"
            for which in range(3)
        )
        told = f" | {np.median(alone[:, 0, place]):.3f}" if place == 2 else " | –"
        print(f"{errors:<8} | {count} | {name}{cells}{told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--collections", nargs="+", default=["scifact", "cranfield", "nq_oracle"])
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 200, 400])
    parser.add_argument("--errors", nargs="+", default=["spread", "rank", "query", "missed", "grades", "overlap"])
    parser.add_argument("--by-grade", action="store_true")
    parser.add_argument("--not-stated", action="store_true")
    options = parser.parse_args()
    for name in options.collections:
        pool = load(options.data / "retrieval" / name)
        check(pool)
        print(f"{name}: {pool.queries[-1] + 1} queries, {len(pool.queries)} pairs, {(pool.people > 0).sum()} relevant")
        print("errors | labels | measure | bm25 | weak | difference | alone")
        for errors in options.errors:
            for count in options.labels:
                simulate(pool, errors, count, options)


if __name__ == "__main__":
    main()
