"""Where questions, answers and gold answers are in what a tool recorded: at named paths, or at the usual places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator

from rageval_spec.exchange.shared.payloads import find_answer, find_question, parse_text, read_text, write_text
from rageval_spec.exchange.shared.source import SourceNode

if TYPE_CHECKING:
    from rageval_spec.reading.json_path import JsonPath

_GOLD = ("reference", "ground_truth", "expected_answer", "expected_output", "expected")
_RELEVANT = ("relevant_doc_ids", "relevant_ids", "relevant", "doc_ids", "reference_context_ids")


class PlacesNode(SourceNode):
    """The keys that name places in recorded inputs and outputs."""

    question: str | None = Field(
        default=None,
        description="The path of the question in a recorded input: `$.messages[0].content`. Default: the usual places.",
    )
    answer: str | None = Field(
        default=None, description="The path of the answer in a recorded output. Default: the usual places."
    )

    @field_validator("question", "answer")
    @classmethod
    def _check_place(cls, text: str | None) -> str | None:
        from rageval_spec.reading.json_path import parse_path

        if text is not None:
            parse_path(text)
        return text

    @property
    def places(self) -> Places:
        """The places as something that finds."""
        from rageval_spec.reading.json_path import parse_path

        question, answer = (None if text is None else parse_path(text) for text in (self.question, self.answer))
        return Places(question, answer)


class Places:
    """Finds the question in an input and the answer in an output."""

    def __init__(self, question: JsonPath | None = None, answer: JsonPath | None = None) -> None:
        """Look at the usual places for what has no path."""
        self._question = question
        self._answer = answer

    def question(self, found: Any) -> str | None:
        """The question in an input; None if there is none."""
        return find_question(found) if self._question is None else _follow(self._question, found)

    def answer(self, found: Any) -> str | None:
        """The answer in an output; None if there is none."""
        return find_answer(found) if self._answer is None else _follow(self._answer, found)

    def references(self, expected: Any) -> tuple[str, ...]:
        """The gold answers in an expected output; an unknown form as JSON text."""
        expected = parse_text(expected)
        if expected is None or expected in ("", {}, []):
            return ()
        if isinstance(expected, list) and all(isinstance(one, str) for one in expected):
            return tuple(expected)
        if isinstance(expected, Mapping):
            for key in _GOLD:
                if (text := read_text(expected.get(key))) is not None:
                    return (text,)
        found = self.answer(expected)
        text = found if found is not None else write_text(expected)
        return () if text is None else (text,)


def read_relevant(*places: Any) -> tuple[str, ...] | None:
    """The ids of relevant documents in the first of some mappings that names them; None if none does."""
    for place in places:
        for key in _RELEVANT if isinstance(place, Mapping) else ():
            if isinstance(place.get(key), list):
                return tuple(str(one) for one in place[key])
    return None


def _follow(path: JsonPath, found: Any) -> str | None:
    from rageval_spec.reading.json_path import PathError

    try:
        value = path.find(parse_text(found))
    except PathError:
        return None
    return write_text(value[0] if path.is_plural and len(value) == 1 else value)
