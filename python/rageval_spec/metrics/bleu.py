from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from rageval_spec.metrics.shared.answer_metrics import EMPTY_IS_ZERO
from rageval_spec.metrics.shared.reference_metrics import Comparer, LexicalMetric
from rageval_spec.plugin import MetricInfo, MetricNode


class BleuNode(MetricNode):
    tokenize: Literal["13a", "intl", "zh", "char", "none"] = Field(
        default="13a",
        description="How to split texts into words, by sacrebleu's names. 13a: as mteval-v13a; intl: by Unicode's "
        "rules; zh: each Han character by itself; char: each character by itself; none: at white space.",
    )
    lowercase: bool = Field(default=False, description="Whether to ignore case.")


class Bleu(LexicalMetric[BleuNode]):
    known_as = ("bleu_score",)
    info = MetricInfo(
        summary="How many short word sequences of the answer occur in the references, as measured for machine "
        "translation.",
        formula="bleu = BP exp(mean of log p_n), p_n = clipped share of the answer's n-grams that a reference "
        "contains, n = 1 to 4, BP = min(1, exp(1 - r / c)), c = words of the answer, r = words of the reference "
        "closest in length; sacrebleu's score / 100",
        edge_cases=(
            "signature: nrefs:var|case:mixed|eff:yes|tok:13a|smooth:exp (sacrebleu 2)",
            "mean over queries: is of sentence BLEU, which is not corpus BLEU and must not be reported as such",
            "fewer than four words: only the orders that the answer has (effective order)",
            "order without any match: exponential smoothing",
            "several references: all together, as in sacrebleu; empty ones are left out",
            EMPTY_IS_ZERO,
        ),
        source="Papineni, Roukos, Ward and Zhu, BLEU: a method for automatic evaluation of machine translation, ACL "
        "2002; Post, A call for clarity in reporting BLEU scores, WMT 2018",
        aliases=("sentence_bleu", "sacrebleu"),
    )

    def comparer(self) -> Comparer:
        from sacrebleu.metrics.bleu import BLEU

        scorer = BLEU(
            lowercase=self.node.lowercase, tokenize=self.node.tokenize, smooth_method="exp", effective_order=True
        )

        def compare(answer: str, references: Sequence[str]) -> float:
            score: float = scorer.sentence_score(answer, references).score
            return min(1.0, score / 100)  # rounding can give more than 100

        return compare


PLUGIN = Bleu
