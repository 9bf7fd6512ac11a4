"""`detector`: a token classifier marks the spans of an answer that its contexts do not support (LettuceDetect)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from rageval_spec.data.findings import Ability, Assessment, Criterion, Estimate, Failed, Finding, Reader
from rageval_spec.data.samples import Sample
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.inference.verifiers import read_label
from rageval_spec.judging.known_models import DETECTORS, KnownDetector, describe_detector, find_detector
from rageval_spec.judging.language import NAMES
from rageval_spec.judging.segments import (
    Segment,
    describe_blank,
    find_closest,
    find_without_sources,
    is_blank,
    split_segments,
)
from rageval_spec.judging.span_detection import (
    PROMPTS,
    AnswerSpan,
    DetectionTask,
    DetectorLanguage,
    Planner,
    PromptWindow,
    TaggedAnswer,
    WindowPlan,
    join_pieces,
    list_spans,
)
from rageval_spec.libraries import compile_later, np
from rageval_spec.plugin import Judge, JudgeNode, ModelName, TokenModel, TokenTags
from rageval_spec.plugin.plugin import FileReading, KnownModel
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from numpy.typing import NDArray


TokenMeaning = Literal["supported", "unsupported"]
"""What a token's logit can stand for."""

UNNAMED = ("LABEL_0", "LABEL_1")
"""Labels that nobody named. In LettuceDetect's models the second one is the hallucinated one."""
_OUTSIDE = frozenset({"O", "0"})
"""What the tokens outside of any span are often called."""
_INSIDE = compile_later(r"^[BIES][-_]")
"""The prefix of labels that also tell where in a span a token stands."""


class DetectorNode(JudgeNode):
    """Marks the spans of an answer that its contexts do not support, by a token classifier such as LettuceDetect."""

    model: ModelName = Field(description="The token classifier: the name of a block under `models:`.")
    language: DetectorLanguage | None = Field(
        default=None,
        description="The language of the prompt: the one that the model was trained in. By default that of the known "
        "model, else English.",
    )
    labels: tuple[TokenMeaning, ...] | None = Field(
        default=None,
        min_length=2,
        description="What the model's logits stand for, in their order; by default as in the model's configuration. "
        "There, LABEL_1 of two labels without a name is the unsupported one.",
    )
    threshold: float = Field(
        default=0.5, gt=0, le=1, description="The probability from which a token of the answer counts as unsupported."
    )
    max_tokens: int = Field(
        default=4096,
        ge=64,
        description="The most tokens of prompt and answer that are read at once, if the model can read as many. "
        "LettuceDetect's models were trained on up to 4096.",
    )
    window: int | None = Field(
        default=None,
        ge=50,
        description="The most characters of the contexts that are read at once, in whole contexts or sentences; by "
        "default as many as fit.",
    )
    overlap: int = Field(
        default=1, ge=0, description="How many sentences the parts of a context that is too long for a window share."
    )

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, labels: tuple[TokenMeaning, ...] | None) -> tuple[TokenMeaning, ...] | None:
        if labels is not None and len(set(labels)) == 1:
            raise ValueError(f"must have both 'supported' and 'unsupported', not only '{labels[0]}'")
        return labels


class Detector(Judge[DetectorNode]):
    """Scores a text by the share of its tokens that are supported.

    The model reads the question and the numbered contexts, in LettuceDetect's words, and then the text, and gives each
    of its tokens a probability that it is unsupported. Contexts that do not fit are read in several windows. A token
    is supported if any window supports it, that is by its lowest probability: a window without the context that
    supports a token cannot know it. Tokens without a letter or a digit do not count in the share.

    Claims are spans of the text: each run of unsupported tokens, as LettuceDetect makes them, and what is left of each
    sentence. A claim's score is 1 minus the highest probability of its tokens. Its evidence is the sentence, in the
    window that supports it best, that shares most words with its sentence; the model itself names none.
    """

    known_as = ("lettucedetect", "lettuce_detect", "token_classifier", "span_detector", "hallucination_detector")
    declared = frozenset[Ability]({"support"})

    @classmethod
    def list_known_models(cls) -> Sequence[KnownModel]:
        return [describe_detector(detector) for detector in DETECTORS.values()]

    def check(self) -> str | None:
        self._model()
        return None

    def check_files(self) -> Iterator[FileFault]:
        try:
            names = self._model().named_token_labels
        except RagevalError as error:
            if isinstance(self.context.models.get(self.node.model), TokenModel):  # else `check` says so
                yield FileFault(("model",), str(error), code="unusable-labels")
            return
        if names is not None and (complaint := self._complain(names)) is not None:
            key, message = complaint
            yield FileFault((key,), message, code="unusable-labels")

    def content(self) -> dict[str, Any]:
        content = super().content()
        content["node"]["language"] = self._language
        return content

    def describe_files(self) -> Iterator[FileReading]:
        if (known := self._known) is not None:
            taken = () if self.node.language else (f"prompt in {NAMES[known.language]}",)
            yield FileReading(known.name, (f"card and code of {known.read}", *taken), {})

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample. A sample fails if its question leaves no room for its contexts and its text."""
        if criterion.kind != "support":
            raise self._cannot(f"assess {criterion.kind}", samples)
        tasks = _list_tasks(criterion, samples)
        readable = [task for task in tasks if _is_readable(task)]
        read = iter(self._read(criterion, readable) if readable else ())
        return Assessment(
            [
                next(read)
                if _is_readable(task)
                else find_without_sources(criterion, split_segments(task.answer))
                if task.answer.strip()
                else Finding(None, reason=describe_blank(criterion.text))
                for task in tasks
            ]
        )

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """The pairs without a stored answer. For a model that is not on this machine, one for each text."""
        if criterion.kind != "support":
            return Estimate()
        tasks = [*filter(_is_readable, _list_tasks(criterion, samples))]
        try:
            pairs = _list_pairs(self._plan(tasks))
        except RagevalError:  # the model is not on this machine, or its files are damaged, which a run says
            pairs = [("\n".join([task.question, *task.sources]), task.answer) for task in tasks]
        return Estimate(reads={Reader(self.node.model, "pair"): self._model().foresee("tag", pairs)})

    def _model(self) -> TokenModel[Any]:
        return self.context.model(self.node.model, TokenModel)  # type: ignore[type-abstract]

    @cached_property
    def _known(self) -> KnownDetector | None:
        name = self._model().published_name
        return find_detector(name) if name else None

    @property
    def _language(self) -> DetectorLanguage:
        return self.node.language or (self._known.language if self._known else "en")

    def _read(self, criterion: Criterion, tasks: Sequence[DetectionTask]) -> Iterator[Finding | Failed]:
        """One finding per task; all windows of all tasks are read at once."""
        model = self._model()
        meanings = self._meanings(model)
        plans = self._plan(tasks)
        tags = model.tag(_list_pairs(plans))
        answers = [*_list_answers(tasks, plans, tags, meanings)]
        threshold = self.node.threshold
        spans = [[] if isinstance(one, Failed) else list_spans(one, threshold) for one in answers]
        wanted = [
            (_find_sentence(task.answer, span), _list_sentences(plan.windows[span.window]))
            for task, plan, found in zip(tasks, plans, spans, strict=True)
            for span in found
            if isinstance(plan, WindowPlan)
        ]
        evidence = find_closest(wanted, self.context.threads)
        for answer, found in zip(answers, spans, strict=True):
            if isinstance(answer, Failed):
                yield answer
                continue
            claims = tuple(
                span.segment.as_claim(
                    1 - span.probability, "supported" if span.is_supported else "not_enough_info", sentence
                )
                for span, sentence in zip(found, islice(evidence, len(found)), strict=True)
            )
            score = answer.share_supported(threshold)
            lack = f"the {criterion.text.replace('_', ' ')} has no token with a letter or a digit"
            yield Finding(None, reason=lack) if score is None else Finding(score, claims)

    def _plan(self, tasks: Sequence[DetectionTask]) -> Sequence[WindowPlan | Failed]:
        model, characters = self._model(), self.node.window
        room = min(inf if model.room is None else model.room, self.node.max_tokens)
        prompt = PROMPTS[self._language]
        bounds = (room, inf if characters is None else characters, self.node.overlap)
        return Planner(prompt, model.count_tokens, *bounds).plan(tasks)

    def _meanings(self, model: TokenModel[Any]) -> Sequence[TokenMeaning]:
        names = model.token_labels
        if (complaint := self._complain(names)) is not None:
            key, message = complaint
            raise UsageError(f"judges.{self.context.name}.{key}: {message}")
        return self.node.labels or read_token_labels(names) or ()

    def _complain(self, names: Sequence[str]) -> tuple[Literal["model", "labels"], str] | None:
        """Why labels of these names cannot be used, and the key to change; None if they can."""
        stated, shown = self.node.labels, ", ".join(names)
        if stated is not None and len(stated) != len(names):
            return "labels", f"{count_noun(len(stated), 'label')} for the {len(names)} of '{self.node.model}' ({shown})"
        if stated is not None or read_token_labels(names) is not None:
            return None
        return "model", (
            f"'{self.node.model}' calls its labels {shown}; those of a detector stand for supported and for "
            "unsupported tokens. Write what they stand for, in this order, as 'labels: [...]', each one of supported, "
            "unsupported"
        )


def read_token_labels(names: Sequence[str]) -> list[TokenMeaning] | None:
    """What labels stand for, by their names: `Hallucinated`, `B-unsupported`, `O`; None if one of them is unknown."""
    if tuple(names) == UNNAMED:
        return ["supported", "unsupported"]
    meanings: list[TokenMeaning] = []
    for name in names:
        meaning = "entailment" if name in _OUTSIDE else read_label(_INSIDE.sub("", name))
        if meaning is None:
            return None
        meanings.append("supported" if meaning == "entailment" else "unsupported")
    return meanings if len(set(meanings)) == len(TokenMeaning.__args__) else None  # type: ignore[attr-defined]


def _list_tasks(criterion: Criterion, samples: Sequence[Sample]) -> list[DetectionTask]:
    return [DetectionTask(one.question, criterion.sources_of(one), criterion.text_of(one)) for one in samples]


def _is_readable(task: DetectionTask) -> bool:
    return not is_blank([task.answer]) and not is_blank(task.sources)


def _list_pairs(plans: Sequence[WindowPlan | Failed]) -> list[tuple[str, str]]:
    return [pair for plan in plans if isinstance(plan, WindowPlan) for pair in plan.pairs]


def _list_answers(
    tasks: Sequence[DetectionTask],
    plans: Sequence[WindowPlan | Failed],
    tags: TokenTags,
    meanings: Sequence[TokenMeaning],
) -> Iterator[TaggedAnswer | Failed]:
    start = 0
    for task, plan in zip(tasks, plans, strict=True):
        if isinstance(plan, Failed):
            yield plan
            continue
        pairs = slice(start, start + len(plan.pairs))
        start = pairs.stop
        if tags.truncated[pairs].any():
            yield Failed("the model cut this text or its sources, although they fit by its own count of tokens")
            continue
        unsupported = [_find_unsupported(logits, meanings) for logits in tags.logits[pairs]]
        yield join_pieces(task.answer, plan, tags.offsets[pairs], unsupported)


def _find_unsupported(logits: NDArray[np.float32], meanings: Sequence[TokenMeaning]) -> NDArray[np.float64]:
    """The probability [tokens] that a token is unsupported: the softmax of the logits, summed over its labels."""
    wide = logits.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    columns = [place for place, meaning in enumerate(meanings) if meaning == "unsupported"]
    shares: NDArray[np.float64] = powers[:, columns].sum(axis=1) / powers.sum(axis=1)
    return shares


def _list_sentences(window: PromptWindow) -> list[Segment]:
    return [
        Segment(one.text, part.start + one.start, part.start + one.end, part.source)
        for part in window.parts
        for one in split_segments(part.text)
    ]


def _find_sentence(answer: str, span: AnswerSpan) -> str:
    around = [one for one in split_segments(answer) if one.start < span.segment.end and one.end > span.segment.start]
    return answer[around[0].start : around[-1].end] if around else span.segment.text


PLUGIN = Detector
