"""The contracts of datasets and of labels, which are what people judged about answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from rageval_spec.data.findings import Estimate
from rageval_spec.plugin.plugin import N, Node, Plugin

if TYPE_CHECKING:
    from rageval_spec.data.labels import Label, LabelScale
    from rageval_spec.data.samples import Part
    from rageval_spec.data.tables import Collection


class DatasetNode(Node):
    """A block under `datasets:`."""

    version: str | int | None = Field(
        default=None,
        exclude_if=lambda version: version is None,
        description="The version of the dataset: `'2.1'`. Results show it, and `compare` reports when it changed. No "
        "number depends on it. Default: the one in the file.",
    )
    about: dict[str, Any] | None = Field(
        default=None,
        exclude_if=lambda about: about is None,
        description="What results show about the dataset: `{created: 2026-05-01, made: by hand, reviewed: 180, "
        "documents: {handbook: v3}}`. No number depends on it. Default: the one in the file.",
    )

    @field_validator("version", mode="before")
    @classmethod
    def _check_version(cls, version: Any) -> Any:
        if isinstance(version, float):
            raise ValueError(f"write the version in quotes, '{version}': as a number, 2.10 would be 2.1")
        return version

    former_columns: ClassVar[Mapping[str, str]] = {}
    """Older keys that name columns, from before `columns:`, and the key of the file whose columns they name; "" is the
    main file. Specs with these keys are still read, with a warning."""


class Dataset(Plugin[N]):
    """Reads judgements, queries and documents."""

    def content(self) -> dict[str, Any]:
        """The plugin's identity without `version` and `about`: the content of the files decides, not its name."""
        content = super().content()
        for key in ("version", "about"):
            content["node"].pop(key, None)
        return content

    @property
    def parts(self) -> frozenset[str]:
        """Which of "queries" and "corpus" the dataset can have, as far as is known before it is opened."""
        return frozenset({"queries", "corpus"})

    def list_other_columns(self) -> Sequence[str] | None:
        """The names of the columns that `Collection.columns` has; None if they cannot be found quickly.

        Raises:
            DataError: the file cannot be read.
        """
        return None

    def find_parts(self) -> frozenset[Part] | None:
        """The parts of samples that any question has: "reference", "relevant", ...; None if that is not quickly known.

        Raises:
            DataError: the file cannot be read.
        """
        return None

    def iterate_questions(self) -> Iterator[tuple[str, Mapping[str, Any]]] | None:
        """The place (`golden.jsonl:12`) and the values by name of each question, as they are in its file.

        They come in the order of `Collection.queries`. None if the dataset cannot say where its questions are.

        Raises:
            DataError: the file cannot be read.
        """
        return None

    def prepare(self) -> None:
        """Make what the dataset does not have yet, such as questions that a model writes.

        `run` calls this before it plans, and after it has prepared the models; `validate` and `plan` never do.

        Raises:
            RagevalError: it cannot be made, or only a part of it; the message says how to continue.
        """

    def estimate(self) -> Estimate:
        """The calls that `prepare` would make and whose replies are not stored yet. Makes no call."""
        return Estimate()

    def foresee(self) -> Collection:
        """The collection as an estimate reads it: with supposed questions for those that `prepare` has yet to make."""
        return self.open()

    def stored_keys(self) -> Sequence[str]:
        """The keys under which the store has what `prepare` made, so that pruning keeps what a spec needs."""
        return ()

    @abstractmethod
    def open(self) -> Collection:
        """The collection. Its tables load on first use and raise `DataError` with `file:line`."""


class LabelsNode(Node):
    """A block under `labels:`."""

    scale: tuple[float, float] = Field(
        default=(0.0, 1.0),
        description="The worst and the best label, such as [1, 5]. No number may lie outside. "
        "Yes is the best, and no the worst.",
    )

    @field_validator("scale")
    @classmethod
    def _check_ends(cls, scale: tuple[float, float]) -> tuple[float, float]:
        if scale[0] == scale[1]:
            raise PydanticCustomError("scale", "must have two different numbers, the worst first, such as [1, 5]")
        return scale


class Labels(Plugin[N]):
    """Reads what people judged about answers, or about pairs of a query and a document."""

    of_pairs: ClassVar[bool] = False

    @abstractmethod
    def read(self) -> Sequence[Label]:
        """All labels, in the order of the file.

        Raises:
            DataError: they cannot be read; the message begins with the place, `file:line`.
        """

    @property
    def scale(self) -> LabelScale:
        """What the worst and the best label are."""
        from rageval_spec.data.labels import LabelScale

        return LabelScale(*self.node.scale)  # type: ignore[attr-defined]
