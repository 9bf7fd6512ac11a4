from rageval_spec.metrics.shared.reference_metrics import Comparer, LexicalMetric, token_f1
from rageval_spec.plugin import MetricInfo, MetricNode


class TokenF1(LexicalMetric[MetricNode]):
    compares_blank = True
    known_as = ("f1_score", "squad")
    info = MetricInfo(
        summary="How far the answer and a reference have the same words, in any order: precision and recall in one "
        "number.",
        formula="token_f1 = 2 P R / (P + R), P = common words / words of the answer, R = common words / words of the "
        "reference, each word counted as often as both have it; the best over all references",
        edge_cases=(
            "words: from the normalised texts (see `exact_match`), split at white space; each Han character and each "
            "kana counts as a word, because these scripts have no spaces",
            "no word in one of the two: 1 if neither has any, as in SQuAD 2.0, else 0",
        ),
        source="Rajpurkar, Zhang, Lopyrev and Liang, SQuAD: 100,000+ questions for machine comprehension of text, "
        "EMNLP 2016; the SQuAD 2.0 evaluation script; characters as words: MLQA, ACL 2020",
        aliases=("squad_f1",),
    )

    def comparer(self) -> Comparer:
        return token_f1


PLUGIN = TokenF1
