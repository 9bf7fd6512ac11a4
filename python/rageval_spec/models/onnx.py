"""`onnx`: embedding models, cross-encoders and token classifiers, run by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator

from onnx_from_checkpoints import NEEDS_REPLIES, find_code, parse_template, writes_text
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.inference import hub, model_files
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.plugin import (
    Embeddings,
    InputFile,
    PairScores,
    Role,
    Speed,
    TokenModel,
    TokenTags,
)
from rageval_spec.plugin.plugin import FileReading

if TYPE_CHECKING:
    from onnx_from_checkpoints import Configuration, Task
    from rageval_spec.inference.encoder import Encoder, TokenCounter
    from rageval_spec.inference.model_files import ModelFiles
    from rageval_spec.inference.speeds import ReadingSpeed


class OnnxNode(hub.LocalModelNode):
    """A model with ONNX or safetensors weights that embeds texts, or classifies pairs of texts or their tokens.

    Null keys take the model's settings.
    """

    model: str = Field(
        default="minilm",
        min_length=1,
        description="`minilm` (all-MiniLM-L6-v2) or `multilingual` (multilingual-e5-small), both embedded, a folder or "
        "an .onnx file relative to the spec, or a model of the Hugging Face Hub: owner/name.",
    )
    file: str | None = Field(
        default=None,
        min_length=1,
        description="Which file of the model to read: an .onnx file, such as onnx/model_O3.onnx, or safetensors.",
    )
    graph: Literal["own", "repository"] | None = Field(
        default=None,
        description="Which graph to run where the model has both: `own` is built from its safetensors, `repository` is "
        "its .onnx file. By default the own one, which is faster, if its architecture can be built.",
    )
    precision: Literal["fp32", "int8"] = Field(
        default="fp32", description="int8 quantises the weights dynamically to 8 bits, once, and is faster."
    )
    pooling: Literal["auto", "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"] = Field(
        default="auto", description="How token vectors are combined into one."
    )
    pair_template: str | None = Field(
        default=None,
        min_length=1,
        description="The text that a classifier of pairs was trained to read, with {document} and {claim} where the "
        "two texts go, such as 'predict: {document}</s>{claim}'. Known for MiniCheck, FactCG and HHEM; other models "
        "read the two texts one after the other.",
    )
    replies: dict[str, Annotated[str, Field(min_length=1)]] | None = Field(
        default=None,
        min_length=2,
        description="For a model that writes text (T5ForConditionalGeneration): the words that it was trained to reply "
        "with, by the label that each stands for, such as {unsupported: '0', supported: '1'}. The logit of a label is "
        "that of its word's first token. Known for MiniCheck.",
    )
    published_as: str | None = Field(
        default=None,
        description="The id on the Hugging Face Hub of a model in a folder, such as lytang/MiniCheck-RoBERTa-Large: "
        "what is known of that model then applies. `rageval-spec explain nli` and `rageval-spec explain "
        "detector` list the known ones.",
    )

    @field_validator("pair_template")
    @classmethod
    def _check_template(cls, template: str | None) -> str | None:
        if template is not None:
            parse_template(template)
        return template

    @field_validator("published_as")
    @classmethod
    def _check_published_name(cls, name: str | None) -> str | None:
        if name is not None:
            from rageval_spec.judging.known_models import suggest_known

            if (suggestion := suggest_known(name)) is not None:
                raise ValueError(f"nothing is known of '{name}'; {suggestion}")
        return name


_TASKS: Mapping[Task, tuple[str, str]] = {
    "embedding": ("an embedding model", "`use: dense`"),
    "classification": ("a cross-encoder", "`use: rerank` or `use: nli`"),
    "token_classification": (
        "a token classifier, such as KRLabsOrg/lettucedect-base-modernbert-en-v1", "`use: detector`",
    ),
}  # fmt: skip
"""What a model of each task is, and where a spec can name one."""
_PLACE = frozenset({"model", "revision", "file", "graph", "published_as"})


class OnnxModel(hub.LocalModel[OnnxNode], TokenModel[OnnxNode]):
    """Runs a model on the CPU: without padding, each distinct text once, with as many threads as there are cores.

    From safetensors, it builds the graph once and stores it; else it uses the model's `.onnx` file. A hub model
    in the Hub's cache is not looked up again; `prepare` downloads one that is not in the cache.
    """

    known_as = ("huggingface", "hugging_face", "hf", "hub", "transformers", "fastembed", "local", "optimum")
    not_in_answers = frozenset({"query_prefix", "document_prefix", "similarity"})
    later_keys = frozenset({"graph", "pair_template", "published_as", "replies"})
    fills_templates = True

    def inputs(self) -> Sequence[InputFile]:
        if self._is_replaceable:
            return ()
        location = self._location
        if location.kind != "hub" and location.folder is not None:
            if location.file is not None:
                file = location.folder / location.file
                if not file.is_file():
                    return (InputFile(file, ("model",)),)
            elif not location.folder.is_dir():
                return (InputFile(location.folder, ("model",), "folder"),)
        source = self._source
        if source is None:
            return ()
        model_files.check_graph(self._require(), self._configuration)
        self._check(self._configuration)
        return tuple(model_files.list_inputs(source))

    @property
    def _is_replaceable(self) -> bool:
        """Whether the default model is not installed but the other one is, which is used where a spec names none."""
        is_default = self.node.model == self.context.name == "minilm"
        return is_default and not EMBEDDED["minilm"].is_installed and EMBEDDED["multilingual"].is_installed

    def check(self) -> str | None:
        return model_files.find_missing_packages(self.node.model)

    def check_files(self) -> Iterator[FileFault]:
        try:
            if not self._is_replaceable and self._source is not None:
                model_files.check_tensors(self._source, self._configuration)
        except RagevalError as error:
            yield FileFault(("model",), str(error), code="unreadable-data")

    def content(self) -> dict[str, Any]:
        """The model's identity; the place of its files does not count, because their content does."""
        content = super().content()
        if self._source is not None:
            content["node"] = {key: content["node"][key] for key in content["node"] if key not in _PLACE}
            if self.node.precision == "int8" or self._multiplies_integers:
                from rageval_spec.inference.exports import QUANTISER

                content["quantiser"] = QUANTISER
            if reading := self._find_reading(self._files):
                content["max_length"] = self._configuration.max_length
                if "pair_format" in reading:
                    content["pair_format"] = asdict(reading["pair_format"])
                if "replies" in reading:
                    content["replies"] = list(map(list, reading["replies"].items()))
        return content

    def describe_files(self) -> Iterator[FileReading]:
        """Whose graph is run, where that is a choice: the repository has several, or code that is not run."""
        if self._source is not None and (details := tuple(self._explain_graph())):
            yield FileReading(self.node.model, details, {})

    def prepare(self) -> None:
        """Download a Hub model that is not on this machine."""
        if self._source is not None:
            return
        try:
            self._location = hub.fetch(self.node.model, self.node.revision, self.node.file, self.node.graph)
        except RagevalError as error:
            raise type(error)(f"{self._where}: {error}") from error
        self._source = model_files.find_source(self._location, self.node.file, self.node.graph)
        model_files.check_graph(self._require(), self._configuration)
        model_files.check_tensors(self._require(), self._configuration)

    def describe(self) -> dict[str, str]:
        """The model, its revision, the sha256 of its weights, the precision, and how texts are read."""
        source, configuration = self._require(), self._configuration
        facts = {
            "use": self.node.use,
            "model": self.node.model,
            "revision": source.location.revision or "",
            "file": source.weights[0],
            "graph": source.graph,
            "sha256": self.context.fingerprint(InputFile(source.path(source.weights[0]), ("model",))),
            "precision": self.node.precision,
            "max_length": str(configuration.max_length or ""),
        }
        if configuration.task in ("classification", "token_classification"):
            facts["labels"] = ", ".join(configuration.labels)
            facts["pair_template"] = str(configuration.pair_format or "")
        else:
            facts["pooling"] = "+".join(configuration.pooling)
            facts["normalize"] = "yes" if configuration.normalize else "no"
            facts["dimensions"] = str(configuration.dimensions or "")
            facts["query_prefix"] = self._prefix("query")
            facts["document_prefix"] = self._prefix("document")
        return {key: value for key, value in facts.items() if value}

    @property
    def published_name(self) -> str | None:
        return self.node.published_as or super().published_name

    @property
    def similarity(self) -> Literal["cosine", "dot"]:
        """The node's similarity, else that of the model's files, else cosine."""
        self._refuse_unless("embedding")
        return self._configuration.similarity if self.node.similarity == "auto" else self.node.similarity

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of the logits; `LABEL_0` and so on if the model's files name none."""
        self._refuse_unless("classification")
        return self._labels

    @property
    def named_labels(self) -> tuple[str, ...] | None:
        return self._list_named_labels("classification")

    @property
    def token_labels(self) -> tuple[str, ...]:
        self._refuse_unless("token_classification")
        return self._labels

    @property
    def named_token_labels(self) -> tuple[str, ...] | None:
        return self._list_named_labels("token_classification")

    @property
    def room(self) -> int | None:
        if self._task == "token_classification":
            return self._counter.room
        length = self._configuration.max_length
        return None if length is None else length - self._counter.count_around()

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        if self._task == "token_classification":
            return self._counter.count(texts)
        return self._counter.count_in_pairs(texts)

    def foresee(
        self, task: Literal["embed", "score", "tag"], texts: Sequence[str | tuple[str, str]], role: Role = "document"
    ) -> Mapping[str, int]:
        """See `Model.foresee`; a model that is not on this machine has no stored answers."""
        if self._source is None:
            return super().foresee(task, texts, role)
        from rageval_spec.inference.stored_outputs import foresee_reading

        prefix = self._prefix(role) if task == "embed" else ""
        asked = [prefix + text if isinstance(text, str) else text for text in texts] if prefix else texts
        return {key: self._pace.count(text) for key, text in foresee_reading(self, task, asked).items()}

    def find_speed(self) -> Speed | None:
        """See `Model.find_speed`; None if the model is not on this machine, or neither measured nor of known size."""
        return None if self._source is None else self._pace.find()

    def tag(self, pairs: Sequence[tuple[str, str]]) -> TokenTags:
        self._refuse_unless("token_classification")
        from rageval_spec.inference.stored_outputs import tag_pairs

        return tag_pairs(self, pairs, lambda missing: self._pace.keep(missing, self._encoder.tag(missing)))

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Vectors of texts, each with the prefix of its role; otherwise as `EmbeddingModel.embed`."""
        self._refuse_unless("embedding")
        from rageval_spec.inference.stored_outputs import embed_texts

        prefix = self._prefix(role)
        asked = [prefix + text for text in texts] if prefix else texts
        return embed_texts(self, asked, lambda missing: self._pace.keep(missing, self._encoder.embed(missing)))

    def unread_share(self, texts: Sequence[str]) -> float | None:
        """As `EmbeddingModel.unread_share`; loads the tokenizer only if the texts are not in Latin script."""
        from rageval_spec.inference.tokens import measure_unread, sample_foreign

        foreign, source = sample_foreign(texts), self._require()
        return measure_unread(source.tokenizer_folder, source.tokenizer, foreign) if foreign else 0.0

    def score(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        self._refuse_unless("classification")
        from rageval_spec.inference.stored_outputs import score_pairs

        return score_pairs(self, pairs, lambda missing: self._pace.keep(missing, self._encoder.score(missing)))

    @cached_property
    def _source(self) -> ModelFiles | None:
        return model_files.find_source(self._location, self.node.file, self.node.graph)

    @cached_property
    def _configuration(self) -> Configuration:
        """The configuration from the model's files, overridden by what is known of it and by the node's keys."""
        found, node = self._files, self.node
        stated: dict[str, Any] = {
            "pooling": None if node.pooling == "auto" else (node.pooling,),
            "normalize": node.normalize,
            "max_length": node.max_length,
            "dimensions": node.dimensions,
        }
        stated = {key: value for key, value in stated.items() if value is not None}
        return replace(found, **{**self._find_reading(found), **stated})

    @cached_property
    def _multiplies_integers(self) -> bool:
        """Whether the repository's graph has integer products, which processors without VNNI once computed wrongly."""
        from onnx_from_checkpoints import is_quantized

        source = self._require()
        return source.graph == "repository" and is_quantized(source.path(source.weights[0]))

    @cached_property
    def _files(self) -> Configuration:
        return self._require().read_configuration()

    def _find_reading(self, found: Configuration) -> dict[str, Any]:
        """What the spec and the table of known models say of how pairs are read, where the files do not say it."""
        reads_pairs = found.task == "classification" or writes_text(found.encoder.get("architectures"))
        if not reads_pairs and self.node.pair_template is None:
            return {}  # most models are not verifiers, and validate need not import their table
        from rageval_spec.inference import verifiers

        return verifiers.choose_reading(found, lambda: self.published_name, self.node.pair_template, self.node.replies)

    @cached_property
    def _pace(self) -> ReadingSpeed:
        from rageval_spec.inference.speeds import ReadingSpeed

        return ReadingSpeed(self._require(), self._configuration, self.node.precision, self.context)

    @cached_property
    def _counter(self) -> TokenCounter:
        """The tokenizer alone, because a plan counts tokens without the graph."""
        from rageval_spec.inference.encoder import load_counter

        return load_counter(self._require(), self._configuration)

    @cached_property
    def _encoder(self) -> Encoder:
        from rageval_spec.inference.encoder import load_encoder
        from rageval_spec.inference.exports import provide_graph

        source = self._require()
        graph = provide_graph(source, self._configuration, self.node.precision, self.context.fingerprint)
        encoder = load_encoder(source, self._configuration, graph, self.context.threads)
        if encoder.pools and self.node.pooling != "auto":
            raise UsageError(
                f"{self._where}: pooling: the graph of {self.node.model} contains its pooling; set it to `auto`"
            )
        return encoder

    def _require(self) -> ModelFiles:
        if self._source is None:
            raise RagevalError(f"{self._where}: '{self.node.model}' is not on this machine; `prepare` downloads it")
        return self._source

    def _find_own_prefix(self, role: Role) -> str:
        return self._configuration.query_prefix if role == "query" else self._configuration.document_prefix

    def _explain_graph(self) -> Iterator[str]:
        source = self._require()
        others, code = model_files.list_others(source), find_code(self._configuration.encoder)
        own = source.graph == "own"
        made = f"the graph is built from {source.weights[0]}" if own else f"the graph is {source.weights[0]}"
        if others:
            yield f"{made}, not {others[0]} (`graph: {'repository' if own else 'own'}` runs that)"
        if code and own:
            name = self._configuration.model_type
            yield f"the code of its repository ({code}) is not run: {made} as for every {name} model"

    def _check(self, configuration: Configuration) -> None:
        if self.node.revision is not None and self._location.kind != "hub":
            raise UsageError(f"revision: is only for models of the Hugging Face Hub, which '{self.node.model}' is not")
        length, positions = self.node.max_length, configuration.positions
        if length is not None and positions is not None and length > positions:
            raise UsageError(
                f"max_length: {length} is more than the {positions} tokens that {self.node.model} can read"
            )
        if self.node.replies is not None or self.node.pair_template is not None:
            from rageval_spec.inference.verifiers import check_pair_keys

            check_pair_keys(self.node.model, self.node.replies, self.node.pair_template, configuration)
        if not configuration.pools_prompt and (self._prefix("query") or self._prefix("document")):
            raise UsageError(
                f"{self.node.model} leaves the prompt's tokens out of its vectors, which is not supported: "
                "set query_prefix and document_prefix to '', or write `use: sentence_transformers`"
            )

    def _refuse_unless(self, task: Task) -> None:
        if self._task != task:
            writes = writes_text(self._configuration.encoder.get("architectures"))
            found, use = _TASKS[self._task]
            told = "writes text" if writes else f"is {found.partition(',')[0]}, for {use}"
            told = NEEDS_REPLIES if writes and task == "classification" else f"{told}; name {_TASKS[task][0]}"
            raise UsageError(f"{self._where}: '{self.node.model}' {told}")

    def _list_named_labels(self, task: Task) -> tuple[str, ...] | None:
        """The labels that the model's files name; None if there are no files here, or they do not say the task."""
        if self._source is None or self._configuration.task is None:
            return None
        self._refuse_unless(task)
        return self._configuration.labels or None

    @cached_property
    def _task(self) -> Task:
        """The model's task according to its files, else according to its graph's outputs."""
        return self._configuration.task or self._encoder.task

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        return self._configuration.labels or tuple(f"LABEL_{number}" for number in range(self._encoder.width))


PLUGIN = OnnxModel
