"""`sentence_transformers`: models that ONNX Runtime cannot run, by the library of that name and torch."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from onnx_from_checkpoints import load_json, read_configuration, read_prefix
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.inference import hub, model_files
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.libraries import np
from rageval_spec.plugin import Embeddings, InputFile, PairScores, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rageval_spec.inference.stored_outputs import Batch

_INSTALL = 'pip install "rageval-spec[torch]"'
_LIBRARIES = ("sentence-transformers", "transformers", "torch")
_OTHER_FORMATS = ("onnx", "openvino", "coreml")
_OTHER_FILES = ("*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf", "*.md", "*.png", ".git*")


class SentenceTransformersNode(hub.LocalModelNode):
    """An embedding model or a cross-encoder, run by sentence-transformers on torch (the extra `torch`)."""

    model: str = Field(
        default="minilm",
        min_length=1,
        description="A model of the Hugging Face Hub (owner/name), a folder, or `minilm`, which is embedded.",
    )
    device: str | None = Field(
        default=None, description="The device of torch: `cpu`, `cuda`, `cuda:1`, `mps`; by default the fastest."
    )
    batch: int = Field(default=32, ge=1, description="How many texts to compute at once.")
    trust_remote_code: bool = Field(
        default=False,
        description="Run the Python code that some models come with. It can do everything that you can do.",
    )

    @field_validator("model")
    @classmethod
    def _check_model(cls, model: str) -> str:
        if model in EMBEDDED and EMBEDDED[model].weights != model_files.SAFETENSORS:
            raise ValueError(f"only `use: onnx` reads the embedded model {model}; write that")
        return model


class SentenceTransformers(hub.LocalModel[SentenceTransformersNode]):
    """Runs a model as sentence-transformers does, in batches of texts of about the same length.

    Pairs get raw logits, without the model's own activation, such as a sigmoid.
    """

    known_as = ("sbert", "torch", "pytorch")
    not_in_answers = frozenset({"similarity"})

    def inputs(self) -> Sequence[InputFile]:
        folder = self._location.folder
        if self._location.kind == "folder" and folder is not None and not folder.is_dir():
            return (InputFile(folder, ("model",), "folder"),)
        return tuple(InputFile(folder / name, ("model",)) for name in self._files) if folder else ()

    def content(self) -> dict[str, Any]:
        leave_out = {"batch", "device"} | ({"model", "revision"} if self._files else set())
        node = self.node.model_dump(mode="json", exclude=leave_out)
        return {"word": self.node.use, "version": self.version, "node": node, "files": self._files}

    def describe(self) -> dict[str, str]:
        revision = {"revision": self._location.revision} if self._location.revision else {}
        return {"use": self.node.use, "model": self.node.model, **revision, **_find_versions()}

    def check(self) -> str | None:
        found = importlib.util.find_spec("sentence_transformers")
        return None if found else f"needs the package sentence_transformers; run `{_INSTALL}`"

    def prepare(self) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:  # importing it takes seconds
            raise self._explain_missing("sentence_transformers")
        if self._location.kind == "hub" and not self._is_whole():
            self._fetch()
            for name in ("_location", "_files", "_settings", "_config"):
                self.__dict__.pop(name, None)
        if not self._files:
            raise UsageError(f"{self._where}: the folder '{self.node.model}' is empty")

    @property
    def similarity(self) -> Literal["cosine", "dot"]:
        """The node's similarity, else that of the model's configuration, else cosine."""
        if self.node.similarity != "auto":
            return self.node.similarity
        name = self._settings.get("similarity_fn_name") or "cosine"
        if name not in ("cosine", "dot", "dot_product"):
            raise UsageError(
                f"{self._where}: the model's vectors are made for '{name}' similarity; write 'similarity: cosine' or "
                "'similarity: dot'"
            )
        return "cosine" if name == "cosine" else "dot"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the model's config.json; `LABEL_0` for a reranker that is a language model."""
        self._check_task("score")
        with model_files.translated():
            return read_configuration(self._folder).labels or ("LABEL_0",)

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        from rageval_spec.inference.stored_outputs import embed_texts
        from rageval_spec.inference.tokens import make_readable

        self._check_task("embed")
        prefix = self._prefix(role)
        readable = [f"{prefix}{make_readable(text)}" for text in texts]
        # Models can leave the prefix out of the pooling, and can have a separate encoder for each role.
        task = f"embed {role} {len(prefix)}"
        return embed_texts(self, readable, lambda waiting: self._compute_vectors(waiting, prefix, role), task=task)

    def score(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        from rageval_spec.inference.stored_outputs import score_pairs
        from rageval_spec.inference.tokens import make_readable

        self._check_task("score")
        readable = [make_readable(pair) for pair in pairs]
        return score_pairs(self, readable, self._compute_logits)  # type: ignore[arg-type]

    def _compute_vectors(self, texts: Sequence[str], prefix: str, role: Role) -> Iterator[Batch]:
        model = self._encoder
        encode = model.encode_query if role == "query" else model.encode_document
        # A unit vector without some of its values is not a unit vector, so it is scaled again.
        shortened = self.node.dimensions is not None and any(map(_is_normalize, model))
        normalize = self.node.normalize is True or shortened

        def compute(asked: Sequence[str]) -> Any:
            bare = [text[len(prefix) :] for text in asked]
            return encode(
                bare,
                prompt=prefix,
                batch_size=len(bare),
                show_progress_bar=False,
                normalize_embeddings=normalize,
                truncate_dim=self.node.dimensions,
            )

        return self._compute(model, texts, compute)

    def _compute_logits(self, pairs: Sequence[tuple[str, str]]) -> Iterator[Batch]:
        model = self._cross_encoder

        def compute(asked: Sequence[tuple[str, str]]) -> Any:
            return model.predict(
                asked, batch_size=len(asked), show_progress_bar=False, activation_fn=lambda logits: logits
            )

        return self._compute(model, pairs, compute)

    def _compute(
        self, model: Any, questions: Sequence[Any], compute: Callable[[Sequence[Any]], Any]
    ) -> Iterator[Batch]:
        """Batches of questions of about the same length, the longest first, so that a lack of memory shows at once."""
        from rageval_spec.inference.stored_outputs import Batch

        order = np.argsort([-_count_bytes(question) for question in questions], kind="stable")
        for start in range(0, len(order), self.node.batch):
            positions = order[start : start + self.node.batch]
            asked = [questions[position] for position in positions]
            with self._explained("cannot compute", RagevalError):
                answers = np.asarray(compute(asked), np.float32).reshape(len(asked), -1)
            yield Batch(positions, answers, _find_truncated(model, asked))

    @property
    def _folder(self) -> Path:
        if not self._files:
            self.prepare()
        return self._location.folder or Path()

    @cached_property
    def _files(self) -> list[str]:
        """The model's files by their names in its folder, without those for other libraries."""
        folder = self._location.folder
        found = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file()) if folder else []
        return [
            path.as_posix()
            for path in found
            if path.parts[0] not in _OTHER_FORMATS
            and not any(part.startswith(".") for part in path.parts)
            and not any(path.match(pattern) for pattern in _OTHER_FILES)
        ]

    @cached_property
    def _settings(self) -> dict[str, Any]:
        return self._read_json("config_sentence_transformers.json")

    @cached_property
    def _config(self) -> dict[str, Any]:
        return self._read_json("config.json")

    def _read_json(self, name: str) -> dict[str, Any]:
        path = self._folder / name
        with model_files.translated():
            content = load_json(path) if path.is_file() else {}
        if not isinstance(content, dict):
            raise DataError(f"{path}: is not a JSON object")
        return content

    def _find_own_prefix(self, role: Role) -> str:
        with model_files.translated():
            return read_prefix(self._folder, role)

    def _check_task(self, task: Literal["embed", "score"]) -> None:
        """Refuse tasks for which the library would use random weights."""
        kind = self._settings.get("model_type")
        names = [str(name) for name in self._config.get("architectures") or ()]
        has_head = any(name.endswith("ForSequenceClassification") for name in names)
        if task == "embed" and (kind == "CrossEncoder" or (has_head and kind is None)):
            raise UsageError(f"{self._where}: '{self.node.model}' is a cross-encoder and gives no embeddings")
        is_encoder = bool(names) and all(name.endswith(("Model", "ForMaskedLM")) for name in names)
        if task == "score" and (kind == "SentenceTransformer" or (is_encoder and kind is None)):
            raise UsageError(f"{self._where}: '{self.node.model}' is not a cross-encoder: it has no head for pairs")

    def _import(self) -> Any:
        try:
            import sentence_transformers
        except ImportError as error:
            raise self._explain_missing(error.name or "sentence_transformers") from error
        # The progress bars and remarks of transformers are off; rageval-spec shows the progress itself.
        if logging := sys.modules.get("transformers.utils.logging"):
            logging.disable_progress_bar()
            logging.set_verbosity_error()
        return sentence_transformers

    def _explain_missing(self, package: str) -> UsageError:
        return UsageError(f"{self._where}: needs the package {package}; run `{_INSTALL}`")

    @cached_property
    def _encoder(self) -> Any:
        return self._load("SentenceTransformer")

    @cached_property
    def _cross_encoder(self) -> Any:
        return self._load("CrossEncoder")

    def _load(self, kind: str) -> Any:
        library = self._import()
        if self.context.threads is not None and (torch := sys.modules.get("torch")):
            torch.set_num_threads(self.context.threads)
        folder = self._folder
        trusted = self.node.trust_remote_code
        with self._explained(f"cannot load '{self.node.model}'", DataError):
            model = getattr(library, kind)(
                str(folder), device=self.node.device, trust_remote_code=trusted, local_files_only=True
            )
        if self.node.max_length is not None:
            self._check_max_length()
            model.max_seq_length = self.node.max_length
        if self.node.normalize is False and kind == "SentenceTransformer":
            for index in reversed(range(len(model))):
                if _is_normalize(model[index]):
                    del model[index]
        return model

    def _check_max_length(self) -> None:
        positions = self._config.get("max_position_embeddings")
        if isinstance(positions, int) and 0 < positions < (self.node.max_length or 0):
            raise UsageError(
                f"{self._where}.max_length: {self.node.max_length} is more than the {positions} tokens that the model "
                "can read"
            )

    def _is_whole(self) -> bool:
        """Whether the hub's cache has the weights and the files that describe the model."""
        folder = self._location.folder
        has_weights = any(name.endswith((".safetensors", ".bin", ".pt")) for name in self._files)
        return folder is not None and has_weights and not model_files.find_missing(folder)

    def _fetch(self) -> None:
        if hub.is_offline():
            raise RagevalError(f"{self._where}: {hub.explain_offline(self.node.model, self.node.revision)}")
        from huggingface_hub import snapshot_download

        # A partial download is completed at its own revision, even if a newer one was published since.
        revision = self._location.revision or self.node.revision
        ignored = [*_OTHER_FILES, *(f"{folder}/*" for folder in _OTHER_FORMATS)]
        with self._explained(f"cannot download '{self.node.model}'", RagevalError):
            hub.note_absent(Path(snapshot_download(self.node.model, revision=revision, ignore_patterns=ignored)))

    @contextmanager
    def _explained(self, what: str, kind: type[RagevalError]) -> Iterator[None]:
        """Turn errors of the libraries, which can be of any class, into ours."""
        try:
            yield
        except RagevalError:
            raise
        except Exception as error:
            hint = "; lower 'batch' or 'max_length'" if "out of memory" in str(error).lower() else ""
            raise kind(f"{self._where}: {what}: {hub.shorten_error(error)}{hint}") from error


def _is_normalize(module: Any) -> bool:
    return type(module).__name__ == "Normalize"


def _count_bytes(question: str | tuple[str, str]) -> int:
    return len(question.encode()) if isinstance(question, str) else sum(map(_count_bytes, question))


def _find_truncated(model: Any, questions: Sequence[Any]) -> NDArray[np.bool_]:
    """Whether each question has more tokens than the model reads; one with fewer bytes than that cannot."""
    limit, tokenizer = getattr(model, "max_seq_length", None), getattr(model, "tokenizer", None)
    flags = np.zeros(len(questions), np.bool_)
    if limit is None or not callable(tokenizer):
        return flags
    special = 8
    long = [position for position, question in enumerate(questions) if _count_bytes(question) + special > limit]
    if long:
        asked = [questions[position] for position in long]
        columns = [asked] if isinstance(asked[0], str) else [list(column) for column in zip(*asked, strict=True)]
        ids = tokenizer(*columns, truncation=False, padding=False, verbose=False)["input_ids"]
        flags[long] = [len(one) > limit for one in ids]
    return flags


def _find_versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return {name: version(name) for name in _LIBRARIES}
    except PackageNotFoundError:
        return {}


PLUGIN = SentenceTransformers
