"""`choice`: a chat model picks the best option of A, B, ...; each option has a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.data.chat import ChatReply
from rageval_spec.endpoints.chat_questions import ChatQuestion
from rageval_spec.judges.shared.chat_judge import Matter, PiecewiseJudge, WordFormNode
from rageval_spec.judging.grade_scores import PieceOpinion, score_option
from rageval_spec.judging.prompts import OWN_FILES, REMARK, PromptFile, PromptFiles, make_schema


class ChoicePrompts(PromptFiles):
    """Prompt files that replace the judge's own."""

    choice: PromptFile = Field(default=None, description="The template that asks for an option.")


class Option(BaseModel):
    """One of the options that the model picks from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1, description="The option's text, which follows its letter.")
    score: float = Field(ge=0, le=1, description="The option's score, from 0 to 1.")


class ChoiceNode(WordFormNode):
    """Asks a chat model to pick one of several options, each with a score."""

    prompts: Annotated[ChoicePrompts, OWN_FILES] = ChoicePrompts()
    options: list[Option] | None = Field(
        default=None,
        min_length=2,
        max_length=len(ascii_uppercase),
        description="The options, lettered A, B, ... in this order. By default four, from full agreement to none.",
    )


def _grade_options(*texts: str) -> tuple[Option, ...]:
    return tuple(Option(text=text, score=1 - place / (len(texts) - 1)) for place, text in enumerate(texts))


OPTIONS: Mapping[Literal["support", "usefulness", "grade"], Sequence[Option]] = {
    "support": _grade_options(
        "Yes, all of it.",
        "Mostly: only details are not.",
        "Partly: something important is not.",
        "No, little or nothing of it, or it is contradicted.",
    ),
    "usefulness": _grade_options(
        "Yes: it holds all that is needed, or the decisive part.",
        "Mostly: it holds an important part of what is needed.",
        "Hardly: it is on the topic, and holds little that is needed.",
        "No.",
    ),
    "grade": _grade_options("Yes, completely.", "Mostly.", "Partly.", "No, or hardly."),
}
"""The four default options of each kind of criterion."""


class ChoiceJudge(PiecewiseJudge[ChoiceNode]):
    """Asks for a reason and a letter, or for the letter alone."""

    known_as = ("classify", "classification", "multiple_choice", "label")

    _is_reversed = False

    @property
    def levels(self) -> int:
        return len({option.score for option in self.node.options or OPTIONS["grade"]})

    def list_reversals(self) -> Mapping[str, ChoiceJudge]:
        other = type(self)(self.node, self.context)
        other._is_reversed = True
        return {"options": other}

    def put(self, matter: Matter) -> ChatQuestion[PieceOpinion]:
        listed = self.node.options or OPTIONS[matter.criterion.kind]
        options = dict(zip(ascii_uppercase, listed[::-1] if self._is_reversed else listed, strict=False))
        choice: dict[str, Any] = {"type": "string", "enum": [*options]}
        meanings = {letter: option.text for letter, option in options.items()}
        is_word = self.node.form == "word"
        *most, last = options
        word = f"one letter: {', '.join(most)} or {last}"
        request = self.request(
            "choice",
            None if is_word else make_schema(reason=REMARK, choice=choice),
            logprobs=self.node.probabilities,
            instruction=matter.instruction,
            material=matter.material,
            options="\n".join(f"{letter}: {meaning}" for letter, meaning in meanings.items()),
        )
        scores = {letter: option.score for letter, option in options.items()}

        def read(value: Mapping[str, Any], reply: ChatReply) -> PieceOpinion:
            letter = value["choice"]
            score, confidence = scores[letter], None
            if self.node.probabilities:
                score, confidence = score_option(reply, letter, scores, None if is_word else "choice")
            return PieceOpinion(score, None, value["reason"] or None, confidence)

        return ChatQuestion(
            request,
            read,
            word if is_word else "",
            make_schema(reason=REMARK, choice=choice | {"meanings": meanings}),
            word,
        )


PLUGIN = ChoiceJudge
