"""Checks how many of the documents that systems put first nobody has judged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.audit.audit_findings import AuditFinding, CheckContent, Table, make_finding
from rageval_spec.audit.question_set import (
    NO_SAMPLES,
    AuditedQuestions,
    Output,
    Outputs,
    count_rejudged,
)
from rageval_spec.wording import count_noun, format_number, format_percent

if TYPE_CHECKING:
    import polars as pl

TITLE = "Unjudged documents"
CUTOFF = 10
_MEASURES = (f"ndcg@{CUTOFF}", "bpref", f"judged@{CUTOFF}")
_UNEQUAL = 0.1
"""A system is compared unfairly if that much less of its documents is judged than of another's."""
_Z = 1.959964
_FIRST = 3


class Depth(NamedTuple):
    """How deeply the documents of one system are judged.

    Attributes:
        ndcg, bpref, judged: the means over all judged questions; `judged` is the share of the first ten documents.
        blind: the number of questions of which none of the first ten documents is judged.
        rest: how many of the first documents are not known as relevant, and how many of these are judged: a better
            system has more relevant ones, so that `judged` alone says little. As deep for every system, because
            documents further down are judged less. None if no document is judged as not relevant.
    """

    system: str
    ndcg: float
    bpref: float
    judged: float
    blind: int
    questions: int
    rest: Rest | None


class Rest(NamedTuple):
    """Documents that are not known as relevant: how many are judged, and how many there are."""

    judged: int
    documents: int

    @property
    def share(self) -> float:
        """The judged share."""
        return self.judged / self.documents


def check_unjudged(questions: AuditedQuestions, outputs: Outputs) -> CheckContent:
    """The check `unjudged`: of each system, how many of its first ten documents are judged, and what that hides."""
    if not questions.has_judgements:
        return CheckContent("unjudged", TITLE, skipped="the dataset has no relevance judgements")
    if not outputs:
        return CheckContent("unjudged", TITLE, skipped=NO_SAMPLES)
    runs = _list_runs(questions, outputs)
    if not runs:
        return CheckContent("unjudged", TITLE, skipped="the results do not name the documents that systems found")
    shared = _find_shared_depth(runs)
    depths = [_measure(system, run, shared) for system, run in runs.items()]
    findings = (*_compare(depths), *_list_to_judge(questions, outputs))
    remark = _explain(questions) + _remark_on_changes(questions, outputs)
    return CheckContent("unjudged", TITLE, findings, remark=remark, tables=(_tabulate(depths),))


def _list_runs(questions: AuditedQuestions, outputs: Outputs) -> dict[str, list[tuple[str, Output]]]:
    """The rankings of each system on judged questions."""
    runs: dict[str, list[tuple[str, Output]]] = {}
    for query_id, given in outputs.items():
        for output in given:
            if query_id in questions.by_id and output.doc_ids is not None and output.relevant:
                runs.setdefault(output.system, []).append((query_id, output))
    return runs


def _find_shared_depth(runs: Mapping[str, Sequence[tuple[str, Output]]]) -> dict[str, int]:
    """For each question, how many of its first ten documents every system found; systems without any do not count."""
    shared: dict[str, int] = {}
    for query_id, output in (one for run in runs.values() for one in run):
        if found := len(_list_first(output)):
            shared[query_id] = min(found, shared.get(query_id, CUTOFF))
    return shared


def _list_first(output: Output) -> list[str]:
    """The first ten documents; one that stands there twice, as answers can have several parts of it, counts once."""
    return list(dict.fromkeys(output.doc_ids or ()))[:CUTOFF]


def _measure(system: str, run: Sequence[tuple[str, Output]], shared: Mapping[str, int]) -> Depth:
    from rageval_spec import kernels

    qrels, ranking = _build_tables(run)
    found = kernels.evaluate_ranking(qrels, ranking, _MEASURES, kernels.RankingOptions(missing="zero"))
    ndcg, bpref, judged = (float(row.mean()) for row in found.values)
    blind = int((found.values[2] == 0).sum())
    return Depth(system, ndcg, bpref, judged, blind, len(found.query_ids), _measure_rest(run, shared))


def _measure_rest(run: Sequence[tuple[str, Output]], shared: Mapping[str, int]) -> Rest | None:
    if all(grade > 0 for _, output in run for grade in output.relevant.values()):
        return None
    others = [
        doc_id in output.relevant
        for query_id, output in run
        for doc_id in _list_first(output)[: shared.get(query_id, 0)]
        if output.relevant.get(doc_id, 0) <= 0
    ]
    return Rest(sum(others), len(others)) if others else None


def _build_tables(run: Sequence[tuple[str, Output]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The judgements, and the ranking as far as it counts: the judged documents, and the first ten."""
    import polars as pl

    judged = [(query_id, doc_id, grade) for query_id, one in run for doc_id, grade in one.relevant.items()]
    ranked = []
    for query_id, output in run:
        places = dict(output.ranks)
        for rank, doc_id in enumerate(_list_first(output), 1):
            places.setdefault(doc_id, rank)
        ranked += [(query_id, doc_id, -float(rank)) for doc_id, rank in places.items()]
    kinds = {"query_id": pl.String, "doc_id": pl.String}
    qrels = pl.DataFrame(judged, schema={**kinds, "relevance": pl.Int64}, orient="row")
    return qrels, pl.DataFrame(ranked, schema={**kinds, "score": pl.Float64}, orient="row")


def _compare(depths: Sequence[Depth]) -> Iterator[AuditFinding]:
    """Systems whose documents are judged much less than those of another one, and orders that depend on it."""
    known = [(one.system, one.rest) for one in depths if one.rest is not None]
    most = max(known, key=lambda one: one[1].share, default=None)
    for system, rest in known:
        if most is not None and _is_less(rest, most[1]):
            yield _describe_unequal(system, rest, *most)
    by_ndcg, by_bpref = max(depths, key=lambda one: one.ndcg), max(depths, key=lambda one: one.bpref)
    if by_ndcg.system != by_bpref.system and by_bpref.bpref > by_ndcg.bpref and by_ndcg.ndcg > by_bpref.ndcg:
        first = f"{by_ndcg.system} leads by ndcg@{CUTOFF}, which counts unjudged documents as not relevant"
        message = f"{first}, and {by_bpref.system} leads by bpref, which ignores them"
        yield make_finding("order_depends_on_judging", message)


def _is_less(rest: Rest, most: Rest) -> bool:
    """Whether a share is much lower than another one, and not by chance (a test of two proportions at 5%)."""
    pooled = (rest.judged + most.judged) / (rest.documents + most.documents)
    error = math.sqrt(pooled * (1 - pooled) * (1 / rest.documents + 1 / most.documents))
    return most.share - rest.share > max(_UNEQUAL, _Z * error)


def _describe_unequal(system: str, rest: Rest, most_system: str, most: Rest) -> AuditFinding:
    share = f"{format_percent(rest.share)} are judged"
    other = f"of {most_system}'s, at the same depth, {format_percent(most.share)}"
    message = f"of the first documents of {system} that are not known as relevant, {share}; {other}"
    why = f"an unjudged document counts as not relevant, so ndcg@{CUTOFF} may be too low for {system}"
    advice = f"{why}; judge its documents, or compare by bpref"
    details: dict[str, Any] = {"judged": rest.share, "most": most.share, "most_system": most_system}
    return make_finding("unequal_judging", message, advice=advice, system=system, **details)


def _list_to_judge(questions: AuditedQuestions, outputs: Outputs) -> Iterator[AuditFinding]:
    """The questions for which most systems put the same unjudged document before every relevant one."""
    found = []
    for query_id, given in outputs.items():
        ranking = [one for one in given if one.doc_ids]
        question = questions.by_id.get(query_id)
        if question is None or len(ranking) < 2 or not question.relevant:
            continue
        counts = Counter(doc_id for one in ranking for doc_id in _list_ahead(one, question.relevant))
        agreed = [(doc_id, count) for doc_id, count in counts.most_common() if 2 * count > len(ranking)]
        if agreed:
            found.append((question, agreed, len(ranking)))
    found.sort(key=lambda one: (-one[1][0][1] / one[2], -len(one[1])))
    for question, agreed, systems in found:
        first = f"{agreed[0][1]} of {systems} systems put the unjudged document '{agreed[0][0]}'"
        more = f"; {len(agreed) - 1} more like it" if len(agreed) > 1 else ""
        documents = [{"doc_id": one, "systems": number} for one, number in agreed]
        message = f"{first} before every relevant one{more}"
        yield make_finding("judge_next", message, question.row, documents=documents, systems=systems)


def _list_ahead(output: Output, judged: Mapping[str, int]) -> list[str]:
    """The unjudged documents among a system's first ones that come before every relevant document."""
    ahead = takewhile(lambda doc_id: judged.get(doc_id, 0) <= 0, (output.doc_ids or ())[:_FIRST])
    return [doc_id for doc_id in ahead if doc_id not in judged]


def _explain(questions: AuditedQuestions) -> str:
    judged = [len(question.relevant) for question in questions.questions if question.relevant]
    mean = sum(judged) / len(judged)
    most = sum(min(count, CUTOFF) for count in judged) / len(judged) / CUTOFF
    grades = (grade for question in questions.questions for grade in (question.relevant or {}).values())
    text = f"{mean:.3g} documents are judged for a question on average"
    whole = f", so judged@{CUTOFF} cannot exceed {format_number(most)} for a system that finds {CUTOFF} documents"
    text += f"{whole}." if most < 1 else "."
    if all(grade > 0 for grade in grades):
        text += " None is judged as not relevant, so bpref only counts which relevant documents are found."
    return text


def _remark_on_changes(questions: AuditedQuestions, outputs: Outputs) -> str:
    """That the results are older than the judgements; "" if they are not."""
    judged = {question.query_id: question.relevant for question in questions.questions if question.relevant}
    count = count_rejudged(outputs, judged)
    if not count:
        return ""
    return f" The judgements of {count_noun(count, 'question')} changed after the evaluation; evaluate again."


def _tabulate(depths: Sequence[Depth]) -> Table:
    header = ("system", *_MEASURES, "questions without a judged document")
    rows = (
        (one.system, *(format_number(number) for number in one[1:4]), f"{one.blind:,} of {one.questions:,}")
        for one in depths
    )
    return Table(header, tuple(rows), tuple(one[:5] for one in depths))
