from collections.abc import Callable, Sequence

from rageval_spec.libraries import compile_later
from rageval_spec.metrics.shared.answer_metrics import EMPTY_IS_ZERO
from rageval_spec.metrics.shared.reference_metrics import Comparer, LexicalMetric
from rageval_spec.plugin import MetricInfo, MetricNode

_WORD = compile_later(r"[a-z0-9]+")


class RougeL(LexicalMetric[MetricNode]):
    known_as = ("rouge", "rouge_n", "rouge_score", "rougelsum")
    no_reference = "the reference has no Latin letters or digits, which ROUGE's words consist of"
    info = MetricInfo(
        summary="How many words the answer and a reference share in the same order, not necessarily next to each "
        "other.",
        formula="rouge_l = 2 P R / (P + R), P = LCS / words of the answer, R = LCS / words of the reference, LCS = "
        "length of their longest common subsequence; the best over all references",
        edge_cases=(
            "words: lower case, runs of a-z and 0-9, no stemming, as in the package rouge-score; letters with "
            "accents end a word",
            "no Latin letters or digits in any reference: unscorable; use `chrf` or `token_f1` for other scripts",
            "whole texts: line breaks do not matter (rouge-score's `rougeL`, not `rougeLsum`)",
            EMPTY_IS_ZERO,
        ),
        source="Lin, ROUGE: a package for automatic evaluation of summaries, Text Summarization Branches Out, ACL "
        "2004; numbers of rouge-score 0.1.2",
        aliases=("rougeL", "rouge-l"),
    )

    def is_usable(self, reference: str) -> bool:
        return _WORD.search(reference.lower()) is not None

    def comparer(self) -> Comparer:
        from rapidfuzz.distance import LCSseq

        def compare(answer: str, references: Sequence[str]) -> float:
            said = _WORD.findall(answer.lower())
            return max(_f(said, _WORD.findall(reference.lower()), LCSseq.similarity) for reference in references)

        return compare


def _f(answer: Sequence[str], reference: Sequence[str], count_common: Callable[[list[int], list[int]], int]) -> float:
    # Words become numbers, because equal numbers then mean equal words; for words, hashes would be compared.
    numbers: dict[str, int] = {}
    first, second = ([numbers.setdefault(word, len(numbers)) for word in words] for words in (answer, reference))
    common = count_common(first, second)
    return 2 * common / (len(answer) + len(reference)) if common else 0.0  # 2PR / (P + R), rounded once


PLUGIN = RougeL
