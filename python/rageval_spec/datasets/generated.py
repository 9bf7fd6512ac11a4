"""`generated`: questions that a chat model writes about the user's own documents, each checked before it counts."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema, field_validator

from rageval_spec import registry
from rageval_spec.data.findings import Estimate
from rageval_spec.data.tables import Collection
from rageval_spec.diagnostics import FileFault
from rageval_spec.endpoints.chat_questions import join_estimates
from rageval_spec.endpoints.shared_questions import hold_claim
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.generation.documents import list_files
from rageval_spec.generation.model_requests import (
    Asker,
    ForeseeingAsker,
    GeneratorModels,
    RealAsker,
    Steps,
    describe_prompts,
    load,
)
from rageval_spec.generation.question_faults import AcceptedQuestions
from rageval_spec.generation.question_mix import Mix, check_shares, read_shares
from rageval_spec.generation.question_production import Order, QuestionMaker
from rageval_spec.generation.question_sets import (
    COLUMNS,
    DocumentSource,
    GeneratedTestSet,
    GenerationOrigin,
    collect,
    suppose,
)
from rageval_spec.judging.calibrated_judge import find_surroundings
from rageval_spec.judging.cosine_scale import name_version
from rageval_spec.kernels import version
from rageval_spec.plugin import ChatModel, Dataset, DatasetNode, EmbeddingModel, InputFile, Judge, JudgeName, ModelName
from rageval_spec.plugin.judge_identity import identify_judge
from rageval_spec.reading.column_names import CorpusColumns

TYPES = {"factual": 40.0, "analytical": 35.0, "comparative": 15.0, "procedural": 10.0}
DIFFICULTIES = {"easy": 30.0, "medium": 50.0, "hard": 20.0}
STYLES = {"plain": 100.0}
STYLE_NAMES = ("plain", "informal", "typos", "keywords", "polite")


def _describe_shares(names: Iterable[str]) -> WithJsonSchema:
    """What editors complete: a map of these names to percentages, or the same as text."""
    share = {"type": "number", "minimum": 0, "maximum": 100}
    known = {"type": "object", "properties": dict.fromkeys(names, share), "additionalProperties": False}
    return WithJsonSchema({"anyOf": [known, {"type": "string"}]})


_KEPT_AS = "questions"
"""What the store of replies calls a finished test set; its key follows."""
_WHOLE = hashlib.sha256(b"the whole set").digest()
"""The digest under which all questions of a set are stored."""
_NOT_IN_ROWS = frozenset({"version", "about", "path", "model", "checker", "judge", "embedding", "relevant"})
"""Keys of the node that name something else, whose content counts instead, or that change no question."""


class GeneratedNode(DatasetNode):
    """Questions written by a chat model about your own documents, with checked answers, sources and evidence.

    They are made once, and then stored like every reply. `rageval-spec generate` writes them to a file instead.
    """

    path: str = Field(
        description="The documents: a folder of Markdown, text, HTML and PDF files, a JSON Lines corpus or a BEIR "
        "folder."
    )
    model: ModelName = Field(description="The chat model that writes the questions: a name under `models:`.")
    checker: ModelName | None = Field(
        default=None, description="The chat model that checks them. Default: the one that writes them."
    )
    judge: JudgeName | None = Field(
        default=None,
        description="The judge that decides whether the documents support an answer: a name under `judges:`. Default: "
        "one yes or no of the checking model for each answer.",
    )
    embedding: ModelName | None = Field(
        default=None,
        description="An embedding model. With it, chunks about the same things and near-duplicate questions are also "
        "found by meaning, and dense retrieval helps to measure difficulty.",
    )
    count: int = Field(default=200, ge=1, le=100_000, description="How many questions to make.")
    types: Annotated[dict[str, float], _describe_shares(TYPES)] = Field(
        default=TYPES, description=f"The share of each type, in percent: {', '.join(TYPES)}."
    )
    difficulty: Annotated[dict[str, float], _describe_shares(DIFFICULTIES)] = Field(
        default=DIFFICULTIES,
        description="The share of each difficulty to ask the model for, in percent: easy, medium, hard. The "
        "difficulty in a row is measured: how high retrievers rank the question's source.",
    )
    style: Annotated[dict[str, float], _describe_shares(STYLE_NAMES)] = Field(
        default=STYLES, description=f"The share of each style, in percent: {', '.join(STYLE_NAMES)}."
    )
    multi_hop: float = Field(
        default=0, ge=0, le=100, description="The share of questions that need several chunks, in percent."
    )
    unanswerable: float = Field(
        default=0, ge=0, le=100, description="The share of questions that the documents do not answer, in percent."
    )
    language: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$",
        description="The code of the language to write in, such as `de`. Default: that of the documents.",
    )
    seed: int = Field(default=13, ge=0, description="Chooses the chunks to ask about.")
    attempts: int = Field(
        default=4, ge=1, le=20, description="How many questions may be tried for each one that is wanted."
    )
    per_chunk: int = Field(default=2, ge=1, le=100, description="The most questions to write about one chunk.")
    within: int = Field(
        default=20,
        ge=0,
        le=1000,
        description="Reject a question if no retriever ranks its source among the first this many chunks; 0 accepts "
        "all.",
    )
    closed_book: bool = Field(
        default=False, description="Reject questions that the checking model answers correctly without the documents."
    )
    chunk_words: int = Field(default=200, ge=20, le=5000, description="The most words of a chunk.")
    steer_difficulty: bool = Field(
        default=False,
        description="Try other questions in place of those of whose measured difficulty there are enough. This costs "
        "more replies of the model that writes.",
    )
    relevant: Literal["chunks", "documents"] = Field(
        default="chunks",
        description="What is relevant to a question and forms the corpus: the chunks that answer it, or their "
        "documents.",
    )
    columns: CorpusColumns = Field(default_factory=CorpusColumns, description="The names of the keys in a corpus.")

    @field_validator("types", "difficulty", "style", mode="before")
    @classmethod
    def _read_text(cls, value: Any, info: Any) -> Any:
        """Shares as text: `factual:40,analytical:60`."""
        if not isinstance(value, str):
            return value
        return _explain(lambda: read_shares(value, NAMES[info.field_name], info.field_name))

    @field_validator("types", "difficulty", "style")
    @classmethod
    def _check(cls, value: dict[str, float], info: Any) -> dict[str, float]:
        return _explain(lambda: check_shares(value, NAMES[info.field_name], info.field_name))

    @property
    def mix(self) -> Mix:
        """The shares of everything."""
        return Mix(self.types, self.difficulty, self.style, self.multi_hop, self.unanswerable)


NAMES: Mapping[str, Mapping[str, object]] = {
    "types": TYPES, "difficulty": DIFFICULTIES, "style": dict.fromkeys(STYLE_NAMES),
}  # fmt: skip


def _explain(check: Callable[[], dict[str, float]]) -> dict[str, float]:
    try:
        return check()
    except UsageError as error:
        raise ValueError(str(error).partition(": ")[2]) from error


class Generated(Dataset[GeneratedNode]):
    """Makes its questions before an evaluation is planned, and stores them as soon as they are complete."""

    known_as = ("synthetic", "generate", "testset", "test_set")

    def check(self) -> str | None:
        """Whether the models are of the right kinds, and the shares leave room for one another."""
        if self.node.multi_hop + self.node.unanswerable > 100:
            return "'multi_hop' and 'unanswerable' are shares of the same questions, and sum to more than 100"
        chats = (self.node.model, self.node.checker)
        faults = [
            self.context.explain_model(name, ChatModel, "writes no replies; name a chat model")
            for name in chats
            if name
        ]
        if self.node.embedding is not None:
            wrong = "is not an embedding model; name one that embeds texts"
            faults.append(self.context.explain_model(self.node.embedding, EmbeddingModel, wrong))
        if self.node.judge is not None and "support" not in self.context.judge(self.node.judge).abilities:
            faults.append(f"the judge '{self.node.judge}' does not decide whether texts support an answer")
        return next((fault for fault in faults if fault is not None), None)

    def check_files(self) -> Iterator[FileFault]:
        """Nothing: documents that cannot be read are reported when the questions are made."""
        return iter(())

    def inputs(self) -> Sequence[InputFile]:
        """The files of the documents; the folder if it is missing or has none."""
        path = self.context.resolve(self.node.path)
        found = [InputFile(file, ("path",)) for file in list_files(path)]
        return found or (InputFile(path, ("path",), kind="folder"),)

    def content(self) -> dict[str, Any]:
        """The node, the prompts, and the questions once they are made: other questions have other results."""
        content = super().content()
        content["node"].pop("path")
        made = self.find()
        digest = None if made is None else hashlib.sha256(made.pack()).hexdigest()
        files = [self._name(file) for file in self.inputs()]
        return {**content, "files": files, "prompts": describe_prompts(), "questions": digest}

    def list_other_columns(self) -> Sequence[str]:
        return COLUMNS

    def open(self) -> Collection:
        """The collection. Raises DataError: its questions were not made yet."""
        made = self.find()
        if made is None:
            raise DataError(
                f"dataset '{self.context.name}': its questions are not made yet; `rageval-spec run` makes them"
            )
        return replace(self._collect(made), differences=tuple(made.list_differences(self.node.mix)))

    def foresee(self) -> Collection:
        return self._collect(self.find() or suppose(self.node.count))

    def estimate(self) -> Estimate:
        """The calls that making the questions takes if none is rejected; embeds nothing."""
        return Estimate() if self.find() is not None else self.foresee_calls(embeds=False)

    def foresee_calls(self, *, embeds: bool = True) -> Estimate:
        """As `estimate`; with `embeds`, chunks are embedded first, so that all stored replies are found."""
        asker = ForeseeingAsker(self._models)
        self._make(asker, self._embedding if embeds else None, lambda _: None)
        return join_estimates(asker.estimates)

    def prepare(self) -> None:
        """Make the questions, unless they are stored. Only one process at a time makes them.

        Raises:
            RagevalError: they could not all be made, because a limit was reached or the endpoint does not answer.
        """
        if (made := self.produce()).stopped is not None:
            done = f"{len(made.rows)} of {self.node.count} questions are made"
            raise RagevalError(f"datasets.{self.context.name}: {done}: {made.stopped}; run again to continue")
        if not made.rows:
            why = "; ".join(made.shortages)
            raise RagevalError(f"datasets.{self.context.name}: no question could be made: {why}")

    def produce(self) -> GeneratedTestSet:
        """The questions, from the store or new; what is incomplete is not stored, so that it is continued."""
        with hold_claim(self.context.answers, self._kept_as, _WHOLE, self.find, time.sleep) as found:
            if found is not None:
                return found
            made = self._make_all()
            if made.stopped is None and made.rows:
                self.context.answers.keep(self._kept_as, {_WHOLE: made.pack()})
                self._made = made
            return made

    _made: GeneratedTestSet | None = None

    def find(self) -> GeneratedTestSet | None:
        """The questions, if they were made; None if they were not."""
        if self._made is None:
            stored = self.context.answers.find(self._kept_as, (_WHOLE,)).get(_WHOLE)
            self._made = None if stored is None else GeneratedTestSet.unpack(stored)
        return self._made

    @cached_property
    def source(self) -> DocumentSource:
        """The documents."""
        path = self.context.resolve(self.node.path)
        return DocumentSource(path, self.node.columns, self.node.chunk_words, self.context)

    def _make_all(self) -> GeneratedTestSet:
        steps = Steps(self.context.progress)
        made = self._make(RealAsker(self._models, steps), self._embedding, steps.expect)
        return GeneratedTestSet.of(made, GenerationOrigin(self.source.origin, self._describe()))

    def _make(
        self, asker: Asker, embedding: EmbeddingModel[Any] | None, expect: Callable[[int], None]
    ) -> QuestionMaker:
        corpus = self.source.prepare(embedding, max(self.node.within, 100))
        maker = QuestionMaker(self._order, corpus, asker, AcceptedQuestions(embedding))
        maker.make(expect)
        return maker

    @property
    def _order(self) -> Order:
        node = self.node
        return Order(
            node.count, node.mix, node.language, node.seed, node.attempts, node.per_chunk, node.within,
            node.closed_book, node.steer_difficulty,
        )  # fmt: skip

    @cached_property
    def _models(self) -> GeneratorModels:
        writer, checker = (self._chat(name) for name in (self.node.model, self.node.checker or self.node.model))
        faithfulness = registry.load("metrics", "faithfulness")
        metric = faithfulness(faithfulness.node_type(use="faithfulness", judge="support"), self.context)
        return GeneratorModels(writer, checker, self._judge, metric.criteria()[0], self.context)

    @cached_property
    def _judge(self) -> Judge[Any]:
        if self.node.judge is not None:
            return self.context.judge(self.node.judge)
        binary = registry.load("judges", "binary")
        node = binary.node_type(use="binary", model=self.node.checker or self.node.model, per="answer")
        judge: Judge[Any] = binary(node, self.context)
        return judge

    @property
    def _embedding(self) -> EmbeddingModel[Any] | None:
        if self.node.embedding is None:
            return None
        return self.context.model(self.node.embedding, EmbeddingModel)  # type: ignore[type-abstract]

    def _chat(self, name: str) -> ChatModel[Any]:
        return self.context.model(name, ChatModel)  # type: ignore[type-abstract]

    def stored_keys(self) -> Sequence[str]:
        return (self._key,)

    @property
    def _kept_as(self) -> str:
        return f"{_KEPT_AS}:{self._key}"

    @cached_property
    def _key(self) -> str:
        """The sha256, in hex, of everything that the questions depend on, except what models happen to reply."""
        node = self.node.model_dump(mode="json")
        if not node["steer_difficulty"]:  # sets that were stored before this key existed stay valid
            del node["steer_difficulty"]
        content = {
            "version": name_version(self.version, self._embedding),
            "node": {key: value for key, value in node.items() if key not in _NOT_IN_ROWS},
            "documents": [[self._name(file), self.context.fingerprint(file)] for file in self.inputs()],
            "prompts": describe_prompts(),
            "models": [self._chat(name).key for name in (self.node.model, self.node.checker or self.node.model)],
            "judge": {**identify_judge(self._judge, find_surroundings(self._judge)), "name": ""},
            "embedding": None if self._embedding is None else self._embedding.key,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _name(self, file: InputFile) -> str:
        """The path of a file below the folder, which is a part of ids; "" for a corpus or a folder itself."""
        path = self.context.resolve(self.node.path)
        return "" if file.path == path else file.path.relative_to(path).as_posix()

    def _describe(self) -> dict[str, Any]:
        """What every row says about how it was made."""
        prompts = {name: load(name).version for name in ("draft", "unanswerable", "check")}
        models = self._models
        return {
            "by": f"rageval-spec {version()}",
            "model": models.writer.describe().get("model", self.node.model),
            "checker": models.checker.describe().get("model", self.node.checker or self.node.model),
            "judge": self._judge.node.use,
            "prompts": prompts,
            "seed": self.node.seed,
        }

    def _collect(self, made: GeneratedTestSet) -> Collection:
        return collect(self.context.name, made, self.source, by_document=self.node.relevant == "documents")


PLUGIN = Generated
