"""Diagnoses an evaluation: what went wrong with each question, how often, and what to try first.

Only questions of systems that answer are sorted by cause. The causes are counted for all queries and for each slice.
The advice on a system is a sentence with the numbers that say so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, get_args

from rageval_spec.data import arithmetic
from rageval_spec.data.datasets import Design
from rageval_spec.data.evaluation import Aggregate
from rageval_spec.data.outcomes import (
    JUDGED_DOCUMENTS,
    NOT_MEASURED,
    Advice,
    Cause,
    CauseCount,
    Cell,
    Diagnosis,
    Note,
    split_cells,
)
from rageval_spec.data.tables import join_blocks, join_queries, share_repeats
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.judging.quantities import find_missing, find_quantities
from rageval_spec.judging.refusals import find_bare_refusal
from rageval_spec.libraries import compile_later, pl
from rageval_spec.metrics.shared.reference_metrics import token_f1, tokenize_answer
from rageval_spec.pipeline.execution.execution import Execution
from rageval_spec.pipeline.values.sample_tables import SampleParts
from rageval_spec.spec.blocks.gates import NamedMetric
from rageval_spec.spec.blocks.spec_node import DiagnosisNode, Spec
from rageval_spec.statistics.intervals import compute_exact_interval
from rageval_spec.statistics.weighted_clusters import estimate_share, lay_out
from rageval_spec.store.stored_tables import AnyTable
from rageval_spec.wording import count_noun


@dataclass(frozen=True)
class Diagnosed:
    """A diagnosis (None if there can be none), the causes by dataset and system (`query_id, cause`), and notes."""

    diagnosis: Diagnosis | None = None
    causes: Mapping[tuple[str, str], pl.DataFrame] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def diagnose(
    spec: Spec,
    execution: Execution,
    aggregates: Sequence[Aggregate],
    slices: pl.DataFrame | None = None,
    designs: Mapping[str, Design] | None = None,
) -> Diagnosed:
    """Sort the questions of all systems that answer.

    There is no diagnosis if no metric of the spec says whether answers are right, or if neither a metric nor judged
    documents say whether contexts have what was needed, nor a metric whether answers are faithful to them.

    The means are for the advice. `slices` has `dataset, query_id, slices` (a list of names).
    """
    answered = {(part.dataset, part.system): part for part in execution.samples if not part.retrieves}
    has_judgements = any(part.qrels is not None for part in answered.values())
    choice = choose_metrics(spec.diagnosis, spec.metrics, has_judgements=has_judgements)
    if choice is None or not answered:
        return Diagnosed()

    node, confidence = spec.diagnosis, spec.statistics.confidence
    words = {metric.name: metric.node.use for metric in spec.metrics}
    right = _read_words(answered.values(), node) if words.get(choice.correctness) == "token_f1" else None
    needs_judged = choice.retrieval == JUDGED_DOCUMENTS
    judged = {cell: find_judged_contexts(part.answers, part.qrels) for cell, part in answered.items() if needs_judged}
    causes = find_causes(execution.values, choice, node, judged, right)
    counts = [*count_causes(causes, confidence, designs=designs)]
    if slices is not None:
        members = slices.select("dataset", "query_id", slice="slices").explode("slice").drop_nulls("slice")
        joined = causes.join(members, on=["dataset", "query_id"], how="inner", maintain_order="left_right")
        for (name,), rows in joined.group_by("slice", maintain_order=True):
            counts += count_causes(rows.drop("slice"), confidence, str(name), designs)
    advice = tuple(advise(causes, aggregates, words, confidence))
    of_cells = causes.partition_by("dataset", "system", as_dict=True, maintain_order=True)
    labels = {
        (str(dataset), str(system)): rows.select("query_id", "cause") for (dataset, system), rows in of_cells.items()
    }
    found = Diagnosis(*choice, node.wrong_below, node.right_from, tuple(counts), advice)
    return Diagnosed(found, labels, (_NO_RETRIEVAL,) if choice.retrieval == NOT_MEASURED else ())


_NO_RETRIEVAL = Note(
    "diagnosis",
    "nothing measures retrieval, so the diagnosis takes a wrong answer that is faithful to its contexts for a fault of "
    "retrieval, and one that is not for an invented answer; add context_recall, or judged documents, to know",
)


def _read_words(parts: Iterable[SampleParts], node: DiagnosisNode) -> dict[tuple[str, str], pl.DataFrame]:
    """`query_id, right` by dataset and system: whether each answer has what its gold answers say, by their words."""
    decided: dict[tuple[str, str], pl.DataFrame] = {}
    for part in parts:
        if part.references is None:
            continue
        answers = part.answers.drop(name for name in part.answers.columns if name not in ("query_id", "answer"))
        told = part.references.select("query_id", "references")
        frames = [_decide_by_words(block, node) for block in join_blocks(part.queries, answers, told)]
        decided[part.dataset, part.system] = pl.concat([pl.DataFrame(schema=_DECIDED), *frames])
    return decided


def _decide_by_words(block: pl.DataFrame, node: DiagnosisNode) -> pl.DataFrame:
    told = block.filter(pl.col("answer").is_not_null() & (pl.col("references").list.len() > 0))
    decided = [
        decide_by_words(answer, references, text or "", node.wrong_below, node.right_from)
        for text, answer, references in told.select("text", "answer", "references").iter_rows()
    ]
    return told.select("query_id", pl.Series("right", decided, pl.Boolean))


_DECIDED: Mapping[str, Any] = {"query_id": pl.String, "right": pl.Boolean}
_KEY = ("dataset", "system", "query_id")
CAUSES: tuple[Cause, ...] = get_args(Cause)


def find_causes(
    values: pl.DataFrame,
    choice: DecidingMetrics,
    node: DiagnosisNode,
    judged: Mapping[tuple[str, str], pl.DataFrame],
    right: Mapping[tuple[str, str], pl.DataFrame] | None = None,
) -> pl.DataFrame:
    """The cause of each question of each system that has the metric of correctness, in the order of `values`.

    `judged` is `find_judged_contexts` of each dataset and system, for a choice of judged documents. `right`, the tables
    `query_id, right` of datasets and systems, decides in the place of the metric of correctness. The table is
    `dataset, system, query_id, cause, is_refusal`; a refusal has no value of faithfulness because it makes no claim.
    """
    cells = dict(split_cells(values))
    cause = _name_cause(has_retrieval=choice.retrieval != NOT_MEASURED)
    is_refusal = (pl.col("status") == "unscorable").fill_null(False)

    def name_causes(cell: Cell, correct: pl.DataFrame) -> pl.DataFrame:
        """Of one dataset and system. Joins by query need far less memory than joins by all three names."""
        key = (cell.dataset, cell.system)
        found, faithful = (
            cells.get(replace(cell, metric=name or "")) for name in (choice.retrieval, choice.faithfulness)
        )
        nothing = correct.clear()
        tables = (
            correct.select("query_id", right=_decide(node))
            if right is None
            else right.get(key, pl.DataFrame(schema=_DECIDED)),
            judged[key]
            if key in judged
            else (nothing if found is None else found).select("query_id", found=_decide(node)),
            (nothing if faithful is None else faithful).select("query_id", "status", faithful=_decide(node)),
        )
        table = reduce(join_queries, tables, correct.select("query_id"))
        names = (pl.lit(cell.dataset).alias("dataset"), pl.lit(cell.system).alias("system"))
        return share_repeats(table.select(*names, "query_id", cause=cause, is_refusal=is_refusal))

    tables = [name_causes(cell, rows) for cell, rows in cells.items() if cell.metric == choice.correctness]
    empty = {**dict.fromkeys((*_KEY, "cause"), pl.String), "is_refusal": pl.Boolean}
    return pl.concat([pl.DataFrame(schema=empty), *tables])


def _decide(node: DiagnosisNode) -> pl.Expr:
    """True from `right_from`, False below `wrong_below`, null between them and without a value."""
    value = pl.col("value")
    return pl.when(value >= node.right_from).then(True).when(value < node.wrong_below).then(False)


def _name_cause(*, has_retrieval: bool) -> pl.Expr:
    """The cause; the likeliest one where nothing measures retrieval: faithful but wrong means wrong contexts."""
    found, right, faithful = pl.col("found"), pl.col("right"), pl.col("faithful")
    measured = {
        "both": ~found & ~right & ~faithful,
        "retrieval": ~found & ~right,
        "lucky": ~found & right,
        "generation": found & (~right | ~faithful),
        "fine": found & right,
    }
    likely = {"retrieval": ~right & faithful, "generation": ~right & ~faithful, "fine": right & faithful}
    cases = measured if has_retrieval else likely
    return pl.coalesce(*(pl.when(case).then(pl.lit(cause)) for cause, case in cases.items()), pl.lit("undecided"))


def count_causes(
    causes: pl.DataFrame,
    confidence: float,
    slice_name: str | None = None,
    designs: Mapping[str, Design] | None = None,
) -> Iterator[CauseCount]:
    """The questions of each dataset and system with each cause that occurs, in the order of `Cause`.

    The shares on a dataset that is in `designs` are weighted, and their intervals are of whole clusters.
    """
    for (dataset, system), rows in causes.group_by("dataset", "system", maintain_order=True):
        found = dict(rows["cause"].value_counts().iter_rows())
        for cause in CAUSES:
            if count := found.get(cause, 0):
                share, interval = count / rows.height, compute_exact_interval(count, rows.height, confidence)
                if (design := (designs or {}).get(str(dataset))) is not None:
                    query_ids = rows["query_id"].to_list()
                    hits = (rows["cause"] == cause).to_numpy().astype(float)
                    share, interval = estimate_share(hits, lay_out(design, query_ids, query_ids), confidence)
                yield CauseCount(str(dataset), str(system), cause, count, rows.height, share, interval, slice_name)


_CORRECTNESS = ("answer_correctness", "completeness", "token_f1")
"""The words of the metrics that decide whether an answer is right, the best first."""


class DecidingMetrics(NamedTuple):
    """The metrics that decide; `retrieval` can be `JUDGED_DOCUMENTS` or `NOT_MEASURED`, `faithfulness` None."""

    retrieval: str
    correctness: str
    faithfulness: str | None


def choose_metrics(
    node: DiagnosisNode, metrics: Sequence[NamedMetric], *, has_judgements: bool
) -> DecidingMetrics | None:
    """The metrics of a spec that a diagnosis is made from; None if it has none for a part that every cause needs.

    A name in the node comes first, then the first metric of the spec with a fitting word. Without a metric that says
    what the contexts lack, judged documents do, if a dataset has judgements.
    """
    named = {metric.node.use: metric.name for metric in reversed(metrics)}
    retrieval = node.retrieval or named.get("context_recall") or (JUDGED_DOCUMENTS if has_judgements else None)
    correctness = node.correctness or next((named[word] for word in _CORRECTNESS if word in named), None)
    faithfulness = node.faithfulness or named.get("faithfulness")
    if correctness is None or (retrieval is None and faithfulness is None):
        return None
    return DecidingMetrics(retrieval or NOT_MEASURED, correctness, faithfulness)


def find_judged_contexts(answers: AnyTable, qrels: pl.DataFrame | None) -> pl.DataFrame:
    """For each answer, whether any relevant document (of relevance 1 or more) is among its contexts: `query_id, found`.

    `found` is null if the answer does not name its documents, or if no document is relevant for its query.
    """
    if qrels is None:
        return answers.select("query_id").with_columns(found=pl.lit(None, dtype=pl.Boolean))
    relevant = qrels.filter(pl.col("relevance") >= 1).select("query_id", "doc_id").unique()
    told = answers.select("query_id", "context_ids")
    named = told.rename({"context_ids": "doc_id"}).explode("doc_id")
    hits = named.join(relevant, on=["query_id", "doc_id"], how="semi").select("query_id").unique()
    known = told.select("query_id", is_known=pl.col("context_ids").is_not_null())
    is_judged = pl.col("query_id").is_in(relevant["query_id"].unique().implode())
    found = pl.when(pl.col("is_known") & is_judged).then(pl.col("query_id").is_in(hits["query_id"].implode()))
    return known.select("query_id", found=found)


_HIGH, _LOW = 0.7, 0.5
_OFTEN, _HALF = 0.2, 0.5
"""The share of questions from which luck is worth a remark."""


def advise(
    causes: pl.DataFrame, aggregates: Sequence[Aggregate], words: Mapping[str, str], confidence: float = 0.95
) -> Iterator[Advice]:
    """At most one sentence for each dataset and system; `words` has the word of each metric, by its name.

    It says what to improve first only if an exact test says that this is the cause of more than half of the wrong
    answers.
    """
    means = {(a.dataset, a.system, words.get(a.metric, "")): a.mean for a in aggregates if a.mean is not None}
    for (dataset, system), rows in causes.group_by("dataset", "system", maintain_order=True):
        of_system = {word: mean for (d, s, word), mean in means.items() if (d, s) == (dataset, system)}
        sentence = _choose(rows, of_system, confidence)
        if sentence is not None:
            yield Advice(str(dataset), str(system), sentence)


def _choose(rows: pl.DataFrame, means: Mapping[str, float], confidence: float) -> str | None:
    found = dict(rows["cause"].value_counts().iter_rows())
    lacking, generated = found.get("retrieval", 0) + found.get("both", 0), found.get("generation", 0)
    wrong = lacking + generated
    share = compute_exact_interval(lacking, wrong, confidence)
    if share is not None and share.low > _HALF:
        return _blame_retrieval(lacking, wrong, means)
    if share is not None and share.high < _HALF:
        return _blame_generation(rows, generated, wrong, means)
    if wrong:
        every = compute_exact_interval(wrong, wrong, confidence)
        why = "too even" if every is not None and every.low > _HALF else "too few"
        told = f"of {count_noun(wrong, 'wrong answer')}, {lacking} did not get what was needed and {generated} had it"
        return f"{told}: {why} to say what to improve first"
    lucky = found.get("lucky", 0)
    if lucky >= _OFTEN * rows.height:
        are, their = ("is", "its") if lucky == 1 else ("are", "their")
        return (
            f"{lucky} of {rows.height} answers {are} right although {their} contexts lack what was needed: "
            "test with questions that only your documents can answer"
        )
    return None


def _blame_retrieval(lacking: int, wrong: int, means: Mapping[str, float]) -> str:
    start = f"{lacking} of {wrong} wrong answers did not get what they needed"
    if means.get("context_precision", 1.0) < _LOW:
        return f"{start}, and few contexts are useful: try a reranker or a better retriever first"
    return f"{start}: improve retrieval first, with more documents, a hybrid of retrievers or a reranker"


def _blame_generation(rows: pl.DataFrame, generated: int, wrong: int, means: Mapping[str, float]) -> str:
    start = f"{generated} of {wrong} wrong answers had what they needed in their contexts"
    refused = rows.filter((pl.col("cause") == "generation") & pl.col("is_refusal")).height
    if 2 * refused > generated:
        return f"{start}, and {refused} of them refuse: loosen the prompt first"
    if means.get("completeness", 0.0) >= _HIGH and means.get("conciseness", 1.0) < _LOW:
        return f"{start}, and answers say more than was asked: retrieve fewer documents first"
    return f"{start}: tighten the prompt or try a stronger model first"


SHORT = 12
"""The most words of a short gold answer; `benches/diagnosis.py` sets it, and shows how often causes are right."""
_NAME = compile_later(r"(?<![.!?:]\s)(?<!^)\b[^\W\d_a-z][^\W\d_]*[^\W_]", re.MULTILINE)
"""A word with a capital letter that does not begin a sentence."""


def decide_by_words(
    answer: str, references: Sequence[str], question: str, wrong_below: float, right_from: float
) -> bool | None:
    """Whether an answer is right by any of its gold answers; None between right and wrong.

    The F1 of words falls where a right answer says more than a short gold answer ("Paris" in a sentence), and stays
    high where a sentence has one wrong fact ("in 1994" for "in 1984"). So the words of a short gold answer must be
    found, however much else the answer contains, and the numbers and names of a longer one must not be replaced.

    An answer that only declines is wrong, unless a gold answer declines too. Names in the question are no facts that an
    answer adds. `wrong_below` and `right_from` are bounds of the share of words.
    """
    if find_bare_refusal(answer) is not None and not any(find_bare_refusal(text) for text in references):
        return False
    share = max(_compare(answer, reference, question) for reference in references)
    if arithmetic.reaches(share, right_from):
        return True
    return None if arithmetic.reaches(share, wrong_below) else False


def _compare(answer: str, reference: str, question: str) -> float:
    """The share of a short gold answer that the answer has, or the F1 of a longer one; 0 if a fact is replaced."""
    words = tokenize_answer(reference)
    if 0 < len(words) <= SHORT:
        gold, said = Counter(words), Counter(tokenize_answer(answer))
        if find_missing(reference, answer):
            return 0.0
        counted = Counter(word for one in find_quantities(reference) for word in tokenize_answer(one.text))
        return (gold & (said | counted)).total() / gold.total()
    return 0.0 if _replaces(answer, reference, question) else token_f1(answer, [reference])


def _replaces(answer: str, reference: str, question: str) -> bool:
    """Whether the answer lacks a number or name of the gold answer, and has another one instead."""
    if find_missing(reference, answer) and find_missing(answer, f"{reference}\n{question}"):
        return True
    names = _list_names(reference)
    if not names or not names - set(tokenize_answer(answer)) - set(tokenize_answer(question)):
        return False
    return bool(_list_names(answer) - set(tokenize_answer(reference)) - set(tokenize_answer(question)))


def _list_names(text: str) -> set[str]:
    return {word for found in _NAME.findall(text) for word in tokenize_answer(found)}
