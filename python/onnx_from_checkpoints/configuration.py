"""Reads a model's configuration files, of transformers and sentence-transformers, in old and new spellings.

A folder without sentence-transformers files is read as sentence-transformers does: mean pooling over the tokens, no
normalisation, vectors compared by cosine.

From them follows what the model is for: vectors of texts, logits of pairs, or logits of each token. A template, such
as `predict: {document}</s>{claim}`, says how a model reads a pair of texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from onnx_from_checkpoints.errors import OTHER_READER, DamagedFile, UnsupportedModel
from onnx_from_checkpoints.settings import Settings, load_json, read_settings, show

Task = Literal["embedding", "classification", "token_classification"]
"""`classification` gives each pair of texts its logits, `token_classification` gives each token of a pair its own."""

_HEADS: Mapping[str, Task] = {
    "ForSequenceClassification": "classification",
    "ForTokenClassification": "token_classification",
}
"""How the names of transformers' classes with a head end."""
_HEAD = re.compile(r"For[A-Z]\w*$")
"""Where the name of a class with a head says what the head is for: `BertForMaskedLM`."""


def _list_classes(architectures: object) -> list[str]:
    return [str(name) for name in architectures] if isinstance(architectures, (list, tuple)) else []


def writes_text(architectures: object) -> bool:
    """Whether `architectures` of config.json names a class that writes text from a text, such as FLAN-T5's."""
    return any(name.endswith("ForConditionalGeneration") for name in _list_classes(architectures))


def find_task(architectures: object) -> Task | None:
    """The task of the first class in `architectures` of config.json that has a known head; None if there is none."""
    names = _list_classes(architectures)
    return next((task for name in names for ending, task in _HEADS.items() if name.endswith(ending)), None)


def find_other_head(architectures: object) -> str | None:
    """The first class in `architectures` of config.json whose head gives none of the tasks; None if one gives a task,
    or if all are encoders without a head.
    """
    names = _list_classes(architectures)
    if find_task(names) is not None or not all(map(_HEAD.search, names)):
        return None
    return next(iter(names), None)


NEEDS_REPLIES = (
    "writes text; to classify pairs by the first word of its reply, write `replies: {unsupported: '0', supported: "
    "'1'}` and `pair_template`, with the words and the text that it was trained on"
)
"""What a model that writes text is, and what it needs, after its name."""


Span = tuple[int, int]
"""Where a text starts and ends, in characters."""
PLACEHOLDERS = ("document", "claim")


@dataclass(frozen=True, slots=True)
class PairFormat:
    """A template over the two texts of a pair: a document, which comes first in the pair, and a claim about it.

    Attributes:
        before: the text before the first of the two, `between` and `after` accordingly. Special tokens of the
            tokenizer, such as `</s>`, are written as they are.
        claim_first: whether the claim comes before the document in the template.
    """

    before: str
    between: str
    after: str
    claim_first: bool = False

    def __str__(self) -> str:
        first, second = reversed(PLACEHOLDERS) if self.claim_first else PLACEHOLDERS
        before, between, after = (
            text.replace("{", "{{").replace("}", "}}") for text in (self.before, self.between, self.after)
        )
        return f"{before}{{{first}}}{between}{{{second}}}{after}"

    def fill(self, document: str, claim: str) -> FilledPair:
        first, second = (claim, document) if self.claim_first else (document, claim)
        start = len(self.before)
        then = start + len(first) + len(self.between)
        spans = ((start, start + len(first)), (then, then + len(second)))
        text = f"{self.before}{first}{self.between}{second}{self.after}"
        return FilledPair(text, *(reversed(spans) if self.claim_first else spans))


class FilledPair(NamedTuple):
    """A filled template; `document` and `claim` are where they start and end in `text`, in characters."""

    text: str
    document: Span
    claim: Span


def parse_template(template: str, names: tuple[str, str] = PLACEHOLDERS) -> PairFormat:
    """Read a template such as `predict: {document}</s>{claim}`; a literal brace is written twice.

    `names` are the placeholders of the document and of the claim.

    Raises:
        ValueError: a placeholder is missing, there twice, or unknown, or a brace has no partner.
    """
    wanted = " and ".join(f"{{{name}}}" for name in names)
    texts, found = [""], []
    try:
        for text, name, specification, conversion in Formatter().parse(template):
            texts[-1] += text
            if name is not None:
                found.append(name if not specification and not conversion else f"{name}!{conversion}:{specification}")
                texts.append("")
    except ValueError as error:
        raise ValueError(f"a brace has no partner ({error}); write {wanted}, and a literal brace twice") from error
    if sorted(found) != sorted(names):
        shown = ", ".join(f"{{{name}}}" for name in found) or "neither"
        raise ValueError(f"must have {wanted} exactly once each, but has {shown}")
    before, between, after = texts
    return PairFormat(before, between, after, claim_first=found[0] == names[1])


Pooling = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
Role = Literal["query", "document"]

POOLINGS: Mapping[Pooling, str] = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
"""Each with its old key, in the order in which sentence-transformers concatenates several."""
ENCODER_FILES = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Files in which sentence-transformers stores the maximum length; the first that exists counts."""
MODULES = "modules.json"
CONFIGURATION_FILES = ("config.json", MODULES, "config_sentence_transformers.json", *ENCODER_FILES)
"""The files of a model's root folder that are read, if they exist."""
OFFSET_POSITIONS = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl", "roberta-prelayernorm"})
"""Model types whose first positions belong to padding: `pad_token_id` + 1 of them hold no text."""
_POSITION_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len")
_PROMPTS: Mapping[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
_UNBOUNDED = 1_000_000
"""`model_max_length` above this is transformers' way to say that nothing is known."""
ACTIVATIONS_OF_DENSE = ("Identity", "ReLU", "Sigmoid", "Tanh")
"""The activations of linear layers over pooled vectors, by the names of PyTorch's classes."""


class DenseLayer(NamedTuple):
    """A linear layer over the pooled vector, with an activation.

    Attributes:
        folder: the subfolder that has its weights.
        activation: the name of the PyTorch class, such as `Tanh`; `Identity` for none.
    """

    folder: str
    activation: str
    bias: bool
    residual: bool = False

    def check(self, model: Path) -> None:
        """Refuse a layer of the model in this folder that cannot be read, without reading its weights."""
        folder = model / self.folder
        if self.activation not in ACTIVATIONS_OF_DENSE:
            raise UnsupportedModel(f"{folder}: the activation {self.activation} is not supported; {_INSTEAD}")
        if not (folder / "model.safetensors").is_file():
            raise UnsupportedModel(f"{folder}: has weights only in a format that can execute code; {_INSTEAD}")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that must be known about a model besides its weights and its tokenizer.

    Attributes:
        task: what it gives: vectors of texts, logits of pairs, or logits of tokens; None if the files do not say.
        model_type: transformers' name of the architecture, such as `bert`; empty without a config.json.
        vocabulary: how many token ids the model knows.
        positions: how many tokens the model has positions for, special tokens included; None if it has only relative
            positions, which set no bound.
        max_length: how many tokens the model was made to read: never more than `positions`.
        lowercase: whether texts are lowercased, whatever the tokenizer does by itself.
        token_types: whether the model is told which of two texts a token belongs to.
        pooling: how tokens become one vector; several are concatenated.
        pools_prompt: whether the tokens of a prompt are pooled as well.
        dense: layers over the pooled vector, in order.
        normalize: whether vectors are brought to unit length.
        dimensions: how many values of a vector are kept (Matryoshka); None keeps all.
        prompts: what is put before texts, by name.
        labels: the labels in the order of the logits; empty if the model is not a classifier.
        replies: the words that a model which writes text replies with, by the label that each stands for.
        pair_format: the template through which a classifier reads pairs; None reads them as two sequences.
        encoder: config.json as it is.
        files: the files that were read.
    """

    task: Task | None = None
    model_type: str = ""
    vocabulary: int | None = None
    positions: int | None = None
    max_length: int | None = None
    lowercase: bool = False
    token_types: bool = True
    pooling: tuple[Pooling, ...] = ("mean",)
    pools_prompt: bool = True
    dense: tuple[DenseLayer, ...] = ()
    normalize: bool = False
    dimensions: int | None = None
    prompts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    default_prompt: str | None = None
    similarity: Literal["cosine", "dot"] = "cosine"
    labels: tuple[str, ...] = ()
    replies: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    pair_format: PairFormat | None = None
    encoder: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    files: tuple[Path, ...] = ()

    @property
    def is_bare(self) -> bool:
        """Whether only the encoder of the weights is meant, and no head beside it."""
        return self.task == "embedding" and self.says_pooling

    @property
    def says_pooling(self) -> bool:
        """Whether sentence-transformers files say how the encoder's tokens become a vector, whatever head it had."""
        return any(path.name == MODULES for path in self.files)

    @property
    def query_prefix(self) -> str:
        return find_prefix(self.prompts, self.default_prompt, "query")

    @property
    def document_prefix(self) -> str:
        return find_prefix(self.prompts, self.default_prompt, "document")


def find_prefix(prompts: Mapping[str, str], default: str | None, role: Role) -> str:
    """The prefix that a model needs before a text: its prompt for the role, else its default prompt, else "".

    A document's prompt is called `document`, `passage` or `corpus`. An empty prompt counts as none:
    sentence-transformers writes empty ones into each model that it saves. Its `encode_document` then stops at the
    empty `document`, leaving out what the file calls `passage`, and its default prompt; here the file's word counts.
    A default prompt that is the other role's is not put before texts of this one.
    """
    others = {name for other, names in _PROMPTS.items() if other != role for name in names}
    names = [*_PROMPTS[role], *({default or ""} - others)]
    return next((prompts[name] for name in names if prompts.get(name)), "")


def read_prefix(folder: Path, role: Role) -> str:
    """The prefix before a text according to the model's files."""
    sentence = read_settings(folder / "config_sentence_transformers.json")
    return find_prefix(_read_prompts(sentence), sentence.optional("default_prompt_name", str), role)


def read_configuration(folder: Path) -> Configuration:
    """Read the configuration files in a model's folder; missing files are skipped.

    Raises:
        DamagedFile: a file is not JSON, or has an impossible value; the message has `file:line` or `file: key`.
        UnsupportedModel: the model has parts that are not supported here; the message names them.
    """
    named = next((name for name in ENCODER_FILES if (folder / name).is_file()), ENCODER_FILES[0])
    names = ("config.json", "config_sentence_transformers.json", named)
    config, sentence, encoder = (read_settings(folder / name) for name in names)
    modules = _list_modules(folder / MODULES)
    task = _find_task(config, sentence, modules)
    tokenizer = read_settings(folder / "tokenizer_config.json")
    positions = _count_positions(config)
    bound = None if _reads_any_length(config) else positions
    fields: dict[str, Any] = {
        "task": task,
        "model_type": config.optional("model_type", str) or "",
        "vocabulary": config.count("vocab_size"),
        "positions": bound,
        "max_length": _find_max_length(encoder, tokenizer, bound) or positions,
        "lowercase": encoder.flag("do_lower_case", False),
        "token_types": "token_type_ids" in (tokenizer.get("model_input_names") or ("token_type_ids",)),
        "prompts": _read_prompts(sentence),
        "default_prompt": sentence.optional("default_prompt_name", str),
        "similarity": _find_similarity(sentence) if task in (None, "embedding") else "cosine",
        "dimensions": sentence.count("truncate_dim"),
        "labels": () if task in (None, "embedding") else _read_labels(config),
        "encoder": config.content,
    }
    files = [folder / name for name in (*names, MODULES) if (folder / name).is_file()]
    if task in (None, "embedding"):
        fields |= _read_modules(folder, modules, files)
    return Configuration(**fields, files=tuple(files))


def _list_modules(path: Path) -> list[Settings] | None:
    """The modules of sentence-transformers; None if the file does not exist."""
    content = load_json(path) if path.is_file() else None
    if content is None:
        return None
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        raise DamagedFile(f"{path}:1: must be a list of objects, but is {show(content)}")
    return [Settings(item, path, null_is_missing=True) for item in content]


def _read_prompts(sentence: Settings) -> Mapping[str, str]:
    stated = Settings(sentence.mapping("prompts"), sentence.place)
    found = ((name, sentence.optional(f"prompts.{name}", str)) for name in stated.content)
    return MappingProxyType({name: text for name, text in found if text is not None})


def _find_task(config: Settings, sentence: Settings, modules: Sequence[Settings] | None) -> Task | None:
    kind = sentence.optional("model_type", str)
    if kind not in (None, "SentenceTransformer", "CrossEncoder"):
        raise UnsupportedModel(f"{sentence.place}: a {kind} gives neither one vector per text nor logits per pair")
    architectures = config.get("architectures") or []
    head = "classification" if kind == "CrossEncoder" else find_task(architectures)
    if head == "token_classification" and modules is not None:  # an encoder that was made from a token classifier
        head = "embedding"
    if head is not None:
        return "embedding" if kind == "SentenceTransformer" else head
    return "embedding" if modules is not None or architectures else None


def _count_positions(config: Settings) -> int | None:
    key = next((key for key in _POSITION_KEYS if config.get(key) is not None), None)
    if key is None or config.get(key) == -1:  # xlnet's way to say that there is no bound
        return None
    positions = config.count(key)
    if positions is None or config.get("model_type") not in OFFSET_POSITIONS:
        return positions
    padding = config.get("pad_token_id", 1)
    return max(1, positions - (padding if isinstance(padding, int) else 1) - 1)


def _reads_any_length(config: Settings) -> bool:
    """Whether positions are relative or computed, so that the number in the file is only that of training."""
    kind = config.get("model_type")
    return kind in ("eurobert", "modernbert", "nomic_bert", "t5") or (
        kind == "deberta-v2" and not config.flag("position_biased_input", True)
    )


def _find_max_length(encoder: Settings, tokenizer: Settings, positions: int | None) -> int | None:
    """sentence-transformers' own key first, then the tokenizer's; never above what the model has positions for."""
    keys = ("max_seq_length", "processor_kwargs.model_max_length", "tokenizer_args.model_max_length")
    stated = next(filter(None, map(encoder.count, keys)), None) or tokenizer.count("model_max_length")
    if stated is not None and stated > _UNBOUNDED:
        stated = None
    known = [length for length in (stated, positions) if length is not None]
    return min(known) if known else None


def _find_similarity(sentence: Settings) -> Literal["cosine", "dot"]:
    name = sentence.optional("similarity_fn_name", str) or "cosine"
    if name not in ("cosine", "dot", "dot_product"):
        raise UnsupportedModel(
            f"{sentence.place}: similarity '{name}' is not supported; write 'similarity: cosine' or 'similarity: dot'"
        )
    return "cosine" if name == "cosine" else "dot"


def _read_labels(config: Settings) -> tuple[str, ...]:
    """The labels by their numbers; a regression head has one, which transformers calls LABEL_0."""
    names = config.mapping("id2label")
    if not names:
        count = config.count("num_labels") or 2  # as transformers, which then has two
        return tuple(f"LABEL_{number}" for number in range(count))
    if sorted(names) != sorted(map(str, range(len(names)))):
        config.refuse_value("id2label", "an object with the numbers from 0 up", names)
    return tuple(str(names[str(number)]) for number in range(len(names)))


def _read_modules(folder: Path, modules: Sequence[Settings] | None, files: list[Path]) -> dict[str, Any]:
    """The modules after the encoder, which must be in the usual order of sentence-transformers.

    What is read is added to `files`.
    """
    fields: dict[str, Any] = {}
    dense: list[DenseLayer] = []

    def read(name: str) -> Settings:
        path = folder / name / "config.json"
        if not path.is_file():  # its defaults cannot be guessed
            raise DamagedFile(f"{path}: is missing, but modules.json names its folder; download the model again")
        files.append(path)
        return read_settings(path)

    for index, module in enumerate(modules or ()):
        kind = (module.optional("type", str) or "").rpartition(".")[2]
        name = module.optional("path", str) or ""
        if Path(name).is_absolute() or ".." in Path(name).parts or "\\" in name:
            module.refuse_value("path", "inside of the model's folder", name)
        if kind == "Transformer" and index == 0 and name in ("", "0_Transformer"):
            continue
        if kind == "Pooling" and "pooling" not in fields:
            values = read(name)
            fields |= {"pooling": _read_pooling(values), "pools_prompt": values.flag("include_prompt", True)}
        elif kind == "Dense" and "pooling" in fields and "normalize" not in fields:
            dense.append(_read_dense(read(name), name))
        elif kind == "Normalize" and "pooling" in fields:
            fields["normalize"] = True
        elif kind != "Dropout":  # which does nothing but in training
            named = kind or "a module without a type"
            where = f"'{name}' ({named})" if name else named
            raise UnsupportedModel(f"{module.place}: the module {where} is not supported in this place; {_INSTEAD}")
    if modules is not None and "pooling" not in fields:
        raise UnsupportedModel(f"{folder / MODULES}: has no Pooling; {_INSTEAD}")
    return fields | {"dense": tuple(dense)}


_INSTEAD = f"{OTHER_READER} runs such models"


def _read_pooling(values: Settings) -> tuple[Pooling, ...]:
    stated = values.get("pooling_mode")
    if stated is None:
        chosen = [mode for mode, key in POOLINGS.items() if values.flag(key, False)]
        return tuple(chosen) or ("mean",)
    names = [stated] if isinstance(stated, str) else stated
    if not isinstance(names, list) or not names or not all(name in POOLINGS for name in names):
        values.refuse_value("pooling_mode", f"some of {', '.join(POOLINGS)}", stated)
    return tuple(names)


def _read_dense(values: Settings, folder: str) -> DenseLayer:
    # Without the key, sentence-transformers builds the layer with its default.
    activation = (values.optional("activation_function", str) or "Tanh").rpartition(".")[2]
    for key in ("module_input_name", "module_output_name"):
        if values.get(key, "sentence_embedding") != "sentence_embedding":
            raise UnsupportedModel(f"{values.place}: '{key}' is not supported; {_INSTEAD}")
    return DenseLayer(folder, activation, values.flag("bias", True), values.flag("use_residual", False))
