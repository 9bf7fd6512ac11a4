from typing import Literal

from pydantic import Field

from rageval_spec.metrics.shared.reference_metrics import Comparer, LexicalMetric, exact_match
from rageval_spec.plugin import MetricInfo, MetricNode


class ExactMatchNode(MetricNode):
    normalize: Literal["squad", "none"] = Field(
        default="squad",
        description="squad: case, punctuation, English articles and white space do not matter. none: every character "
        "matters.",
    )


class ExactMatch(LexicalMetric[ExactMatchNode]):
    compares_blank = True
    known_as = ("equals", "exact")
    info = MetricInfo(
        summary="Whether the answer equals one of the references, word for word; its mean is the share of right "
        "answers.",
        formula="exact_match = 1 if normalize(answer) = normalize(reference) for any reference, else 0",
        edge_cases=(
            "normalize: lower case, no punctuation, no `a`, `an`, `the`, no surplus white space; removes the "
            "punctuation of all scripts, where SQuAD's script removes only that of ASCII; `12.5%` is then `125`, as in "
            "SQuAD",
            "empty answer: 1 if a reference is empty too, as in SQuAD 2.0's unanswerable questions, else 0",
            "several references: one that matches is enough",
        ),
        source="Rajpurkar, Zhang, Lopyrev and Liang, SQuAD: 100,000+ questions for machine comprehension of text, "
        "EMNLP 2016; normalisation of the SQuAD 2.0 evaluation script",
        aliases=("em",),
    )

    def comparer(self) -> Comparer:
        if self.node.normalize == "none":
            return lambda answer, references: float(answer in references)
        return lambda answer, references: float(exact_match(answer, references))


PLUGIN = ExactMatch
