"""`nli`: a cross-encoder decides whether the contexts entail or contradict each claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from pydantic import Field, field_validator

from rageval_spec.data.findings import Ability, Assessment, Claim, Criterion, Estimate, Failed, Finding, Reader
from rageval_spec.data.outcomes import Note, Remark
from rageval_spec.data.samples import Sample
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.inference.verifiers import DEFAULT_WINDOW, VERIFIERS, Meaning, Verifier, find_verifier, read_label
from rageval_spec.judging import segments
from rageval_spec.judging.known_models import describe_verifier, list_taken, make_rulers, suggest_known
from rageval_spec.libraries import np
from rageval_spec.plugin import Judge, JudgeNode, ModelName, PairModel, PairScores, note_truncated
from rageval_spec.plugin.plugin import FileReading, KnownModel
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from numpy.typing import NDArray


LIKELIER_THAN_NOT = 0.5


class NliNode(JudgeNode):
    """Reads each sentence of the answer with windows of the contexts, by a cross-encoder with entailment labels."""

    model: ModelName = Field(description="The classifier: the name of a block under `models:`.")
    labels: tuple[Meaning, ...] | None = Field(
        default=None,
        min_length=1,
        description="What the model's logits stand for, in their order. By default as in the model's configuration, or "
        "as known of the model. Required if the configuration calls them LABEL_0 and so on and the model is not known.",
    )
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The probability of entailment from which a claim counts as supported; the score is then the share "
        "of supported claims. By default the score is the mean of the claims' probabilities, and verdicts are those of "
        "the known model's threshold, or of 0.5.",
    )
    contradiction: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="The probability of contradiction from which a claim counts as contradicted and scores 0, even if "
        "another passage entails it. By default a claim that is entailed anywhere is supported, and one that is not is "
        "contradicted from 0.5 and keeps its probability of entailment as its score.",
    )
    window: int | None = Field(
        default=None,
        ge=50,
        description="How many characters of a context are read with a claim at once, in whole sentences. By default as "
        "much as the authors of a known model give it, and no more than it can read; for other models 1000.",
    )
    overlap: int = Field(default=1, ge=0, description="How many sentences neighbouring windows share.")

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, labels: tuple[Meaning, ...] | None) -> tuple[Meaning, ...] | None:
        if labels is not None and labels.count("entailment") != 1:
            raise ValueError(f"exactly one of the labels must be 'entailment', not {labels.count('entailment')}")
        return labels


class Nli(Judge[NliNode]):
    """Scores each claim, a sentence, by its highest probability of entailment over the windows of the sources.

    The labels, the windows and the threshold of a known model are those of its card; the spec's keys take precedence.
    The model is known by its id on the Hugging Face Hub, or by `published_as` of its block if it is in a folder.

    The probabilities are the softmax of the logits. A model with one logit, which must stand for entailment, gives the
    logistic function of that logit. A claim is contradicted if it is not supported and some window contradicts it with
    a probability of at least 0.5; with `contradiction`, if some window contradicts it with at least that, supported or
    not. The evidence is the window that decided. A claim of fewer than five words is read after the sample's question.
    """

    known_as = ("entailment", "minicheck", "summac", "hhem", "cross_encoder")
    declared = frozenset[Ability]({"support", "claims"})
    later_keys = frozenset({"contradiction"})

    @classmethod
    def list_known_models(cls) -> Sequence[KnownModel]:
        return [describe_verifier(verifier) for verifier in VERIFIERS.values()]

    def check(self) -> str | None:
        model, verifier = self._model(), self._verifier
        if verifier is not None and verifier.unreadable and not model.inputs():
            return f"{verifier.name} cannot be run: {verifier.unreadable}"
        if verifier is not None and verifier.template is not None and not model.fills_templates:
            return (
                f"{verifier.name} reads the document and the claim in one text, which `use: {model.node.use}` does not "
                f"write; write `use: onnx` in models.{self.node.model}"
            )
        return None

    def check_files(self) -> Iterator[FileFault]:
        try:
            names = self._model().named_labels
        except RagevalError as error:
            if isinstance(self.context.models.get(self.node.model), PairModel):  # else `check` says so
                yield FileFault(("model",), str(error), code="unusable-labels")
            return
        if names is not None and (complaint := self._complain(names)) is not None:
            key, message = complaint
            yield FileFault((key,), message, code="unusable-labels")

    def content(self) -> dict[str, Any]:
        """The judge's identity, with what it takes from the table of known models."""
        content = super().content()
        if self.node.window is None:
            content["node"]["window"] = DEFAULT_WINDOW.size
        if (verifier := self._verifier) is not None:
            window = str(verifier.window or DEFAULT_WINDOW)
            content["verifier"] = [verifier.key, verifier.labels, verifier.threshold, window]
        return content

    def describe_files(self) -> Iterator[FileReading]:
        if (verifier := self._verifier) is not None:
            taken = list_taken(verifier, self.node.model_fields_set, self._names_labels())
            details = (f"card and code of {verifier.read}", *taken)
            yield FileReading(verifier.key, details, {})

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        return [tuple(segment.text for segment in segments.split_segments(text)) for _, text in texts]

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        if criterion.kind != "support":
            raise self._cannot(f"assess {criterion.kind}", samples)
        readings = [self._read(criterion, sample) for sample in samples]
        pairs = [pair for reading in readings for pair in reading.pairs]
        if not pairs:
            return Assessment([self._find(criterion, reading, None) for reading in readings])
        meanings, answer = self._meanings(), self._model().score(pairs)
        probabilities = _find_probabilities(answer.logits, meanings)
        findings, start = [], 0
        for reading in readings:
            end = start + len(reading.pairs)
            findings.append(self._find(criterion, reading, probabilities[start:end]))
            start = end
        return Assessment(findings, (*self._remark_on_source(), *self._remark_on_cut(answer)))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """The pairs without a stored answer. Windows of a model that is not on this machine are only about right."""
        if criterion.kind != "support":
            return Estimate()
        try:
            pairs = [pair for sample in samples for pair in self._read(criterion, sample).pairs]
        except RagevalError:  # the model is not on this machine, or its files are damaged, which a run says
            pairs = [
                (window.text, claim.text)
                for sample in samples
                for claim in segments.split_segments(criterion.text_of(sample))
                for window in segments.fill_windows(
                    criterion.sources_of(sample), DEFAULT_WINDOW.size, self.node.overlap
                )
            ]
        return Estimate(reads={Reader(self.node.model, "pair"): self._model().foresee("score", pairs)})

    def _model(self) -> PairModel[Any]:
        return self.context.model(self.node.model, PairModel)  # type: ignore[type-abstract]

    @cached_property
    def _verifier(self) -> Verifier | None:
        name = self._model().published_name
        return find_verifier(name) if name else None

    def _meanings(self) -> Sequence[Meaning]:
        names = self._model().labels
        if (complaint := self._complain(names)) is not None:
            key, message = complaint
            raise UsageError(f"judges.{self.context.name}.{key}: {message}")
        return self._choose_meanings(names)

    def _choose_meanings(self, names: Sequence[str]) -> Sequence[Meaning]:
        """What labels of these names stand for: as the spec says, else by their names, else as known of the model."""
        return self.node.labels or _read_labels(names) or (self._verifier.labels if self._verifier else ())

    def _names_labels(self) -> bool:
        """Whether files on this machine say what the model's labels stand for."""
        try:
            return bool(_read_labels(self._model().named_labels or ()))
        except RagevalError:  # the files are damaged, or of another model, which `check_files` says
            return False

    def _complain(self, names: Sequence[str]) -> tuple[Literal["model", "labels", "contradiction"], str] | None:
        """Why labels of these names cannot be used, and the key to change; None if they can."""
        found, shown = self._choose_meanings(names), ", ".join(names)
        if not found or (self.node.labels is None and len(found) != len(names)):
            return "model", self._explain_labels(shown)
        if self.node.contradiction is not None and "contradiction" not in found:
            says = f"'{self.node.model}' has no label for contradiction ({', '.join(found)})"
            return "contradiction", f"{says}; remove 'contradiction', or name a model that has one"
        if len(found) == len(names):
            return None
        return "labels", f"{count_noun(len(found), 'label')} for the {len(names)} of '{self.node.model}' ({shown})"

    def _explain_labels(self, shown: str) -> str:
        name = (self._model().published_name or "").rpartition("/")[2]
        meant, known = suggest_known(name) or "", ""
        if name and meant.startswith("did you"):
            known = (
                f"; if it is the known model of this name, write `published_as` in models.{self.node.model}: {meant}"
            )
        return (
            f"'{self.node.model}' calls its labels {shown}, which does not say what they stand for; one must stand for "
            "entailment. Write what they stand for, in this order, as 'labels: [...]', each one of "
            f"{', '.join(get_args(Meaning))}{known}"
        )

    @property
    def _threshold(self) -> float:
        if self.node.threshold is not None:
            return self.node.threshold
        known = self._verifier.threshold if self._verifier else None
        return LIKELIER_THAN_NOT if known is None else known

    def _read(self, criterion: Criterion, sample: Sample) -> _Reading:
        claims = segments.split_segments(criterion.text_of(sample))
        shown = [segments.complete_claim(claim.text, criterion, sample) for claim in claims]
        windows = self._fill_windows(criterion.sources_of(sample), shown)
        return _Reading(claims, windows, [(window.text, text) for text in shown for window in windows])

    def _fill_windows(self, sources: Sequence[str], claims: Sequence[str]) -> list[segments.Segment]:
        """The sources in windows; those of a known model leave room for the longest claim."""
        verifier, model = self._verifier, self._model()
        if self.node.window is not None or verifier is None:
            return segments.fill_windows(sources, self.node.window or DEFAULT_WINDOW.size, self.node.overlap)
        window = verifier.window or DEFAULT_WINDOW
        room = model.room
        if room is not None and claims:
            room -= max(model.count_tokens(claims) or (0,))
        rulers = make_rulers(window, room, model.count_tokens)
        return segments.fill_windows(
            sources, window.size if window.unit == "characters" else None, self.node.overlap, rulers
        )

    def _find(self, criterion: Criterion, reading: _Reading, found: NDArray[np.float64] | None) -> Finding:
        if not reading.claims:
            return Finding(None, reason=segments.describe_blank(criterion.text))
        if found is None or not reading.windows:
            return segments.find_without_sources(criterion, reading.claims)
        width = len(reading.windows)
        claims = [
            self._judge(claim, reading.windows, found[place * width : (place + 1) * width])
            for place, claim in enumerate(reading.claims)
        ]
        return Finding(segments.score_claims(claims, self.node.threshold), tuple(claims))

    def _judge(self, claim: segments.Segment, windows: Sequence[segments.Segment], found: NDArray[np.float64]) -> Claim:
        """Judge a claim by the probabilities [windows, 2] of entailment and contradiction."""
        entailed, contradicted = found.T
        best, worst = int(entailed.argmax()), int(contradicted.argmax())
        score, bound = float(entailed[best]), self.node.contradiction
        if bound is not None and contradicted[worst] >= bound:
            return claim.as_claim(0.0, "contradicted", windows[worst])
        if score >= self._threshold:
            return claim.as_claim(score, "supported", windows[best])
        if bound is None and contradicted[worst] >= LIKELIER_THAN_NOT:
            return claim.as_claim(score, "contradicted", windows[worst])
        return claim.as_claim(score, "not_enough_info", windows[best])

    def _remark_on_source(self) -> tuple[Note, ...]:
        """A note on what the judge takes from the table of known models, if it takes anything."""
        if (verifier := self._verifier) is None:
            return ()
        taken = list_taken(verifier, self.node.model_fields_set, bool(_read_labels(self._model().labels)))
        source = f"'{self.context.name}' reads {verifier.key} as its authors do (card and code of {verifier.read})"
        return (Note("known_verifier", f"{source}: {'; '.join(taken)}"),) if taken else ()

    def _remark_on_cut(self, answer: PairScores) -> tuple[Remark, ...]:
        return note_truncated(
            int(answer.truncated.sum()),
            len(answer.truncated),
            self.node.model,
            "pair of context and claim",
            "pairs of context and claim",
            code="pairs",
            advice=f"a smaller `window` of '{self.context.name}' cuts fewer",
        )


def _read_labels(names: Sequence[str]) -> Sequence[Meaning]:
    """What labels stand for by their names; nothing if one is unknown, or not exactly one is entailment."""
    found = [meaning for name in names if (meaning := read_label(name)) is not None]
    return found if len(found) == len(names) and found.count("entailment") == 1 else ()


class _Reading(NamedTuple):
    """The pairs to read for one sample: each claim with each window, claim by claim."""

    claims: Sequence[segments.Segment]
    windows: Sequence[segments.Segment]
    pairs: Sequence[tuple[str, str]]


def _find_probabilities(logits: NDArray[np.float32], meanings: Sequence[Meaning]) -> NDArray[np.float64]:
    """The probabilities [pairs, 2] of entailment and of contradiction."""
    wide = logits.astype(np.float64)
    if len(meanings) == 1:
        # The logistic function, in the form that cannot overflow.
        entailed = 0.5 * (1 + np.tanh(0.5 * wide[:, 0]))
        return np.column_stack((entailed, np.zeros(len(entailed))))
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    shares = powers / powers.sum(axis=1, keepdims=True)
    contradicted = [place for place, meaning in enumerate(meanings) if meaning == "contradiction"]
    return np.column_stack((shares[:, meanings.index("entailment")], shares[:, contradicted].sum(axis=1)))


PLUGIN = Nli
