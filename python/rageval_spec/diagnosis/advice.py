"""What to try first on a system, in a sentence with the numbers that say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rageval_spec.data.diagnosis import Advice

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Aggregate

_HIGH, _LOW = 0.7, 0.5
_OFTEN = 0.2
"""The share of questions from which luck is worth a remark."""


def advise(causes: pl.DataFrame, aggregates: Sequence[Aggregate], words: Mapping[str, str]) -> Iterator[Advice]:
    """At most one sentence for each dataset and system.

    Args:
        causes: the table from `find_causes`.
        aggregates: the means of all metrics.
        words: the word of each metric (`conciseness`), by its name.
    """
    means = {(a.dataset, a.system, words.get(a.metric, "")): a.mean for a in aggregates if a.mean is not None}
    for (dataset, system), rows in causes.group_by("dataset", "system", maintain_order=True):
        of_system = {word: mean for (d, s, word), mean in means.items() if (d, s) == (dataset, system)}
        sentence = _choose(rows, of_system)
        if sentence is not None:
            yield Advice(str(dataset), str(system), sentence)


def _choose(rows: pl.DataFrame, means: Mapping[str, float]) -> str | None:
    found = dict(rows["cause"].value_counts().iter_rows())
    lacking, generated = found.get("retrieval", 0) + found.get("both", 0), found.get("generation", 0)
    wrong = lacking + generated
    if wrong and lacking >= generated:
        return _blame_retrieval(lacking, wrong, means)
    if wrong:
        return _blame_generation(rows, generated, wrong, means)
    lucky = found.get("lucky", 0)
    if lucky >= _OFTEN * rows.height:
        are, their = ("is", "its") if lucky == 1 else ("are", "their")
        return (
            f"{lucky} of {rows.height} answers {are} right although {their} contexts lack what was needed: "
            "test with questions that only your documents can answer"
        )
    return None


def _blame_retrieval(lacking: int, wrong: int, means: Mapping[str, float]) -> str:
    start = f"{_count(lacking, wrong)} did not get what {'they' if wrong > 1 else 'it'} needed"
    if means.get("context_precision", 1.0) < _LOW:
        return f"{start}, and few contexts are useful: try a reranker or a better retriever first"
    return f"{start}: improve retrieval first, with more documents, a hybrid of retrievers or a reranker"


def _blame_generation(rows: pl.DataFrame, generated: int, wrong: int, means: Mapping[str, float]) -> str:
    import polars as pl

    they, their = ("they", "their") if wrong > 1 else ("it", "its")
    start = f"{_count(generated, wrong)} had what {they} needed in {their} contexts"
    refused = rows.filter((pl.col("cause") == "generation") & pl.col("is_refusal")).height
    if 2 * refused > generated:
        which = "it refuses" if generated == 1 else f"{refused} of them refuse"
        return f"{start}, and {which}: loosen the prompt first"
    if means.get("completeness", 0.0) >= _HIGH and means.get("conciseness", 1.0) < _LOW:
        return f"{start}, and answers say more than was asked: retrieve fewer documents first"
    return f"{start}: tighten the prompt or try a stronger model first"


def _count(part: int, wrong: int) -> str:
    return f"{part} of {wrong} wrong answers" if wrong > 1 else "the one wrong answer"
