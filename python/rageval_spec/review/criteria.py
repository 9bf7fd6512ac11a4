"""Criteria: what people are asked about an answer, on which scale, and how they should decide."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import UsageError
from rageval_spec.libraries import compile_later

Kind: TypeAlias = Literal["yes_no", "rating", "claims", "nuggets"]
VERDICTS = ("supported", "contradicted", "not_enough_info")
"""What people can say of a claim; the words are those of judges."""
MOST_GRADES = 11
_RATING = compile_later(r"(-?[0-9]{1,3})(?:\.\.|-)(-?[0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class ReviewCriterion:
    """One thing that people judge about each answer, or about each of its claims.

    Attributes:
        name: the metric that the labels belong to: `faithfulness`.
        kind: `yes_no` or `rating` (a whole number from `low` to `high`) for the whole answer; `claims` for one of
            `VERDICTS` for each claim that the metric's judge found; `nuggets` for a list that is edited.
        question: what is asked, as a sentence: "Does everything that the answer says follow from the contexts?"
        guidelines: how to decide; several lines of plain text. A line that begins with a choice and a colon says what
            the choice means: `5: nothing to improve.`
    """

    name: str
    kind: Kind
    question: str
    guidelines: str = ""
    low: int = 0
    high: int = 1

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that people can enter, as they are written: `yes, no`, `1, 2, 3, 4, 5`, or `VERDICTS`."""
        if self.kind == "claims":
            return VERDICTS
        if self.kind in ("yes_no", "nuggets"):
            return ("yes", "no") if self.kind == "yes_no" else ()
        return tuple(map(str, range(self.low, self.high + 1)))

    @property
    def scale(self) -> str:
        """The scale as the command line names it: `yes_no`, `claims` or `1..5`."""
        return f"{self.low}..{self.high}" if self.kind == "rating" else self.kind


def make_criterion(name: str, scale: str = "yes_no", summary: str = "", word: str = "") -> ReviewCriterion:
    """The criterion of a metric on a scale: `yes_no`, `claims`, or the worst and the best grade (`1..5`).

    A name or, before it, a metric's `word` in the spec that is known (`faithfulness`, `completeness`, `relevance`) has
    a question and guidelines; for others, the `summary` says what is measured. Raises UsageError: there is no such
    scale.
    """
    known = _find_known(word or name)
    question = known.question if known else f"Is the answer good by '{name}'?"
    told = [known.guidelines if known else summary]
    if scale == "claims":
        told.append(_CLAIMS)
        return ReviewCriterion(name, "claims", "What do the contexts say of each claim?", _join(told))
    if scale == "yes_no":
        told.append(_YES_NO)
        return ReviewCriterion(name, "yes_no", question, _join(told))
    low, high = _read_grades(scale)
    told += [_HESITATION, _describe_grades(name, low, high)]
    return ReviewCriterion(name, "rating", question, _join(told), low, high)


def _read_grades(scale: str) -> tuple[int, int]:
    found = _RATING.fullmatch(scale.strip())
    if found is None:
        raise UsageError(f"'{scale}' is not a scale; write yes_no, claims, or the worst and the best grade: 1..5")
    low, high = int(found[1]), int(found[2])
    if not 1 <= high - low < MOST_GRADES:
        raise UsageError(f"the scale {scale} must have 2 to {MOST_GRADES} grades, the worst first: 1..5")
    return low, high


def _find_known(name: str) -> _Known | None:
    return next((one for one in _KNOWN if any(part in name.casefold() for part in one.parts)), None)


def _describe_grades(name: str, low: int, high: int) -> str:
    """What the grades mean, one a line, the best first: all of them if there are five, else the ends."""
    known = _find_known(name)
    grades = known.grades.splitlines() if known else []
    if high - low != len(grades) - 1:
        return _RATINGS.format(low=low, high=high)
    return "\n".join(f"{high - step}: {meaning}" for step, meaning in enumerate(grades))


def _join(texts: list[str]) -> str:
    return "\n".join(filter(None, texts))


GENERAL = """Judge each answer by what is on the page, not by what you know or could look up.
Judge each criterion by itself: an answer can be complete and wrong.
Do not reward length, style or confidence.
If you cannot decide, leave the field empty and write why into the comment."""
"""Guidelines that hold for all criteria."""
_YES_NO = "yes: it holds for the whole answer.\nno: at least one part of the answer breaks it."
_RATINGS = "{high}: nothing to improve.\n{low}: useless or wrong."
_HESITATION = "If you hesitate between two grades, take the lower one."
_CLAIMS = """supported: a context says it, in these or other words.
contradicted: a context says otherwise.
not_enough_info: no context says it, even if it is true."""


class _Known(NamedTuple):
    """What is asked by criteria with one of these parts in their names, and what five grades mean, the best first."""

    parts: tuple[str, ...]
    question: str
    guidelines: str
    grades: str = ""


_KNOWN = (
    _Known(
        ("context_recall", "context_entity"),
        "Do the contexts contain everything that the reference says?",
        "Look for each fact of the reference in the contexts. The answer does not matter here.",
    ),
    _Known(
        ("context_",),
        "Do the contexts help to answer the question?",
        "A context helps if it contains the answer or a part of it. The answer that was given does not matter here.",
    ),
    _Known(
        ("faithful", "ground", "factual"),
        "Does everything that the answer says follow from the contexts?",
        "Check names, numbers, dates, units and conditions one by one.\n"
        "What is true but not in the contexts does not follow from them.\n"
        "An answer that says that it does not know claims nothing.",
        """Everything follows from the contexts.
A detail is imprecise, but nothing is wrong.
A minor statement does not follow.
An important statement does not follow.
The main statement does not follow, or the contexts say otherwise.""",
    ),
    _Known(
        ("complete",),
        "Does the answer contain everything that the question asks for?",
        "Compare it with the reference, if there is one. Other words for the same thing count.\n"
        "A part of the question that stays open counts as missing.",
        """Everything that the question asks for is there.
A minor detail is missing.
An important part is missing.
Most of it is missing.
The answer does not answer the question.""",
    ),
    _Known(
        ("relevan",),
        "Does the answer address the question, without straying from it?",
        "Whether it is true does not matter here.\nText that nobody asked for makes it worse.",
        """It answers the question and nothing else.
It answers the question, with a little that is beside the point.
It answers a part, or much is beside the point.
It only touches on the question.
It is about something else.""",
    ),
    _Known(
        ("fluen",),
        "Is the answer well written?",
        "Grammar, spelling, clear sentences, the language of the question. Whether it is true does not matter here.",
        """It reads like the text of a careful writer.
There are small slips that do not disturb.
It is awkward or repetitive, but clear.
It is hard to read.
It can hardly be understood.""",
    ),
    _Known(
        ("correct",),
        "Does the answer say the same as the reference?",
        "Compare facts, not words. Additions that do not contradict the reference are allowed.",
        """It says the same as the reference.
A minor detail differs.
An important part differs or is missing.
Most of it differs or is missing.
It contradicts the reference, or does not answer the question.""",
    ),
    _Known(
        ("concis",),
        "Is everything in the answer needed?",
        "Repetitions, introductions and asides make it worse.",
        """Nothing could be left out.
A few words could be left out.
A sentence or two could be left out.
Half of it could be left out.
What matters is lost in the rest.""",
    ),
)
