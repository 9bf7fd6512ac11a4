"""Ranking evaluation for other programs: qrels and a run in, values out.

Nothing heavy is imported before it is needed: from files or dicts to means takes neither numpy nor polars.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from rageval_spec import kernels
from rageval_spec.api.forms import Judgements, Run, read_form
from rageval_spec.api.measure_objects import measure_name, measure_text
from rageval_spec.api.results import Results
from rageval_spec.kernels.options import Duplicates, Missing, RankingOptions, check_choice, check_whole

Profile: TypeAlias = Literal["trec_eval", "trec_eval_2023", "float64", "input", "ranx", "beir"]


def evaluate(
    qrels: Judgements,
    run: Run,
    measures: Iterable[object] | object,
    *,
    profile: Profile = "trec_eval",
    missing: Missing = "skip",
    relevance_level: int = 1,
    judged_only: bool = False,
    depth: int | None = None,
    drop_self: bool | None = None,
    duplicates: Duplicates = "error",
    tie_range: bool = False,
    threads: int | None = None,
) -> Results:
    """Compute ranking measures of a run: all of them in one pass, with trec_eval's numbers.

    Args:
        qrels: `{query_id: {doc_id: relevance}}`, of which a query without judgements is left out; or a frame
            (polars, pyarrow, pandas, anything with `__arrow_c_stream__`) or a mapping of arrays with the columns
            query_id, doc_id, relevance; or the path of a file (TREC's four columns or BEIR's three; plain, .gz, .zst).
        run: `{query_id: {doc_id: score}}`, where a query without documents is an empty ranking; or a frame or arrays
            with query_id, doc_id, score; or the path of a TREC run file.
        measures: names such as `ndcg@10`, `map`, `rr@10`, `recall@100`, `ndcg(gain=exp)@10`, `p(rel=2)@5`; those
            of trec_eval, ir_measures and BEIR are understood, and so are the objects of ir_measures.
        profile: how ties and precision are handled. "trec_eval": scores as float32, ties by doc_id descending, as
            trec_eval's tag v9.0.8 (commit d95ca64, 2020); "trec_eval_2023": scores as float64, as its tag
            trec_eval-9.0.8 (2023), which "float64" is another name of; "input": ties as the run has them; "ranx": as
            ranx orders them; "beir": trec_eval's, and a document whose id is the query's is dropped.
        missing: a query of the qrels that is not in the run is left out ("skip", as trec_eval does), or counts as
            an empty ranking ("zero", its `-c`).
        relevance_level: from which relevance on a document is relevant (`-l`).
        judged_only: remove unjudged documents first (`-J`).
        depth: look at the first so many documents of a ranking (`-M`).
        drop_self: remove a document whose id is the query's; as the profile says where None.
        duplicates: a document that a query has twice is an error, or its first row counts.
        tie_range: also compute the lowest and highest value over all orders of tied documents.
        threads: all cores where None; the values do not depend on it.

    Raises:
        UsageError: an unknown measure (with the nearest known one), a wrong setting.
        DataError: a malformed file (with `file:line`); a NaN score or a document twice in a table (with the row).
        TypeError, ValueError: in a dict, a wrong type or a NaN score (with the entry's place); in a table, a missing
            column, a wrong type or a null; a setting out of range.
    """
    check_choice("profile", profile, Profile)
    options = RankingOptions(
        ties="trec_eval" if profile == "beir" else profile,
        missing=missing,
        relevance_level=relevance_level,
        judged_only=judged_only,
        depth=depth,
        drop_self=profile == "beir" if drop_self is None else drop_self,
        duplicates=duplicates,
        tie_range=tie_range,
    )
    return evaluate_with(qrels, run, measures, options, threads=threads)


def evaluate_with(
    qrels: Judgements,
    run: Run,
    measures: Iterable[object] | object,
    options: RankingOptions,
    *,
    threads: int | None = None,
) -> Results:
    """Compute ranking measures of a run; as `evaluate`, with its settings in one object."""
    wanted = _list(measures)
    threads = None if threads is None else check_whole("threads", threads)
    evaluator = kernels.prepare_evaluator([measure_text(measure) for measure in wanted], options, threads=threads)
    data = read_form(qrels, "qrels", "relevance"), read_form(run, "run", "score")
    return Results([measure_name(measure) for measure in wanted], evaluator, evaluator.evaluate(*data))


def _list(measures: Iterable[object] | object) -> list[object]:
    if isinstance(measures, str) or not isinstance(measures, Iterable):
        return [measures]
    return list(measures)
