"""What a plugin gets besides its node: its name, the blocks it can refer to, limits, and the store of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from rageval_spec.errors import UsageError
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.inputs import InputFile, digest_content

if TYPE_CHECKING:
    from rageval_spec.plugin.judge import Judge
    from rageval_spec.plugin.model import Model

M = TypeVar("M", bound="Model[Any]")


class Progress(Protocol):
    """Called while something long runs. It draws on a terminal; in a pipe it writes a line now and then."""

    def __call__(self, done: int, total: int, unit: str | None = None) -> None:
        """Show that `done` of `total` are done.

        `unit` names what is counted, such as "pairs", if it is not what the plugin usually counts.
        """


def say_nothing(message: str) -> None:
    """A `Context.tell` that drops the message."""


def ignore_progress(done: int, total: int, unit: str | None = None) -> None:
    """A `Progress` that shows nothing."""


class Answers(Protocol):
    """Earlier answers of models, stored the moment they arrive; keys are digests of a question's content."""

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """The stored answers to a model's questions, by digest; questions without one are missing."""

    def has_any(self, model: str) -> bool:
        """Whether any answer of a model is stored."""

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Store answers, which then outlive the process. Raises `RagevalError` if they cannot be written."""

    def claim(self, model: str, question: bytes) -> bool:
        """Whether this process may ask a question now; False while another process with the same store is asking it."""

    def release(self, model: str, question: bytes) -> None:
        """End a claim, because the question was answered or failed."""


class NoAnswers:
    """An `Answers` that stores nothing and lets every question be asked."""

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:  # noqa: ARG002 - nothing is stored
        """Return no answers."""
        return {}

    def has_any(self, model: str) -> bool:  # noqa: ARG002 - nothing is stored
        """Never."""
        return False

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Drop the answers."""

    def claim(self, model: str, question: bytes) -> bool:  # noqa: ARG002 - no other process shares it
        """Always."""
        return True

    def release(self, model: str, question: bytes) -> None:
        """Do nothing: claims are not recorded."""


class Origin(NamedTuple):
    """Where a spec is written.

    Attributes:
        path: the spec's file, as a path in its repository with forward slashes.
        gate_lines: the line of each gate, counted from 1, in the order of the spec.
    """

    path: str
    gate_lines: tuple[int, ...]


@dataclass(frozen=True)
class Context:
    """A plugin's surroundings: `name` is its key in the spec; relative paths start at `folder`, the spec's folder.

    Attributes:
        threads: how many threads the spec allows; None for all cores.
        tell: shows the user a sentence at once, on stderr; it is not part of the results.
        progress: shows how far long work has come.
        models: the spec's models by name, for plugins that refer to one.
        judges: the spec's judges by name, for plugins that refer to one.
        budget: what may be asked of endpoints that cost money, and what was asked.
        concurrency: how many calls to one endpoint may be under way at the same time.
        answers: where models store their answers.
        fingerprint: computes the sha256 of an input file's content.
        origin: where the spec is written, for reports that point at a gate; None if it was not read from a file.
        output: the folder that the results are written to; None if they are not written.
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
    origin: Origin | None = None
    output: Path | None = None

    def resolve(self, path: str | Path) -> Path:
        """The path with `~` expanded; a relative path starts at the spec's folder."""
        return self.folder / Path(path).expanduser()

    def model(self, name: str, kind: type[M]) -> M:
        """The model of that name, which must be an instance of `kind`, such as `EmbeddingModel`.

        Raises:
            UsageError: there is no such model, or it is of another kind.
        """
        model = self.models.get(name)
        if model is None:
            raise UsageError(f"{self.name}: there is no model '{name}'; declare it under 'models:'")
        if not isinstance(model, kind):
            raise UsageError(f"{self.name}: the model '{name}' (use: {model.node.use}) is not {kind.wanted}")
        return model

    def explain_model(self, name: str, kind: type[Model[Any]], complaint: str) -> str | None:
        """Why the model of that name cannot serve as `kind`, ending in `complaint`; None if it can."""
        model = self.models.get(name)
        if model is None or isinstance(model, kind):
            return None
        return f"the model '{name}' (use: {model.node.use}) {complaint}"

    def judge(self, name: str) -> Judge[Any]:
        """The judge of that name.

        Raises:
            UsageError: there is no such judge.
        """
        if name not in self.judges:
            raise UsageError(f"{self.name}: there is no judge '{name}'; declare it under 'judges:'")
        return self.judges[name]
