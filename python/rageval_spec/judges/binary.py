"""`binary`: a chat model says yes or no, in one word, about each claim, each context or the whole sample."""

from typing import Annotated, Literal

from pydantic import Field

from rageval_spec.data.chat import ChatReply
from rageval_spec.endpoints.chat_questions import ChatQuestion
from rageval_spec.endpoints.replies import read_word
from rageval_spec.judges.shared.chat_judge import Matter, PiecewiseJudge, PiecewiseNode
from rageval_spec.judging.grade_scores import PieceOpinion, score_option
from rageval_spec.judging.prompts import OWN_FILES, PromptFile, PromptFiles
from rageval_spec.plugin import Context

SCORES = {"yes": 1.0, "no": 0.0}


class BinaryPrompts(PromptFiles):
    """Prompt files that replace the judge's own."""

    binary: PromptFile = Field(default=None, description="The template that asks for yes or no.")


class BinaryNode(PiecewiseNode):
    """Asks a chat model for yes or no, in one word, about each claim or context, or about the whole sample."""

    prompts: Annotated[BinaryPrompts, OWN_FILES] = BinaryPrompts()
    per: Literal["claim", "answer"] = Field(
        default="claim",
        description="What is judged for support: each sentence, with one call per sentence, or the whole text. In both "
        "cases, contexts are judged one by one, and grades are of the whole text.",
    )
    probabilities: bool = Field(
        default=False,
        description="Ask for token probabilities: the score is then p(yes) / (p(yes) + p(no)). If the endpoint gives "
        "none, the score is 1 or 0.",
    )


class BinaryJudge(PiecewiseJudge[BinaryNode]):
    """Asks for one word, the cheapest reply there is."""

    known_as = ("boolean", "yes_no", "pass_fail")
    levels = len(SCORES)

    def __init__(self, node: BinaryNode, context: Context) -> None:
        """Keep the node and the context; `per` decides what is judged by itself."""
        super().__init__(node, context)
        self.per = node.per

    def put(self, matter: Matter) -> ChatQuestion[PieceOpinion]:
        uses_probabilities = self.node.probabilities
        shown = {"instruction": matter.instruction, "material": matter.material}
        request = self.request("binary", None, logprobs=uses_probabilities, **shown)

        def read(text: str, reply: ChatReply) -> PieceOpinion:
            word = read_word(text)
            score, confidence = score_option(reply, word, SCORES) if uses_probabilities else (SCORES[word], None)
            return PieceOpinion(score, "supported" if word == "yes" else "not_enough_info", None, confidence)

        return ChatQuestion(request, read, "one word: yes or no")


PLUGIN = BinaryJudge
