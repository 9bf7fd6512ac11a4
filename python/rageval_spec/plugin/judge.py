"""The contract of judges."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.data.assessment import Ability, Assessment, Criterion, Estimate, Failed, Questions
from rageval_spec.errors import UsageError
from rageval_spec.plugin.inputs import InputFile
from rageval_spec.plugin.plugin import Node, Plugin

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample
    from rageval_spec.diagnostics import FileFault
    from rageval_spec.plugin.context import Context

_CALIBRATION = "calibration"


class CalibrationUse(BaseModel):
    """A calibration, and what the judge takes from it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(
        min_length=1, description="The file that `rageval-spec calibrate -o` wrote, relative to the spec."
    )
    score: Literal["probability", "decision", "guarantee"] = Field(
        default="probability",
        description="What becomes of a score. probability: the probability that people say yes; decision: 1 from the "
        "calibration's threshold on, else 0; guarantee: 1 from the guarantee's threshold on, else 0.",
    )


class JudgeNode(Node):
    """A block under `judges:`."""

    calibration: Annotated[str, Field(min_length=1)] | CalibrationUse | None = Field(
        default=None,
        description="The file that `rageval-spec calibrate -o` wrote for this judge. Scores become the probability "
        "that people say yes; the steps of a cascade or a waterfall get their bounds from it.",
    )

    @property
    def calibrated(self) -> CalibrationUse | None:
        """The key `calibration` as a block; None without it."""
        return CalibrationUse(path=self.calibration) if isinstance(self.calibration, str) else self.calibration


J = TypeVar("J", bound=JudgeNode)


class Judge(Plugin[J]):
    """Gives verdicts and grades. Safe to use from several threads.

    A judge gets all samples of a system on a dataset at once, so it can batch them or ask about many in parallel.
    """

    declared: ClassVar[frozenset[Ability]] = frozenset()
    """What every judge of this class can do; empty if that depends on the judges that its node names."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What this judge can do; known before anything is opened."""
        return self.declared

    def inputs(self) -> Sequence[InputFile]:
        """The judge's calibration, if it has one; a judge with other files adds them to these."""
        if (use := self.node.calibrated) is None:
            return ()
        key = (_CALIBRATION,) if isinstance(self.node.calibration, str) else (_CALIBRATION, "path")
        hint = "write it with: rageval-spec calibrate --labels labels.csv -o calibration.json"
        return (InputFile(self.context.resolve(use.path), key, hint=hint),)

    def content(self) -> dict[str, Any]:
        """The judge's identity; where its calibration lies does not count, because its content does."""
        content = super().content()
        content["node"].pop(_CALIBRATION, None)
        if (use := self.node.calibrated) is not None:
            content[_CALIBRATION] = use.score
        return content

    def copy_with(self, context: Context) -> Judge[Any]:
        """The same judge in another context."""
        return type(self)(self.node, context)

    def list_reversals(self) -> Mapping[str, Judge[Any]]:
        """Copies of this judge that show a part of their prompt in the reverse order, by the part: `choices`.

        What they say should be the same; how far it is not shows a preference for a place. Contexts are reversed in the
        samples, so that judges need not do it.
        """
        return {}

    @property
    def decides_refusals(self) -> bool:
        """Whether this judge gets answers that refuse. If not, metrics of claims decide refusals without it."""
        return False

    @property
    def scale(self) -> tuple[float, float] | None:
        """The lowest and the highest score of a judge that asks its own question; None if it uses the criterion's."""
        return None

    @property
    def reads_criteria(self) -> bool:
        """Whether the judge asks what the criterion says. If not, it asks its own question."""
        return True

    @property
    def shows_references(self) -> bool:
        """Whether a question of the judge's own shows reference answers or contexts, whatever the criterion shows."""
        return False

    def check_columns(
        self,
        list_columns: Callable[[], Sequence[str] | None],  # noqa: ARG002 - most judges read no column
    ) -> Iterable[FileFault]:
        """Faults that the names of the questions' other columns show.

        `list_columns` reads the beginnings of the datasets; it returns None if that does not show the names.
        """
        return ()

    def expect(self, criteria: Sequence[Criterion]) -> None:
        """Receive all criteria that `assess` will get; called once, before the first `assess`."""

    @abstractmethod
    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample, in the order of the samples; `Failed` if a sample could not be assessed.

        The samples have all parts that the criterion reads. A failure of only some samples raises nothing.

        Raises:
            LimitError: the spec's limits allow no further call.
            RagevalError: no sample can be assessed.
        """

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        """The claims of each text. `texts` are pairs of the question that a text answers ("" for none) and the text."""
        raise self._cannot("split texts into claims", texts)

    def questions(self, answers: Sequence[str], count: int) -> Sequence[Questions | Failed]:
        """For each answer, `count` questions that it would answer."""
        raise self._cannot(f"make up {count} questions", answers)

    def entities(self, texts: Sequence[str]) -> Sequence[tuple[str, ...] | Failed]:
        """The distinct named entities of each text."""
        raise self._cannot("list entities", texts)

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:  # noqa: ARG002 - costs nothing
        """The calls that `assess` would make and whose replies are not stored yet. Makes no call."""
        return Estimate()

    def estimate_writing(
        self,
        ability: Literal["claims", "questions", "entities"],  # noqa: ARG002 - costs nothing
        texts: Sequence[tuple[str, str]],  # noqa: ARG002
        count: int = 1,  # noqa: ARG002
    ) -> Estimate:
        """The calls that `claims`, `questions` or `entities` would make, as in `estimate`. Makes no call.

        `texts` are pairs as in `claims`; for the other two the question of a pair is "". Only `questions` uses `count`.
        """
        return Estimate()

    def prompt_digests(self) -> Mapping[str, str]:
        """The sha256, in hex, of each prompt that this judge can send, by name; empty if it sends none.

        Judges that it asks in turn have their own.
        """
        return {}

    def _cannot(self, what: str, asked: Sequence[object]) -> UsageError:
        return UsageError(f"judges.{self.context.name} (use: {self.node.use}) cannot {what}, of {len(asked)} texts")
