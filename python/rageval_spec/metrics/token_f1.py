"""`token_f1`: how far the words of an answer and of a reference are the same."""

from __future__ import annotations

from rageval_spec.metrics.shared import squad as text_comparison
from rageval_spec.metrics.shared.edge_cases import FAILED_SYSTEM, NO_REFERENCE
from rageval_spec.metrics.shared.reference import Comparer, LexicalMetric
from rageval_spec.plugin import MetricInfo, MetricNode


class TokenF1(LexicalMetric[MetricNode]):
    """The harmonic mean of precision and recall of words."""

    node_type = MetricNode
    known_as = ("f1_score", "squad")
    info = MetricInfo(
        summary="How far the words of the answer are those of a reference, in whatever order: precision and recall "
        "in one number.",
        formula=(
            "token_f1 = 2 P R / (P + R), P = common words / words of the answer, R = common words / words of the "
            "reference, each word as often as both have it; the best over all references"
        ),
        edge_cases=(
            "words: of the normalised texts (see `exact_match`), split at white space; Han characters and kana, which "
            "are written without, each count as a word",
            "no word in one of the two: 1 where neither has any, as in SQuAD 2.0, else 0",
            NO_REFERENCE,
            FAILED_SYSTEM,
        ),
        source="Rajpurkar, Zhang, Lopyrev and Liang, SQuAD: 100,000+ questions for machine comprehension of text, "
        "EMNLP 2016; the SQuAD 2.0 evaluation script; characters as words: MLQA, ACL 2020",
        aliases=("squad_f1",),
    )

    def is_usable(self, reference: str) -> bool:  # noqa: ARG002 - an empty text can be equal, too
        """Any text can be compared with."""
        return True

    def comparer(self) -> Comparer:
        """SQuAD's F1."""
        return text_comparison.token_f1


PLUGIN = TokenF1
