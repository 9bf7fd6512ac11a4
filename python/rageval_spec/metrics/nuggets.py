from rageval_spec.metrics.shared import nugget_metrics
from rageval_spec.plugin import MetricInfo


class Nuggets(nugget_metrics.NuggetMetric):
    known_as = ("autonuggetizer", "nuggetizer", "autonugget", "strict_vital", "vital_score")
    info = MetricInfo(
        summary="The share of the facts that a good answer must have that the answer has (nuggets, as TREC counts "
        "them).",
        formula="nuggets = sum of credits of the nuggets that count / their number; credit = 1 for support, `partial` "
        "for partial support, 0 for none; count=vital: vital nuggets; count=all: all; count=weighted: vital ones weigh "
        "1 and okay ones 0.5, in both sums",
        edge_cases=(
            "no nugget that counts, such as no vital one: no value (nuggetizer gives 0)",
            "empty answer: 0 with a reason",
            "count=weighted without okay nuggets: equal to count=vital (open-rag-eval counts half an okay nugget that "
            "is not there)",
            "judges without partial support (nli, overlap, claims): partial if the score is at least 0.5, although the "
            "nugget is not supported",
            "nugget that the judge reads in several sentences: support if all are supported, partial if some are",
            "nugget with answers: with OR the best answer counts; with AND partial unless all have the same label",
            "nugget of which the judge says nothing, or a batch that cannot be read: status error, never a guess",
        ),
        source="Voorhees, Overview of the TREC 2003 question answering track; Pradeep et al., Initial nugget "
        "evaluation results for the TREC 2024 RAG track, 2024 (arXiv:2411.09607) and The great nugget recall, 2025 "
        "(arXiv:2504.15068); AND and OR: Mayfield et al., On the evaluation of machine-generated reports, SIGIR 2024",
        aliases=("nugget_coverage",),
    )


PLUGIN = Nuggets
