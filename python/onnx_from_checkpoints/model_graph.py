"""Builds the ONNX graph of a model from its weights and `config.json`, by the module of its architecture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from onnx_from_checkpoints import architectures
from onnx_from_checkpoints.architectures.shared.contract import Architecture, WantedGraph
from onnx_from_checkpoints.configuration import NEEDS_REPLIES, Task, find_other_head, find_task, writes_text
from onnx_from_checkpoints.errors import OTHER_READER, UnsupportedModel
from onnx_from_checkpoints.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    import onnx
    from numpy.typing import NDArray


_MODULES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("bert", "camembert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta"), "bert"),
        "deberta-v2": "deberta",
        "eurobert": "eurobert",
        "modernbert": "modernbert",
        "nomic_bert": "nomic_bert",
        **dict.fromkeys(("mt5", "t5", "umt5", "HHEMv2", "HHEMv2Config"), "t5"),
    }
)
"""The module in `architectures` that builds each `model_type`. It is written here because `check_buildable` may import
none of them."""
_PUBLISHED_AS_CODE = frozenset({"eurobert", "nomic_bert", "HHEMv2", "HHEMv2Config"})
"""Architectures whose models come with code in their repositories, from which the modules here were made."""


def list_architectures() -> Mapping[str, Architecture]:
    """The modules in `architectures`, by each `model_type` that they build, sorted."""
    return MappingProxyType({model_type: _load(_MODULES[model_type]) for model_type in sorted(_MODULES)})


def find_architecture(config: Mapping[str, Any]) -> Architecture:
    """The module that builds graphs of this model type."""
    return _load(_find_module(config))


def check_buildable(config: Mapping[str, Any], *, bare: bool = False) -> None:
    """Refuse what config.json alone shows not to be buildable: another architecture, or a head that no graph has.

    Imports nothing heavy. What only the tensors show, `build_graph` finds.

    Args:
        bare: as of `build_graph`. The class that the encoder was taken from then does not count.

    Raises:
        UnsupportedModel: a graph cannot be built; the message says what to name or write instead.
    """
    module, named = _find_module(config), config.get("architectures")
    head = None if bare else find_other_head(named)
    if module == "t5" and not config["model_type"].startswith("HHEM") and find_task(named) == "classification":
        raise UnsupportedModel(
            "is a T5 with a classifier on its decoder, which is not supported; supported are T5EncoderModel, "
            "T5ForTokenClassification, and T5ForConditionalGeneration with `replies`"
        )
    if head is not None and writes_text(named):
        raise UnsupportedModel(NEEDS_REPLIES)
    if head is not None:
        raise UnsupportedModel(
            f"is a {head}, whose head gives neither vectors, nor logits of pairs or tokens; name a model that was "
            f"trained for that{_OR_CODE}"
        )


def has_foreign_code(config: Mapping[str, Any]) -> bool:
    """Whether config.json names code of the repository (`auto_map`) for an architecture that transformers has itself.

    Then `model_type` does not say for certain what the model computes.
    """
    return bool(find_code(config)) and config.get("model_type") not in _PUBLISHED_AS_CODE


def find_code(config: Mapping[str, Any]) -> str:
    """The class that `auto_map` of config.json names for the model, such as `modeling.NewBert`; "" if it names none."""
    named = config.get("auto_map")
    classes = {} if not isinstance(named, Mapping) else {key: name for key, name in named.items() if key in _LOADERS}
    return next((str(classes[key]) for key in _LOADERS if classes.get(key)), "")


_LOADERS = ("AutoModel", "AutoModelForSequenceClassification", "AutoModelForTokenClassification")
_OR_CODE = f", or an .onnx file, or {OTHER_READER} if it can read the model"


@cache
def _load(module: str) -> Architecture:
    return cast("Architecture", import_module(f"{architectures.__name__}.{module}"))


def _find_module(config: Mapping[str, Any]) -> str:
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in _MODULES:
        found = "has no model_type" if model_type is None else f"is not an encoder that can be built: {model_type}"
        raise UnsupportedModel(
            f"{found}; use a model with an .onnx file, or {OTHER_READER} (torch), or a model whose "
            f"model_type is one of {', '.join(sorted(_MODULES))}"
        )
    return _MODULES[model_type]


def build_graph(
    config: Mapping[str, Any],
    weights: Mapping[str, NDArray[Any]],
    *,
    task: Task | None = None,
    padded: bool = False,
    tabled: bool = False,
    replies: Sequence[int] = (),
    bare: bool = False,
) -> onnx.ModelProto:
    """Build the graph of an encoder, a sequence classifier or a token classifier.

    Inputs are `input_ids` and, if the model distinguishes the two texts of a pair, `token_type_ids`: int64
    [texts, tokens].
    An encoder's output is `last_hidden_state`, float32 [texts, tokens, hidden]; a classifier's is `logits`, float32
    [texts, labels]; a token classifier's is `token_logits`, float32 [texts, tokens, labels]. Equal arguments give equal
    bytes.

    Args:
        config: config.json.
        weights: the model's tensors by name, with any prefix, in any floating-point type.
        task: which of them to build; None follows `architectures` in the configuration, and is otherwise an encoder.
        padded: whether to add the input `attention_mask`, which is 0 for padding. Without it, the texts of a batch must
            have equal length, and attention takes an eighth less time.
        tabled: whether to look up the first layer's queries, keys and values in precomputed tables, if the
            architecture can do so and they are small enough.
        replies: for a text generator that classifies by its first word: the ids of the words that stand for its labels.
        bare: whether other files, such as those of sentence-transformers, say that only the encoder is meant. The
            weights may then have a head, which does not count.

    Raises:
        UnsupportedModel: the model type is not supported; the message names the supported ones.
        DamagedFile: a tensor is missing, its shape does not match the configuration, or nothing reads it.
    """
    wanted = WantedGraph(
        task or find_task(config.get("architectures")) or "embedding", padded, tabled, tuple(replies), bare
    )
    from onnx_from_checkpoints.weights import Weights

    architecture = find_architecture(config)
    if wanted.replies and not getattr(architecture, "WRITES_TEXT", False):
        raise UnsupportedModel(
            f"replies: a {config.get('model_type')} model writes no text, so it cannot classify by replies"
        )
    found = Weights(weights, architecture.KNOWN)
    if bare:
        found.pass_over_heads()
    model = architecture.build(Settings(config), found, wanted)
    found.refuse_unread()
    return model


def check_weights(files: Iterable[Path], index: Path | None, config: Mapping[str, Any], **wanted: Any) -> None:
    """Refuse what `build_graph` would refuse, by building from the names and shapes in the headers of the weights.

    Args:
        files: the safetensors files.
        index: the file that says which of them has which tensor, if there is one.
        config: config.json.
        wanted: further arguments of `build_graph`.

    Raises:
        UnsupportedModel: as `build_graph`.
        DamagedFile: as `build_graph` and `read_weights`.
    """
    from onnx_from_checkpoints.onnx_files import without_values
    from onnx_from_checkpoints.weights import read_weights

    with without_values():
        build_graph(config, read_weights(files, index, outlined=True), **wanted)
