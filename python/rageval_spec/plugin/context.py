"""What a plugin is given beside its node: its name, the blocks it may name, limits, and where answers are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rageval_spec.errors import UsageError
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.inputs import InputFile, digest_content

if TYPE_CHECKING:
    from rageval_spec.plugin.judge import Judge
    from rageval_spec.plugin.model import Model

M = TypeVar("M", bound="Model[Any]")
Progress = Callable[[int, int], None]
"""Called with (done, total) while something long runs; it draws on a terminal and is silent in a pipe."""


def say_nothing(message: str) -> None:
    """The `Context.tell` that tells nobody."""


def ignore_progress(done: int, total: int) -> None:
    """The `Progress` that shows nothing."""


class Answers(Protocol):
    """What models answered before, kept the moment it arrives; keys are digests of a question's content."""

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """The answers that are kept for a model's questions."""

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Keep answers; when it returns, they outlive the process (`RagevalError` where they cannot be written)."""

    def claim(self, model: str, question: bytes) -> bool:
        """Whether this process may ask a question now; False while another one with the same store does."""

    def release(self, model: str, question: bytes) -> None:
        """End a claim: the question was answered, or failed."""


class NoAnswers:
    """Keeps nothing."""

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:  # noqa: ARG002 - nothing is there
        """None of them."""
        return {}

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Forget them."""

    def claim(self, model: str, question: bytes) -> bool:  # noqa: ARG002 - nobody else is there
        """Always."""
        return True

    def release(self, model: str, question: bytes) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class Context:
    """Where a plugin lives: `name` is its key in the spec, relative paths start at `folder` (the spec's own).

    Attributes:
        threads: how many the spec allows; all cores where it is None.
        tell: told in a sentence what whoever waits should know at once; it is no part of the results.
        progress: told how far something long has come.
        models: the spec's models by name, for plugins that name one.
        judges: the spec's judges by name, for plugins that name one.
        budget: what may be asked of endpoints that cost money, and what was asked.
        concurrency: how many calls to one endpoint may be under way at the same time.
        answers: where models keep what they answer.
        fingerprint: gives the sha256 of an input file's content.
    """

    name: str
    folder: Path = field(default_factory=Path)
    threads: int | None = None
    progress: Progress = ignore_progress
    models: Mapping[str, Model[Any]] = field(default_factory=dict)
    answers: Answers = field(default_factory=NoAnswers)
    fingerprint: Callable[[InputFile], str] = digest_content
    judges: Mapping[str, Judge[Any]] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    concurrency: int = 16
    tell: Callable[[str], None] = say_nothing

    def resolve(self, path: str | Path) -> Path:
        """An absolute path, or a path relative to the spec's folder; `~` is expanded."""
        return self.folder / Path(path).expanduser()

    def model(self, name: str, kind: type[M]) -> M:
        """The model of that name, which must be of a kind: `EmbeddingModel`, `PairModel`.

        Raises:
            UsageError: there is no such model, or it is of another kind.
        """
        model = self.models.get(name)
        if model is None:
            raise UsageError(f"{self.name}: there is no model '{name}'; name it under 'models:'")
        if not isinstance(model, kind):
            raise UsageError(f"{self.name}: the model '{name}' (use: {model.node.use}) is not {kind.wanted}")
        return model

    def explain_model(self, name: str, kind: type[Model[Any]], complaint: str) -> str | None:
        """What is wrong with a model's name where a kind is needed: `complaint` of it; None where nothing is."""
        model = self.models.get(name)
        if model is None or isinstance(model, kind):
            return None
        return f"the model '{name}' (use: {model.node.use}) {complaint}"

    def judge(self, name: str) -> Judge[Any]:
        """The judge of that name.

        Raises:
            UsageError: there is none.
        """
        if name not in self.judges:
            raise UsageError(f"{self.name}: there is no judge '{name}'; name it under 'judges:'")
        return self.judges[name]
