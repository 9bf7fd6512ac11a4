"""Checks what the results of systems show about questions and their judgements.

Questions that all systems fail, that all solve, or that mislead tell little or nothing about systems. Documents that
systems put first and that nobody has judged make values doubtful.

A question that every system fails is either hard or mislabelled. These signs speak against its label:

- systems that differ agree on the same other document, or on the same answer;
- that document has more of the question's words than every document that is labelled as relevant, or it contains the
  gold answer, and no labelled document does;
- the labelled documents share hardly a word with the question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec import kernels
from rageval_spec.audit.audit_findings import (
    AuditFinding,
    Found,
    NotCheckedError,
    Shown,
    Table,
    check,
    make_finding,
    make_table,
)
from rageval_spec.audit.question_set import (
    NO_SAMPLES,
    AuditedQuestion,
    AuditedQuestions,
    MetricValues,
    Output,
    Outputs,
    contains,
    count_rejudged,
    drop_fillers,
    find_overlap,
    shorten,
    split_compared_words,
)
from rageval_spec.libraries import np, pl
from rageval_spec.wording import count_noun, format_number, format_percent

if TYPE_CHECKING:
    from numpy.typing import NDArray


FEWEST = 4
"""With fewer systems a correlation over systems has no interval."""
_ENOUGH = 10
_FALSE_SHARE = 0.05
"""The expected share of wrong findings among those that are reported (Benjamini and Hochberg, 1995)."""
_Z = 1.959964


@check("every_system_fails", "Questions that every system fails")
def check_failed(questions: AuditedQuestions, measured: MetricValues, outputs: Outputs) -> Found:
    """Those whose label is most likely wrong come first."""
    asked = _list_known(questions, measured, measured.failed)
    texts = _read_texts(questions, asked, outputs)
    judged = [(question, suspect(question, outputs.get(question.query_id, ()), texts)) for question in asked]
    judged.sort(key=lambda pair: -pair[1].score)
    total, systems = count_noun(len(measured.query_ids), "question"), count_noun(len(measured.systems), "system")
    yield f"By {measured.metric}, of {total} and {systems}."
    if judged and not outputs:
        yield f"The likeliest label errors are not first: {NO_SAMPLES}."
    yield from (_describe_failed(question, found, measured) for question, found in judged)


def _list_known(questions: AuditedQuestions, measured: MetricValues, places: Sequence[int]) -> list[AuditedQuestion]:
    ids = (measured.query_ids[place] for place in places)
    return [questions.by_id[query_id] for query_id in ids if query_id in questions.by_id]


def _read_texts(
    questions: AuditedQuestions,
    asked: Sequence[AuditedQuestion],
    outputs: Outputs,
) -> Mapping[str, str]:
    """The texts of the documents that are compared: the relevant ones, and those that systems put first."""
    if questions.collection.documents is None or not asked:
        return {}
    wanted = {doc_id for question in asked for doc_id in question.relevant_ids}
    for question in asked:
        wanted |= {output.doc_ids[0] for output in outputs.get(question.query_id, ()) if output.doc_ids}
    found = questions.collection.find_documents(pl.Series([*wanted], dtype=pl.String))
    return {doc_id: f"{title or ''} {text}" for doc_id, title, text in found.iter_rows()}


def _describe_failed(question: AuditedQuestion, found: Suspicion, measured: MetricValues) -> AuditFinding:
    likely, count = found.score >= LIKELY, len(measured.systems)
    because = f": {'; '.join(found.reasons)}" if found.reasons else ""
    if likely:
        advice = "read the question with its label first: the label may be wrong or incomplete"
    else:
        advice = "keep it if its label is right: it is hard, and it shows when a system gets better"
    message = f"{count} of {count} systems fail it{because}"
    given: dict[str, Any] = {"suspicion": found.score, "reasons": list(found.reasons), "metric": measured.metric}
    given["severity"] = "warning" if likely else "info"
    return make_finding("every_system_fails", message, question.row, advice=advice, **given)


@check("every_system_solves", "Questions that every system solves")
def check_solved(questions: AuditedQuestions, measured: MetricValues) -> Found:
    """Questions that tell nothing about which system is better."""
    asked, total = _list_known(questions, measured, measured.solved), len(measured.query_ids)
    count, metric = len(measured.systems), measured.metric
    share = format_percent(len(asked) / total if total else 0.0)
    yield f"{share} of {count_noun(total, 'question')} do not show which system is better, by {metric}."
    for one in asked:
        message = f"{count} of {count} systems have the highest possible {metric}"
        yield make_finding("every_system_solves", message, one.row, metric=metric)


@check("discrimination", "Discrimination")
def check_discrimination(questions: AuditedQuestions, measured: MetricValues) -> Found:
    """Whether better systems do better on a question (item-rest correlation)."""
    count = len(measured.systems)
    if count < FEWEST:
        raise NotCheckedError(
            f"{count_noun(count, 'system')}; whether better systems do better on a question takes at least {FEWEST}, "
            f"better {_ENOUGH} or more. Name results with other systems, too: --results A --results B"
        )
    correlations = correlate_with_rest(measured.values)
    told = np.flatnonzero(~np.isnan(correlations))
    for place in (int(told[one]) for one in select_negative(correlations[told], count)):
        if (query_id := measured.query_ids[place]) in questions.by_id:
            yield _describe_negative(questions.by_id[query_id], float(correlations[place]), measured)
    yield _remark_on_count(count, measured.metric)
    yield _tabulate(correlations)


def correlate_with_rest(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The correlation of each question's values [questions, systems] with the mean of all others, over the systems.

    Not a number for a question on which all systems, or the rest, are equal.
    """
    questions = len(values)
    if questions < 2:
        return np.full(questions, np.nan)
    rest = (values.sum(axis=0) - values) / (questions - 1)
    own = values - values.mean(axis=1, keepdims=True)
    rest = rest - rest.mean(axis=1, keepdims=True)
    spread = np.sqrt((own**2).sum(axis=1) * (rest**2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: NDArray[np.float64] = np.where(spread > 1e-12, (own * rest).sum(axis=1) / spread, np.nan)
    return found


def select_negative(correlations: NDArray[np.float64], systems: int) -> list[int]:
    """The places of the correlations that are below 0 and not by chance, the lowest first.

    Of those that are selected, an expected share of at most 5% is below 0 by chance alone.
    """
    order = sorted(range(len(correlations)), key=lambda place: float(correlations[place]))
    kept = 0
    for number, place in enumerate(order, 1):
        if find_chance(float(correlations[place]), systems) <= _FALSE_SHARE * number / len(correlations):
            kept = number
    return order[:kept]


def find_chance(correlation: float, systems: int) -> float:
    """The probability of a correlation that is as low, where there is none (Student's t with `systems - 2` degrees).

    Fisher's transformation would give a seventh of it for five systems and a correlation of -0.99.
    """
    rest = 1 - correlation * correlation
    t = correlation * math.sqrt((systems - 2) / rest) if rest > 0 else math.copysign(math.inf, correlation)
    tail = kernels.student_p_value(t, systems - 2) / 2
    return tail if correlation < 0 else 1 - tail


def find_bounds(correlation: float, systems: int) -> tuple[float, float]:
    """The 95% interval of a correlation (Fisher's transformation)."""
    middle, width = math.atanh(max(-0.999999, min(0.999999, correlation))), _Z / math.sqrt(systems - 3)
    return math.tanh(middle - width), math.tanh(middle + width)


def _describe_negative(question: AuditedQuestion, number: float, measured: MetricValues) -> AuditFinding:
    count, metric = len(measured.systems), measured.metric
    low, high = find_bounds(number, count)
    found = f"{format_number(number)} [{format_number(low)}, {format_number(high)}], {count} systems"
    message = f"better systems do worse on it: item-rest correlation {found}"
    details: dict[str, Any] = {"correlation": number, "low": low, "high": high, "systems": count}
    return make_finding("negative_discrimination", message, question.row, metric=metric, **details)


def _remark_on_count(systems: int, metric: str) -> str:
    remark = f"By {metric}, over {systems} systems. Variants of one system count for less than their number suggests."
    if systems >= _ENOUGH:
        return remark
    low, high = find_bounds(0.0, systems)
    return (
        f"{remark} With so few, the interval of a correlation of 0 is [{format_number(low)}, {format_number(high)}]: "
        "read the table, not single questions."
    )


def _tabulate(correlations: NDArray[np.float64]) -> Table:
    told = correlations[~np.isnan(correlations)]
    ranges = (("below 0", -2.0, 0.0), ("0 to 0.2", 0.0, 0.2), ("0.2 to 0.4", 0.2, 0.4), ("0.4 and above", 0.4, 2.0))
    counts = {name: int(((told >= low) & (told < high)).sum()) for name, low, high in ranges}
    counts["none: all systems are equal"] = len(correlations) - len(told)
    rows = ((name, count, count / len(correlations)) for name, count in counts.items())
    return make_table({"item-rest correlation": str, "questions": "{:,}".format, "share": format_percent}, rows)


LIKELY = 0.7
"""From this score on, look at the label before anything else.

In scifact, 30 of the 300 judged questions got a random document in place of their relevant ones, three times over. Of
the questions that all of five systems failed and that had such a score, 92% were among the 30; of the 30, 81% had one.
"""
_AGREE = 0.5
_OF_AGREEMENT = 0.25
"""The part of the score that is the agreement of systems; the rest is how far the other document leads by words."""


class Suspicion(NamedTuple):
    """How likely the label is wrong, 0 to 1, and why; the reasons are empty if nothing speaks against it."""

    score: float
    reasons: tuple[str, ...] = ()


def suspect(question: AuditedQuestion, outputs: Sequence[Output], texts: Mapping[str, str]) -> Suspicion:
    """Weigh what speaks against the label of a question that every system fails.

    Args:
        question: the question with its gold answers and judgements.
        outputs: what the systems made of it.
        texts: the texts of documents, as far as they are known.
    """
    answers = [output.answer for output in outputs if output.answer]
    found = [_suspect_reference(question, answers)] if question.references and len(answers) > 1 else []
    if question.relevant_ids and any(output.doc_ids for output in outputs):
        found.append(_suspect_judgements(question, outputs, texts))
    return max(found, key=lambda one: one.score, default=Suspicion(0.0))


def _suspect_judgements(question: AuditedQuestion, outputs: Sequence[Output], texts: Mapping[str, str]) -> Suspicion:
    first = [output.doc_ids[0] for output in outputs if output.doc_ids]
    (agreed, count), *_ = Counter(first).most_common(1)
    known = ", which is judged as not relevant" if agreed in (question.relevant or {}) else ""
    reasons = [f"{count} of {len(first)} systems put '{agreed}' first{known}"] if count > 1 else []
    share = count / len(first) if count > 1 else 0.0
    labelled = [texts[doc_id] for doc_id in sorted(question.relevant_ids) if doc_id in texts]
    if agreed not in texts or not labelled:
        return Suspicion(round(share * _AGREE, 4), tuple(reasons))
    (support,) = kernels.word_support([question.text], [[*labelled, texts[agreed]]])
    *others, other = (one.share or 0.0 for one in support[: len(labelled) + 1])
    own = max(others)
    if other > own:
        mine, theirs = format_percent(own), format_percent(other)
        reasons.append(f"it has {theirs} of the question's words, and the relevant document {mine}")
    gold = _find_gold(question, labelled, texts[agreed])
    if gold is not None:
        reasons.append(f"it contains the reference '{gold}', and the relevant document does not")
    lead = max(0.0, 1 - own / other) if other else 0.0
    score = (1 - _OF_AGREEMENT) * lead + _OF_AGREEMENT * share
    return Suspicion(round(1.0 if gold else score, 4), tuple(reasons))


def _find_gold(question: AuditedQuestion, labelled: Sequence[str], other: str) -> str | None:
    """A gold answer that only the other document contains."""
    words, known = split_compared_words(other), [split_compared_words(text) for text in labelled]
    for text in question.references:
        wanted = split_compared_words(text)
        is_only_there = contains(words, wanted) and not any(contains(one, wanted) for one in known)
        if len("".join(wanted)) > 3 and is_only_there:
            return shorten(text)
    return None


def _suspect_reference(question: AuditedQuestion, answers: Sequence[str]) -> Suspicion:
    """Answers that agree with each other more than with the gold answer."""
    words = [drop_fillers(split_compared_words(answer)) for answer in answers]
    pairs = [find_overlap(words[one], words[other]) for one in range(len(words)) for other in range(one)]
    agreement = sum(pairs) / len(pairs)
    golds = [drop_fillers(split_compared_words(text)) for text in question.references]
    likeness = max(find_overlap(gold, answer) for gold in golds for answer in words)
    score = round(max(0.0, agreement - likeness), 4)
    if score <= 0 or agreement < _AGREE:
        return Suspicion(score * _AGREE)
    told, gold = shorten(answers[0]), shorten(question.references[0])
    reason = f"{len(answers)} systems give nearly the same answer, '{told}', and the reference is '{gold}'"
    return Suspicion(score, (reason,))


CUTOFF = 10
_MEASURES = (f"ndcg@{CUTOFF}", "bpref", f"judged@{CUTOFF}")
_UNEQUAL = 0.1
"""A system is compared unfairly if that much less of its documents is judged than of another's."""
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


@check("unjudged", "Unjudged documents")
def check_unjudged(questions: AuditedQuestions, outputs: Outputs) -> Found:
    """Of each system, how many of its first ten documents are judged, and what that hides."""
    if not questions.has_judgements:
        raise NotCheckedError("the dataset has no relevance judgements")
    if not outputs:
        raise NotCheckedError(NO_SAMPLES)
    runs = _list_runs(questions, outputs)
    if not runs:
        raise NotCheckedError("the results do not name the documents that systems found")
    shared = _find_shared_depth(runs)
    depths = [_measure(system, run, shared) for system, run in runs.items()]
    yield from _compare(depths)
    yield from _list_to_judge(questions, outputs)
    yield _explain(questions)
    judged = {question.query_id: question.relevant for question in questions.questions if question.relevant}
    # Those of passages are each system's own.
    if questions.collection.passages is None and (count := count_rejudged(outputs, judged)):
        yield f"The judgements of {count_noun(count, 'question')} changed after the evaluation; evaluate again."
    shown = dict.fromkeys(_MEASURES, format_number)
    columns: Shown = {"system": str, **shown, "questions without a judged document": str, "questions": "{:,}".format}
    yield make_table(columns, (one[:6] for one in depths))


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
