"""How often a chat model's replies could be read, and how long they took."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplyCounts:
    """What became of the questions that a chat model was asked.

    Attributes:
        first: questions whose first reply could be read.
        later: questions that were asked again, in other words, until a reply could be read.
        never: questions without a reply that could be read.
        repeats: how many replies it took beyond the first of each question.
    """

    first: int = 0
    later: int = 0
    never: int = 0
    repeats: int = 0

    @property
    def questions(self) -> int:
        """All questions that got any reply."""
        return self.first + self.later + self.never

    def __add__(self, other: ReplyCounts) -> ReplyCounts:
        """The counts of both."""
        return ReplyCounts(
            self.first + other.first, self.later + other.later, self.never + other.never, self.repeats + other.repeats
        )

    @classmethod
    def of(cls, replies: int, *, is_read: bool) -> ReplyCounts:
        """One question that got this many replies; `is_read` if the last one could be read."""
        repeats = max(replies - 1, 0)
        if not is_read:
            return cls(never=1, repeats=repeats)
        return cls(later=1, repeats=repeats) if repeats else cls(first=1)

    def __str__(self) -> str:
        """`readable replies to 97.5% of 40 questions at first, 2.5% after asking again`."""
        noun = "question" if self.questions == 1 else "questions"
        parts = [f"readable replies to {_show(self.first, self.questions)} of {self.questions:,} {noun} at first"]
        if self.later:
            parts.append(f"{_show(self.later, self.questions)} after asking again")
        if self.never:
            parts.append(f"{_show(self.never, self.questions)} never")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A chat model at an endpoint, and what was asked of it.

    Attributes:
        model, url: what it is called there, and where it was asked.
        calls, seconds: the calls that gave a reply, and how long they took in total.
        replies: how often the replies could be read.
    """

    model: str
    url: str
    calls: int
    seconds: float
    replies: ReplyCounts

    def __str__(self) -> str:
        """`readable replies to 97.5% of 40 questions at first, 2.5% after asking again; 0.84 seconds a call`."""
        return f"{self.replies}; {self.seconds / max(self.calls, 1):.2g} seconds a call"


def _show(count: int, total: int) -> str:
    """A share as a percentage that is 0% or 100% only if it is exactly that."""
    share = 100 * count / total if total else 0.0
    rounded = f"{share:.1f}".removesuffix(".0")
    if rounded == "100" and count < total:
        return "99.9%"
    return "0.1%" if rounded == "0" and count else f"{rounded}%"
