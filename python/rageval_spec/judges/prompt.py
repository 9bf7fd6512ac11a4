"""`prompt`: a chat model answers a question of your own: with numbers, yes or no, or one of several choices."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from rageval_spec.data.chat import ChatReply, ChatRequest, Message
from rageval_spec.data.findings import Ability, Assessment, Criterion, Estimate, Failed, Finding, TextPart
from rageval_spec.data.samples import Sample
from rageval_spec.diagnostics import FileFault
from rageval_spec.endpoints.chat_questions import ChatQuestion, ask_all
from rageval_spec.endpoints.replies import UnreadableReplyError, describe_format, read_reply
from rageval_spec.errors import DataError, UsageError
from rageval_spec.judges.shared.chat_judge import ChatJudge, ChatJudgeNode
from rageval_spec.judging.grade_scores import GradeScale, PieceOpinion, rescale
from rageval_spec.judging.own_template import Example, OwnTemplate, read_examples
from rageval_spec.judging.prompts import OUTPUT_TOKENS, REMARK, load_prompt, make_schema, settle
from rageval_spec.plugin import InputFile
from rageval_spec.wording import list_names

_Opinions = Mapping[str, PieceOpinion | Failed]
"""The values of a reply by their keys."""
_PARTS: tuple[TextPart, ...] = ("contexts", "reference_contexts")
_YES_NO: Mapping[str, float] = {"yes": 1.0, "no": 0.0}
_KEYS: Mapping[str, str] = {"number": "score", "yes_no": "verdict", "choice": "choice"}
"""The key of the value in a reply."""


class PromptNode(ChatJudgeNode):
    """Asks a chat model a question of your own; the reply is numbers, yes or no, or one of your choices."""

    template: str | None = Field(
        default=None,
        min_length=1,
        description="The question, as a Jinja2 template with the variables question, contexts, answer, reference, "
        "expected (every reference answer), reference_contexts, criteria and the other columns of the questions. Every "
        "text is set between tags such as <answer>. The form of the reply is appended, unless the template has {{ form "
        "}}.",
    )
    file: str | None = Field(
        default=None, min_length=1, description="A file with the template, relative to the spec, instead of `template`."
    )
    value: Literal["number", "yes_no", "choice"] = Field(
        default="number",
        description="What the model replies: a number on the scale, yes (1) or no (0), or one of the choices.",
    )
    scale: tuple[float, ...] = Field(
        default=(0.0, 1.0),
        min_length=2,
        max_length=2,
        description="The lowest and the highest number. The number can have decimals.",
    )
    choices: dict[str, float] = Field(
        default={}, description='For `value: choice`, the score of each choice: `{"complete": 1, "partial": 0.5}`.'
    )
    values: dict[str, Annotated[tuple[float, ...], Field(min_length=2, max_length=2)]] = Field(
        default={},
        description="Several numbers in one reply, in place of `value`: the lowest and the highest of each, by its "
        "name: `{faithfulness: [0, 1], relevancy: [0, 1]}`. A metric takes the one that it names (`{use: rubric, "
        "judge: own, value: relevancy}`), or that has its name.",
    )
    reason: bool = Field(
        default=True, description="Whether the model gives a reason, which it writes before the value."
    )
    examples: str | None = Field(
        default=None,
        min_length=1,
        description="A file with worked examples (JSON lines, YAML, CSV), which the model sees first. Each has `value` "
        "and what the template shows, and can have a `reason`.",
    )

    @model_validator(mode="after")
    def _check_keys(self) -> PromptNode:
        if (self.template is None) == (self.file is None):
            raise ValueError("write the prompt as 'template' or name a 'file' with it, one of the two")
        if self.value != "number" and "scale" in self.model_fields_set:
            raise ValueError(f"'scale' belongs to 'value: number'; remove it, or remove 'value: {self.value}'")
        if self.choices and self.value != "choice":
            raise ValueError("'choices' belong to 'value: choice'; add that, or remove 'choices'")
        if not float("-inf") < self.scale[0] < self.scale[1] < float("inf"):
            raise ValueError("scale: the lowest number must be below the highest")
        if self.value == "choice":
            _check_choices(self.choices)
        if self.values:
            _check_values(self.values)
            if other := next(iter({"value", "scale", "choices"} & self.model_fields_set), None):
                raise ValueError(f"'values' are numbers with scales of their own; remove '{other}' or 'values'")
        return self


def _check_values(values: Mapping[str, tuple[float, ...]]) -> None:
    for name, (low, high) in values.items():
        if not name.strip() or name == "reason":
            raise ValueError(f"values: {name!r} cannot be the name of a value; choose another")
        if not -math.inf < low < high < math.inf:
            raise ValueError(f"values.{name}: the lowest number must be below the highest")


def _check_choices(choices: Mapping[str, float]) -> None:
    if not all(map(str.strip, choices)) or not all(map(math.isfinite, choices.values())):
        raise ValueError("choices: every choice needs a word and a finite score")
    if len({choice.strip().casefold() for choice in choices}) < len(choices):
        raise ValueError("choices: two choices differ only in case or white space")
    if len({*choices.values()}) < 2:
        raise ValueError("choices: write at least two, with different scores: {complete: 1, partial: 0.5, wrong: 0}")


class PromptJudge(ChatJudge[PromptNode]):
    """Renders the user's template for each sample and asks once.

    Its score is on the scale of its own question. A metric with a scale of its own gets the score on that one. With
    `values`, all metrics share one reply. It is asked again while any value is missing or off its scale; of replies
    that all lack some, each value comes from the first that has it.
    """

    known_as = ("custom", "template", "llm_classifier", "custom_prompt")
    declared = frozenset[Ability]({"support", "grade"})
    later_keys = frozenset({"values"})

    @property
    def values(self) -> Mapping[str, tuple[float, ...]]:
        return self.node.values

    @property
    def scale(self) -> tuple[float, float] | None:
        if self.values:
            return None
        scores = self._scores
        return (min(scores.values()), max(scores.values())) if scores else (self.node.scale[0], self.node.scale[1])

    @property
    def reads_criteria(self) -> bool:
        return self._uses("criteria")

    @property
    def shows_references(self) -> bool:
        return self._uses("reference", "expected", "reference_contexts")

    @cached_property
    def template(self) -> OwnTemplate:
        if self.node.file is None:
            return OwnTemplate(self.node.template or "", "template")
        prompt = load_prompt("template", self.context.resolve(self.node.file), self.node.file)
        return OwnTemplate(prompt.text, self.node.file)

    def inputs(self) -> Sequence[InputFile]:
        own = (("file", self.node.file), ("examples", self.node.examples))
        named = [InputFile(self.context.resolve(path), (key,)) for key, path in own if path is not None]
        return [*super().inputs(), *named]

    def check_files(self) -> Iterator[FileFault]:
        yield from super().check_files()
        if self._lacks(self.node.file) or self._lacks(self.node.examples):
            return
        key = self._template_key
        try:
            faults = [*self.template.check()]
        except (UsageError, DataError) as error:
            faults = [str(error)]
        if not faults and self.values and self.reads_criteria:
            faults = [
                "with 'values', all metrics share one reply, so the template shows no criteria: remove {{ criteria }}"
            ]
        yield from (FileFault(key, fault, code="unusable-prompt") for fault in faults)
        if not faults and self.node.examples is not None and (fault := self._find_wrong_example()):
            yield FileFault(("examples",), fault, code="unusable-prompt")

    def check_columns(self, list_columns: Callable[[], Sequence[str] | None]) -> Iterator[FileFault]:
        """The faults of variables; without any, a warning where the template does not show the answer."""
        try:
            named, shows_answer = self.template.columns, self._uses("answer")
        except (UsageError, DataError):
            return
        if not self.template.prompt.text.strip():
            return  # `check_files` tells it
        columns = list_columns() if named else None
        faults = [] if columns is None else [*self.template.explain_unknown(columns)]
        yield from (FileFault(self._template_key, fault, code="unusable-prompt") for fault in faults)
        if not faults and not shows_answer:
            hint = "write {{ answer }} where the answer belongs"
            message = "the template does not show the answer to the judge"
            yield FileFault(self._template_key, message, hint, "unusable-prompt", "warning")

    def content(self) -> dict[str, Any]:
        return {**super().content(), "own": self._digest_own()}

    def prompt_digests(self) -> Mapping[str, str]:
        return {**super().prompt_digests(), **self._digest_own()}

    def list_reversals(self) -> Mapping[str, PromptJudge]:
        found = {}
        if self.node.choices:
            choices = dict(reversed(self.node.choices.items()))
            found["choices"] = type(self)(self.node.model_copy(update={"choices": choices}), self.context)
        if len(self._examples) > 1:
            found["examples"] = type(self)(self.node, self.context)
            found["examples"]._examples = self._examples[::-1]
        return found

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample. A sample that lacks something that the template shows gets no score."""
        prepared = [self._prepare(criterion, sample) for sample in samples]
        opinions = iter(ask_all(self.model, [one for one in prepared if isinstance(one, ChatQuestion)], self.context))
        return Assessment(
            [self._conclude(criterion, next(opinions)) if isinstance(one, ChatQuestion) else one for one in prepared]
        )

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        prepared = (self._prepare(criterion, sample) for sample in samples)
        return self.estimate_questions([one for one in prepared if isinstance(one, ChatQuestion)], OUTPUT_TOKENS)

    def _prepare(self, criterion: Criterion, sample: Sample) -> ChatQuestion[_Opinions] | Finding | Failed:
        """The question about a sample, or its finding if it needs none."""
        if self.values and criterion.name not in self.values:
            return Failed(f"the judge gives {list_names([*self.values])}, and no '{criterion.name}'")
        shown = tuple(part for part in _PARTS if part in self.template.uses)
        sent = replace(criterion, text="answer", against="question", shown=shown)
        known = self.find_excess(sent, sample) or settle(criterion, sample)
        if known is not None:
            return known
        try:
            asked = Message("user", self._render(sample, criterion.instruction))
        except LookupError as error:
            return Finding(None, reason=str(error.args[0]))
        except UsageError as error:
            return Failed(str(error))
        request = ChatRequest((Message("system", self._rules), *self._shown, asked), self._schema)
        return ChatQuestion(request, self._read, salvage=self._salvage if self.values else None)

    def _render(self, sample: Sample, criteria: str) -> str:
        first = ", a reason in one or two short sentences first" if self.node.reason else ""
        demand = f"Reply with JSON{first}:"
        return self.template.render(self.template.gather(sample), criteria, describe_format(self._schema), demand)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return self._make_schema(*self._scales)

    def _make_schema(self, *keys: str) -> dict[str, Any]:
        """The JSON Schema of a reply: the reason first, so that the model thinks before it decides."""
        values: dict[str, Any] = {"reason": REMARK} if self.node.reason else {}
        for key in keys:
            low, high = GradeScale(*self._scales[key]).bounds
            number = {"type": "number", "minimum": low, "maximum": high}
            values[key] = {"type": "string", "enum": [*self._scores]} if self._scores else number
        return make_schema(**values)

    @property
    def _scales(self) -> Mapping[str, tuple[float, ...]]:
        """The lowest and the highest score of each value, by its key in a reply."""
        return self.node.values or {_KEYS[self.node.value]: self.scale or (0.0, 1.0)}

    @property
    def _scores(self) -> Mapping[str, float]:
        """The score of each word that can be the value; empty if the value is a number."""
        return {"number": {}, "yes_no": _YES_NO, "choice": self.node.choices}[self.node.value]

    def _read(self, said: Mapping[str, Any], _: ChatReply) -> _Opinions:
        return {key: self._read_opinion(said, key) for key in self._scales}

    def _read_opinion(self, said: Mapping[str, Any], key: str) -> PieceOpinion:
        value = said[key]
        return PieceOpinion(self._scores[value] if self._scores else float(value), None, said.get("reason") or None)

    def _salvage(self, replies: Sequence[ChatReply], failed: Failed) -> _Opinions | Failed:
        """Each value from the first reply that has it, and the failure for those that no reply has."""
        found = {key: self._find_opinion(replies, key) or failed for key in self._scales}
        return failed if all(one is failed for one in found.values()) else found

    def _find_opinion(self, replies: Sequence[ChatReply], key: str) -> PieceOpinion | None:
        schema = self._make_schema(key)
        for reply in replies:
            with suppress(UnreadableReplyError):
                return self._read_opinion(read_reply(reply.text, schema, only_json=True), key)
        return None

    def _conclude(self, criterion: Criterion, opinions: _Opinions | Failed) -> Finding | Failed:
        if isinstance(opinions, Failed):
            return opinions
        key = criterion.name if self.values else _KEYS[self.node.value]
        opinion, scale = opinions[key], self._scales[key]
        if isinstance(opinion, Failed):
            return opinion
        if criterion.kind == "grade" and criterion.scale is not None and criterion.scale == scale:
            return Finding(opinion.score, reason=opinion.reason)
        return Finding(rescale(criterion, GradeScale(*scale).score(opinion.score)), reason=opinion.reason)

    # --- Examples ------------------------------------------------------------------------------------------

    @cached_property
    def _examples(self) -> Sequence[Example]:
        if self.node.examples is None:
            return ()
        return read_examples(self.context.resolve(self.node.examples), self.node.examples)

    @cached_property
    def _shown(self) -> tuple[Message, ...]:
        """The examples as a conversation: each question and its right reply."""
        turns: list[Message] = []
        for example in self._examples:
            reason = {"reason": example.reason} if self.node.reason else {}
            reply = json.dumps({**reason, **self._read_values(example)}, ensure_ascii=False)
            turns += [Message("user", self._render(example.sample, "")), Message("assistant", reply)]
        return tuple(turns)

    def _read_values(self, example: Example) -> dict[str, float | str]:
        """An example's values in the form of a reply; a `ValueError` says what is wrong with one."""
        said = example.value if self.values else dict.fromkeys(self._scales, example.value)
        if not isinstance(said, Mapping) or said.keys() != self._scales.keys():
            numbers = ", ".join(f"{key}: {low:g}" for key, (low, _) in self._scales.items())
            raise ValueError(f"the value must have a number for each value of the judge: {{{numbers}}}")
        return {key: self._read_value(said[key], scale) for key, scale in self._scales.items()}

    def _read_value(self, value: Any, scale: tuple[float, ...]) -> float | str:
        if self._scores:
            word = {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else str(value).strip()
            found = next((choice for choice in self._scores if choice.casefold() == str(word).casefold()), None)
            if found is None:
                raise ValueError(f"the value is {value!r}; write one of {', '.join(self._scores)}")
            return found
        low, high = GradeScale(*scale).bounds
        try:
            number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
        except ValueError:
            number = math.nan
        if not low <= number <= high:
            raise ValueError(f"the value is {value!r}; write a number from {low} to {high}")
        return int(number) if number.is_integer() else number

    def _find_wrong_example(self) -> str | None:
        place = ""
        try:
            for example in self._examples:
                place = f"{example.place}: "
                self._read_values(example)
                self._render(example.sample, "")
        except LookupError as error:
            return f"{place}{str(error.args[0]).replace('the query', 'the example')}, which the template shows"
        except (ValueError, UsageError, DataError) as error:
            return f"{place}{error}"
        return None

    # --- The template --------------------------------------------------------------------------------------

    def _uses(self, *names: str) -> bool:
        """Whether the template uses any of these variables; False while it cannot be read, which is reported."""
        try:
            return not self.template.uses.keys().isdisjoint(names)
        except (UsageError, DataError):
            return False

    @property
    def _template_key(self) -> tuple[str]:
        return ("template",) if self.node.file is None else ("file",)

    def _lacks(self, path: str | None) -> bool:
        """Whether a file is missing, which is reported elsewhere."""
        return path is not None and not self.context.resolve(path).is_file()

    def _digest_own(self) -> dict[str, str]:
        own = {"template": self.template.prompt.digest}
        if self.node.examples is not None:
            shown = json.dumps([*self._shown], ensure_ascii=False).encode("utf-8", "backslashreplace")
            own["examples"] = hashlib.sha256(shown).hexdigest()
        return own


PLUGIN = PromptJudge
