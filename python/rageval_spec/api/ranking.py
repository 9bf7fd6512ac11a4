"""Evaluates rankings for other programs: takes qrels and a run, and returns values.

Heavy imports happen only when they are needed: means of files or dicts need neither numpy nor polars.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from rageval_spec import kernels
from rageval_spec.api.forms import Judgements, Run, read_form
from rageval_spec.api.measure_objects import measure_name, measure_text
from rageval_spec.api.results import Results
from rageval_spec.kernels.options import Duplicates, Missing, RankingOptions, check_choice, check_whole

Profile: TypeAlias = Literal["trec_eval", "trec_eval_2023", "float64", "input", "ranx", "beir"]
_PROFILES: tuple[str, ...] = get_args(Profile)


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
    """Compute ranking measures of a run in one pass, with the same numbers as trec_eval.

    Args:
        qrels: `{query_id: {doc_id: relevance}}`, where queries without judgements are excluded; or a frame (polars,
            pyarrow, pandas, anything with `__arrow_c_stream__`) or a mapping of arrays with the columns query_id,
            doc_id, relevance; or the path of a file (TREC's four columns or BEIR's three; plain, .gz, .zst).
        run: `{query_id: {doc_id: score}}`, where a query without documents has an empty ranking; or a frame or a
            mapping of arrays with the columns query_id, doc_id, score; or the path of a TREC run file.
        measures: one or more names like `ndcg@10`, `map`, `rr@10`, `recall@100`, `ndcg(gain=exp)@10`, `p(rel=2)@5`.
            The names of trec_eval, ir_measures and BEIR, and the objects of ir_measures, are accepted too.
        profile: how scores and ties are handled. "trec_eval": scores as float32, ties by doc_id descending, as in
            trec_eval's tag v9.0.8 (commit d95ca64, 2020); "trec_eval_2023" or "float64": scores as float64, as in its
            tag trec_eval-9.0.8 (2023); "input": scores as float64, ties in the order of the run; "ranx": the order of
            the library ranx; "beir": as "trec_eval", without the document whose id is the query's.
        missing: a query of the qrels that is not in the run is excluded ("skip", trec_eval's default), or counts as
            an empty ranking ("zero", its `-c`).
        relevance_level: the lowest relevance that counts as relevant (`-l`).
        judged_only: remove unjudged documents first (`-J`).
        depth: use only the first `depth` documents of a ranking (`-M`); None for all.
        drop_self: remove a document whose id is the query's; None for the profile's default.
        duplicates: a document that a query has twice is an error ("error"), or only its first row counts ("first").
        tie_range: also compute the lowest and the highest value over all orders of tied documents.
        threads: the number of threads; None for one per core. The values do not depend on it.

    Raises:
        UsageError: a measure is unknown (the message suggests the nearest one), or a setting is wrong.
        DataError: a file is malformed (with `file:line`), or a table has a NaN score or a document twice (with the
            row).
        TypeError, ValueError: a dict has a wrong type or a NaN score (with the place of the entry), a table has a
            missing column, a wrong type or a null, or a setting is out of range.
    """
    check_choice("profile", profile, _PROFILES)
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
    """Compute ranking measures of a run like `evaluate`, with the settings in one object."""
    wanted = _list(measures)
    threads = None if threads is None else check_whole("threads", threads)
    evaluator = kernels.prepare_evaluator([measure_text(measure) for measure in wanted], options, threads=threads)
    data = read_form(qrels, "qrels", "relevance"), read_form(run, "run", "score")
    return Results([measure_name(measure) for measure in wanted], evaluator, evaluator.evaluate(*data))


def _list(measures: Iterable[object] | object) -> list[object]:
    if isinstance(measures, str) or not isinstance(measures, Iterable):
        return [measures]
    return list(measures)
