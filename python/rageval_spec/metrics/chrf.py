from collections.abc import Sequence

from pydantic import Field

from rageval_spec.metrics.shared.answer_metrics import EMPTY_IS_ZERO
from rageval_spec.metrics.shared.reference_metrics import Comparer, LexicalMetric
from rageval_spec.plugin import MetricInfo, MetricNode


class ChrfNode(MetricNode):
    char_order: int = Field(default=6, ge=1, le=20, description="The length of the longest runs of characters.")
    word_order: int = Field(
        default=0,
        ge=0,
        le=10,
        description="The length of the longest runs of words; 2 makes it chrF++, 0 leaves words out.",
    )
    beta: int = Field(default=2, ge=1, le=100, description="How many times more recall weighs than precision.")
    lowercase: bool = Field(default=False, description="Whether to ignore case.")


class Chrf(LexicalMetric[ChrfNode]):
    known_as = ("chrf_score",)
    info = MetricInfo(
        summary="How many short runs of characters the answer and a reference share; works for any script and "
        "tolerates inflected words.",
        formula="chrf = (1 + beta^2) P R / (beta^2 P + R), P and R = shares of common character n-grams in the "
        "answer's and in the reference's, means over n = 1 to 6, beta = 2; the best over all references; sacrebleu's "
        "score / 100",
        edge_cases=(
            "signature: nrefs:var|case:mixed|eff:yes|nc:6|nw:0|space:no (sacrebleu 2)",
            "chrF++: word_order 2",
            "white space: does not matter",
            "fewer characters than an order: that order is left out (effective order)",
            "mean over queries: is of sentence scores, which is not a corpus score",
            EMPTY_IS_ZERO,
        ),
        source="Popović, chrF: character n-gram F-score for automatic MT evaluation, WMT 2015; Popović, chrF++: words "
        "helping character n-grams, WMT 2017",
        aliases=("chrF",),
    )

    def comparer(self) -> Comparer:
        from sacrebleu.metrics.chrf import CHRF

        node = self.node
        scorer = CHRF(char_order=node.char_order, word_order=node.word_order, beta=node.beta, lowercase=node.lowercase)

        def compare(answer: str, references: Sequence[str]) -> float:
            score: float = scorer.sentence_score(answer, references).score
            return min(1.0, score / 100)  # rounding can give more than 100

        return compare


PLUGIN = Chrf
