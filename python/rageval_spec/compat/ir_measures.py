"""A provider for `ir_measures`, which computes its measures with the kernels of this package.

    import ir_measures
    from ir_measures import nDCG, AP
    from rageval_spec.compat.ir_measures import RagevalProvider

    RagevalProvider().calc_aggregate([nDCG @ 10, AP], qrels, run)

Importing this module registers the provider as `ir_measures.providers.registry["rageval_spec"]`.

Documents with equal scores are ordered as in trec_eval: scores as float32, ties by doc_id descending. The providers
`pytrec_eval` and `gdeval` of ir_measures do the same (`gdeval` with scores as float64). Its other providers order ties
differently, so their values differ if a tie decides: `judged` (Judged) and `msmarco` (RR@k) put the lower doc_id first,
and `ranx` and `trectools` have their own order.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ir_measures import Metric, measures, providers
from ir_measures.providers.base import NOT_PROVIDED, Choices
from ir_measures.providers.base import Any as AnyValue
from ir_measures.util import QrelsConverter, RunConverter

from rageval_spec import kernels
from rageval_spec.api.ranking_inputs import measure_text, nest

_ANY, _SOME = AnyValue(), AnyValue(required=True)
Qrels = Mapping[str, Mapping[str, int]]


class RagevalProvider(providers.Provider):
    """All measures of ir_measures that the kernel computes, in one pass."""

    NAME = "rageval_spec"
    SUPPORTED_MEASURES = [  # noqa: RUF012
        measures._P(cutoff=_ANY, rel=_ANY, judged_only=_ANY),
        measures._RR(cutoff=_ANY, rel=_ANY, judged_only=_ANY),
        measures._Rprec(rel=_ANY, judged_only=_ANY),
        measures._AP(cutoff=_ANY, rel=_ANY, judged_only=_ANY),
        measures._nDCG(cutoff=_ANY, dcg=Choices("log2"), gains=_ANY, judged_only=_ANY),
        measures._nDCG(cutoff=_ANY, dcg=Choices("exp-log2"), gains=Choices(NOT_PROVIDED), judged_only=_ANY),
        measures._R(cutoff=_ANY, rel=_ANY, judged_only=_ANY),
        measures._Bpref(rel=_ANY),
        measures._NumRet(rel=_ANY),
        measures._NumQ(),
        measures._NumRel(rel=_ANY),
        measures._SetAP(rel=_ANY, judged_only=_ANY),
        measures._SetF(rel=_ANY, beta=_ANY, judged_only=_ANY),
        measures._SetP(rel=_ANY, relative=_ANY, judged_only=_ANY),
        measures._SetR(rel=_ANY),
        measures._Success(rel=_ANY, cutoff=_ANY, judged_only=_ANY),
        measures._IPrec(recall=_ANY, rel=_ANY, judged_only=_ANY),
        measures._infAP(rel=_ANY),
        measures._Judged(cutoff=_ANY),
        measures._ERR(cutoff=_ANY),
        # Without `rel`, the measure of ir_measures has graded gains.
        measures._RBP(rel=_SOME, p=_ANY, cutoff=_ANY),
    ]

    def install_instructions(self) -> str:
        """The command that installs this provider."""
        return "pip install rageval-spec"

    def _evaluator(self, wanted: Iterable[Any], qrels: Any) -> RagevalEvaluator:
        return RagevalEvaluator(list(wanted), QrelsConverter(qrels).as_dict_of_dict())


class RagevalEvaluator(providers.Evaluator):
    """Prepared measures and judgements, which can evaluate any number of runs."""

    def __init__(self, wanted: Sequence[Any], qrels: Qrels) -> None:
        """Prepare the measures. Each measure with a mapping of gains needs its own judgements."""
        super().__init__(wanted, set(qrels))
        plain = [measure for measure in wanted if "gains" not in measure.params]
        self._parts = [_Part(plain, qrels)] if plain else []
        self._parts += [_with_gains(measure, qrels) for measure in wanted if "gains" in measure.params]

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        scores = nest(RunConverter(run).as_dict_of_dict())
        for part in self._parts:
            yield from part.values(scores)


class _Part:
    """Measures that share the same judgements."""

    def __init__(self, wanted: Sequence[Any], qrels: Qrels) -> None:
        self._measures = {str(number): measure for number, measure in enumerate(wanted)}
        self._evaluator = kernels.prepare_evaluator([measure_text(measure) for measure in wanted])
        self._qrels = nest(qrels)

    def values(self, run: dict[str, Any]) -> Iterator[Metric]:
        values = self._evaluator.evaluate(self._qrels, run).to_dicts(list(self._measures))
        # The provider of ir_measures adds values up in the order of the run.
        for query in (query for query in run if query in values):
            for number, value in values[query].items():
                yield Metric(query_id=query, measure=self._measures[number], value=value)


def _with_gains(measure: Any, qrels: Qrels) -> _Part:
    """The plain measure, over judgements whose relevance is the gain. Its values have the name of `measure`."""
    gains = measure["gains"]
    mapped = {query: {doc: gains.get(grade, grade) for doc, grade in docs.items()} for query, docs in qrels.items()}
    plain = type(measure)(**{key: value for key, value in measure.params.items() if key != "gains"})
    part = _Part([plain], mapped)
    part._measures = {"0": measure}
    return part


providers.register(RagevalProvider())
