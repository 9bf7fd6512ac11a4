"""A drop-in replacement for `pytrec_eval`, with the same names, nested dicts and numbers.

    import rageval_spec.compat.pytrec_eval as pytrec_eval

It differs mostly on input that `pytrec_eval` handles wrongly. A NaN score is an error instead of an undefined order. A
value of 0 divided by 0 is 0 instead of NaN. A ranking without documents has values, and invalid parameters are a
`ValueError`; both can crash the interpreter there. Parameters of `utility` and `11pt_avg`, and recall levels above 1,
are a `ValueError` too. Ids can be any `str`, scores any number, and a relevance can be a float with a whole value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Literal, TypeVar

from rageval_spec import kernels
from rageval_spec.api.ranking_inputs import nest
from rageval_spec.libraries import compile_later, np

__version__ = "0.5.11"

__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

_DEPTHS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")
_LEVELS = tuple(f"{level / 10:.2f}" for level in range(11))
_DEFAULTS: dict[str, tuple[str, ...]] = {
    "P": _DEPTHS,
    "recall": _DEPTHS,
    "map_cut": _DEPTHS,
    "ndcg_cut": _DEPTHS,
    "relative_P": _DEPTHS,
    "success": ("1", "5", "10"),
    "iprec_at_recall": _LEVELS,
    "Rprec_mult": tuple(f"{level / 5:.2f}" for level in range(1, 11)),
}
_SINGLE = (
    "11pt_avg", "G", "Rndcg", "Rprec", "binG", "bpref", "gm_bpref", "gm_map", "infAP", "map", "ndcg", "ndcg_rel",
    "num_nonrel_judged_ret", "num_q", "num_rel", "num_rel_ret", "num_ret", "recip_rank", "set_F", "set_P", "set_map",
    "set_recall", "set_relative_P", "utility",
)  # fmt: skip
_TEXTS = ("relstring", "runid")
"""Measures that are texts in trec_eval; pytrec_eval returns 0.0 for them."""

supported_measures = {*_DEFAULTS, *_SINGLE, *_TEXTS}
supported_nicknames: dict[str, set[str]] = {
    "official": {
        "P", "Rprec", "bpref", "gm_map", "iprec_at_recall", "map", "num_q", "num_rel", "num_rel_ret", "num_ret",
        "recip_rank", "runid",
    },
    "set": {
        "num_q", "num_rel", "num_rel_ret", "num_ret", "runid", "set_F", "set_P", "set_map", "set_recall",
        "set_relative_P", "utility",
    },
    "all_trec": set(supported_measures),
}  # fmt: skip

_Number = TypeVar("_Number", int, float)

_PARAMETERS = compile_later(r"[._]([0-9]+(?:\.[0-9]+)?(?:,[0-9]+(?:\.[0-9]+)?)*)$")


class RelevanceEvaluator:
    """Evaluates runs against relevance judgements, as `pytrec_eval.RelevanceEvaluator` does."""

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
        *,
        profile: Literal["trec_eval", "trec_eval_2023"] = "trec_eval",
    ) -> None:
        """Prepare the measures and keep a copy of the judgements.

        Args:
            query_relevance: `{query_id: {doc_id: relevance}}`; queries without judgements are excluded.
            measures: trec_eval's names, with or without parameters ("map", "ndcg_cut", "ndcg_cut.10", "P_5,10"), or
                nicknames ("official").
            relevance_level: the lowest relevance that counts as relevant.
            judged_docs_only_flag: remove unjudged documents first.
            profile: the version of trec_eval to follow. "trec_eval": its tag v9.0.8 (commit d95ca64, 2020), which is
                part of pytrec_eval and reads scores as float32; "trec_eval_2023": its tag trec_eval-9.0.8 (2023), which
                reads them as float64.

        Raises:
            ValueError: a measure is unknown, or does not accept its parameter.
            AttributeError: the judgements are not a mapping; pytrec_eval raises the same.
        """
        outputs = _expand(measures)
        self._texts = [name for name in outputs if name in _TEXTS]
        self._names = [name for name in outputs if name not in _TEXTS]
        # If all measures are texts, `num_q` still shows which queries are evaluated.
        options = kernels.RankingOptions(
            ties=profile, relevance_level=relevance_level, judged_only=bool(judged_docs_only_flag)
        )
        self._evaluator = kernels.prepare_evaluator([outputs[name] for name in self._names] or ["num_q"], options)
        self._qrels = {query: copy(docs) for query, docs in nest(query_relevance).items()}

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """`{query_id: {measure: value}}` for the queries of the run that have judgements, in the run's order.

        Raises:
            TypeError: the run is not a mapping, an id is not a str, or a score is not a number; the message names the
                entry.
            ValueError: a score is NaN.
        """
        if not isinstance(scores, Mapping):
            raise TypeError(f"scores is of type {type(scores).__name__}, not a dict of query_id to {{doc_id: score}}")
        run = nest(scores)
        values = self._evaluator.evaluate(self._qrels, run).to_dicts(self._names or ["num_q"])
        if not self._names:
            values = {query: {} for query in values}
        for row in values.values() if self._texts else ():
            row.update(dict.fromkeys(self._texts, 0.0))
        # Ids of a subclass of str become plain text.
        return {str.__str__(query): values[query] for query in run if query in values}


def _expand(measures: Iterable[str]) -> dict[str, str]:
    """The names in the result, each with the kernel's name of the measure."""
    wanted: dict[str, set[str]] = {}
    for measure in [measures] if isinstance(measures, str) else measures:
        if measure in supported_nicknames:
            wanted |= {name: set() for name in supported_nicknames[measure] if name not in wanted}
        elif measure in supported_measures:
            wanted.setdefault(measure, set())
        else:
            base, given = _split(measure)
            wanted.setdefault(base, set()).update(given)
    outputs: dict[str, str] = {}
    for base, parameters in wanted.items():
        outputs |= _outputs(base, parameters)
    return outputs


def _split(measure: str) -> tuple[str, list[str]]:
    match = _PARAMETERS.search(measure)
    while match and measure[: match.start()] not in supported_measures:
        match = _PARAMETERS.search(measure, match.start() + 1)
    if match is None:
        raise ValueError(f"unsupported measure {measure}")
    return measure[: match.start()], match[1].split(",")


def _outputs(base: str, parameters: Iterable[str]) -> dict[str, str]:
    given: Sequence[str] = sorted(set(parameters), key=float)
    if base in ("iprec_at_recall", "Rprec_mult"):
        return {f"{base}_{float(level):.2f}": f"{base}_{level}" for level in given or _DEFAULTS[base]}
    if base in _DEFAULTS:
        depths = [_depth(base, depth) for depth in given or _DEFAULTS[base]]
        return {f"{base}_{depth}": f"{base}_{depth}" for depth in depths}
    if base == "set_F" and given:
        # pytrec_eval sorts the parameters as text, and trec_eval takes the first one.
        return {base: f"set_f(beta={min(given)})"}
    if base in ("utility", "G", "Rndcg", "ndcg", "ndcg_rel", "11pt_avg") and given:
        raise ValueError(f"{base} with parameters is not supported; ask for plain '{base}'")
    return {base: base}


def _depth(base: str, text: str) -> int:
    depth = int(float(text))
    if depth < 1:
        raise ValueError(f"{base}: the cutoff {text} is below 1")
    return depth


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Parse the lines of a TREC run into `{query_id: {doc_id: score}}`.

    Raises:
        ValueError: a line does not have six columns, or its score is not a number.
        AssertionError: a query has a document twice.
    """
    return _parse(f_run, "run", columns=6, value=4, convert=float)


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Parse the lines of a TREC qrels file into `{query_id: {doc_id: relevance}}`.

    Raises:
        ValueError: a line does not have four columns, or its relevance is not a whole number.
        AssertionError: a query has a document twice.
    """
    return _parse(f_qrel, "qrels", columns=4, value=3, convert=int)


def _parse(
    lines: Iterable[str], table: str, *, columns: int, value: int, convert: Callable[[str], _Number]
) -> dict[str, dict[str, _Number]]:
    rows: dict[str, dict[str, _Number]] = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) != columns:
            raise ValueError(f"{table}, line {number}: has {len(fields)} columns, expected {columns}")
        docs = rows.setdefault(fields[0], {})
        if fields[2] in docs:
            raise AssertionError(f"{table}, line {number}: document {fields[2]} twice for query {fields[0]}")
        try:
            docs[fields[2]] = convert(fields[value])
        except ValueError as error:
            raise ValueError(f"{table}, line {number}: {error}") from None
    return rows


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """Aggregate values: the sum for `num_...`, the exponential of the mean for `gm_...` (whose values are logarithms),
    and the mean for other measures.

    Raises:
        ValueError: there are no values, so there is no mean.
    """
    if measure.startswith("num_"):
        return float(np.sum(values))
    if not len(values):
        raise ValueError(f"{measure}: there are no values, so there is no mean")
    return float(np.exp(np.sum(values) / len(values)) if measure.startswith("gm_") else np.mean(values))
