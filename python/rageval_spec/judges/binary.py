"""`binary`: a chat model says yes or no, one word, of each claim, of each context, or of the whole sample."""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import Field

from rageval_spec.data.assessment import Verdict
from rageval_spec.data.chat import ChatReply
from rageval_spec.endpoints.asking import Question
from rageval_spec.endpoints.replies import read_word
from rageval_spec.judges.shared.piecewise import Matter, PiecewiseJudge, PiecewiseNode
from rageval_spec.judging.grading import Opinion, score_option
from rageval_spec.judging.prompts import PromptFiles
from rageval_spec.plugin import Context

SCORES = {"yes": 1.0, "no": 0.0}


class BinaryPrompts(PromptFiles):
    """Files of prompts in the place of the judge's own."""

    binary: str | None = Field(default=None, min_length=1, description="The template that asks for yes or no.")


class BinaryNode(PiecewiseNode):
    """Yes or no, from a chat model, in one word: for each claim or context, or for the whole sample."""

    prompts: BinaryPrompts = Field(
        default=BinaryPrompts(), description="Files of prompts, relative to the spec, in the place of the judge's own."
    )
    per: Literal["claim", "answer"] = Field(
        default="claim",
        description="What support is asked of: each sentence, a call each, or the text as a whole. "
        "Contexts are judged one by one, and what is graded as a whole, in either case.",
    )
    probabilities: bool = Field(
        default=False,
        description="Ask for the probabilities of the reply's tokens: the score is p(yes) / (p(yes) + p(no)); "
        "1 or 0 where the endpoint gives none.",
    )


class BinaryJudge(PiecewiseJudge[BinaryNode]):
    """The cheapest reply that there is."""

    node_type = BinaryNode
    known_as = ("boolean", "yes_no", "pass_fail")
    prompt_names = ("system", "binary")

    def __init__(self, node: BinaryNode, context: Context) -> None:
        """Judge what the node says."""
        super().__init__(node, context)
        self.per = node.per

    def put(self, matter: Matter) -> Question[Opinion]:
        """Whether it is so."""
        request = self.request(
            "binary",
            None,
            logprobs=self.node.probabilities,
            instruction=matter.instruction,
            material=matter.material,
        )
        return Question(request, partial(_read_opinion, self.node.probabilities), "one word: yes or no")


def _read_opinion(uses_probabilities: bool, text: str, reply: ChatReply) -> Opinion:
    word = read_word(text)
    score, confidence = score_option(reply, word, SCORES) if uses_probabilities else (SCORES[word], None)
    verdict: Verdict = "supported" if word == "yes" else "not_enough_info"
    return Opinion(score, verdict, None, confidence)


PLUGIN = BinaryJudge
