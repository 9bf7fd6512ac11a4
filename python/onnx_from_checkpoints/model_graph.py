"""Builds the ONNX graph of a model from its weights and `config.json`, by the module of its architecture."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from onnx_from_checkpoints import architectures
from onnx_from_checkpoints.architectures.shared.contract import Architecture, WantedGraph
from onnx_from_checkpoints.configuration import Task, find_task
from onnx_from_checkpoints.errors import UnsupportedModel

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray


@cache
def list_architectures() -> Mapping[str, Architecture]:
    """The modules in `architectures`, by each `model_type` that they build, sorted."""
    names = (module.name for module in pkgutil.iter_modules(architectures.__path__) if not module.ispkg)
    modules = [cast("Architecture", import_module(f"{architectures.__name__}.{name}")) for name in names]
    found = {model_type: module for module in modules for model_type in module.MODEL_TYPES}
    return MappingProxyType(dict(sorted(found.items())))


def find_architecture(config: Mapping[str, Any]) -> Architecture:
    """The module that builds graphs of this model type.

    Raises:
        UnsupportedModel: there is none; the message names the supported model types.
    """
    model_type, known = config.get("model_type"), list_architectures()
    if not isinstance(model_type, str) or model_type not in known:
        found = "has no model_type" if model_type is None else f"is not an encoder that can be built: {model_type}"
        raise UnsupportedModel(
            f"{found}; use a model with an .onnx file, or whose model_type is one of {', '.join(known)}"
        )
    return known[model_type]


def build_graph(
    config: Mapping[str, Any],
    weights: Mapping[str, NDArray[Any]],
    *,
    task: Task | None = None,
    padded: bool = False,
    tabled: bool = False,
    replies: Sequence[int] = (),
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

    Raises:
        UnsupportedModel: the model type is not supported; the message names the supported ones.
        DamagedFile: a tensor is missing, or its shape does not match the configuration.
    """
    wanted = WantedGraph(task or find_task(config.get("architectures")) or "embedding", padded, tabled, tuple(replies))
    architecture = find_architecture(config)
    if wanted.replies and not getattr(architecture, "WRITES_TEXT", False):
        raise UnsupportedModel(
            f"replies: a {config.get('model_type')} model writes no text, so it cannot classify by replies"
        )
    return architecture.build(config, weights, wanted)
