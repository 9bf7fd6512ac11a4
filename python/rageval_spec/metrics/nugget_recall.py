from collections.abc import Sequence

from rageval_spec.data.findings import Estimate, Failed
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import replace
from rageval_spec.metrics.shared import cited_statements, judged_metrics, nugget_metrics
from rageval_spec.plugin import Measured, Measurement, MetricInfo

_NOTHING_SUPPORTED = "no statement of the answer is supported by what it cites"


class NuggetRecall(nugget_metrics.NuggetMetric):
    known_as = ("argue_recall", "supported_nuggets")
    needs = frozenset({"answer", "contexts", "nuggets"})
    asked = (nugget_metrics.NUGGETS_IN_ANSWER, cited_statements.STATEMENT_IN_CITED)
    info = MetricInfo(
        summary="The share of the nuggets that an answer has in sentences that their citations support, as in ARGUE.",
        formula="nugget_recall = `nuggets` of the statements that every passage they cite supports in full, and of no "
        "others; `count` and `partial` as there",
        edge_cases=(
            "empty answer, or no statement that its citations support: 0 with a reason",
            "statement without a citation, or with one that names no context: not supported",
            "no nugget that counts: no value",
            "statement that the judge leaves undecided: status error, because its nuggets would be lost without a word",
            "with sentence_precision: the judge is asked once for both which statements are supported",
        ),
        source="Mayfield et al., On the evaluation of machine-generated reports, SIGIR 2024 (arXiv:2405.00982); Walden "
        "et al., Auto-ARGUE: LLM-based report generation evaluation, 2025 (arXiv:2509.26184)",
    )

    def ask(self, samples: Sequence[Sample]) -> Measured:
        told, notes = cited_statements.keep_supported(self.judge, samples)
        kept = [one for one in told if isinstance(one, Sample) and one.answer]
        asked = super().ask(kept) if kept else Measured(())
        measured = iter(asked.measurements)
        return Measured([self._conclude(one) or next(measured) for one in told], (*notes, *asked.notes))

    def _conclude(self, told: Sample | Failed) -> Measurement | None:
        """The measurement of a sample that has nothing more to ask about."""
        if isinstance(told, Failed):
            return judged_metrics.measure_failure(told)
        return None if told.answer else self.measure_without(told, _NOTHING_SUPPORTED)

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        """The calls if every statement is supported; the fewer are, the fewer nuggets are found in fewer words."""
        cited = cited_statements.estimate_pairs(self.judge, samples, cited_statements.list_cited)
        plain = [replace(sample, answer=cited_statements.join_statements(sample)) for sample in samples]
        return cited | super().estimate_asking(plain)


PLUGIN = NuggetRecall
