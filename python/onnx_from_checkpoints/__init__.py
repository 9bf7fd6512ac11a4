"""ONNX graphs and tokenizers from the files of a checkpoint, without torch. The package knows nothing of evaluations.

Functions and classes for every program:

- `read_configuration` reads config.json and the files of sentence-transformers beside it as a `Configuration`.
- `read_weights` opens safetensors files or an E5S1 file; a tensor is read when it is needed.
- `read_e5s1` reads such a file, which has a model with weights of 4 bits, its configuration and its tokenizer.
- `build_graph` makes an ONNX graph of them; inside of `written_beside`, large weights go straight to a file.
- `read_tokenizer` reads tokenizer.json, or builds the tokenizer from a vocabulary.
- `quantize` writes a graph with int8 weights.
- `list_architectures` has every `model_type` that can be built, and `check_buildable` refuses any other early.
- `CheckpointError` is the base of `UnsupportedModel` and `DamagedFile`.

The other names are for programs that manage models themselves, such as rageval-spec, which uses no name but these.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from onnx_from_checkpoints.configuration import (
    CONFIGURATION_FILES,
    MODULES,
    NEEDS_REPLIES,
    Configuration,
    DenseLayer,
    FilledPair,
    PairFormat,
    Span,
    Task,
    find_task,
    parse_template,
    read_configuration,
    read_prefix,
    writes_text,
)
from onnx_from_checkpoints.e5s1 import E5File, read_e5s1
from onnx_from_checkpoints.errors import OTHER_READER, CheckpointError, DamagedFile, UnsupportedModel
from onnx_from_checkpoints.model_graph import (
    build_graph,
    check_buildable,
    check_weights,
    find_architecture,
    find_code,
    has_foreign_code,
    list_architectures,
)
from onnx_from_checkpoints.settings import load_json

if TYPE_CHECKING:
    from onnx_from_checkpoints.onnx_files import find_external_data, is_quantized, save_whole, written_beside
    from onnx_from_checkpoints.quantization import quantize, read_unsigned
    from onnx_from_checkpoints.tokenizers.tokenizer_loading import TOKENIZER, read_tokenizer, tame_forks
    from onnx_from_checkpoints.weights import Tensors, read_weights

__version__ = "0.1.0"

_LATE: Mapping[str, tuple[str, ...]] = {
    "onnx_files": ("find_external_data", "is_quantized", "save_whole", "written_beside"),
    "quantization": ("quantize", "read_unsigned"),
    "tokenizers.tokenizer_loading": ("TOKENIZER", "read_tokenizer", "tame_forks"),
    "weights": ("Tensors", "read_weights"),
}
"""The names of modules that import numpy or onnx, or that are needed only to run or write a graph."""
__all__ = [
    "CONFIGURATION_FILES", "MODULES", "NEEDS_REPLIES", "OTHER_READER", "TOKENIZER", "CheckpointError",
    "Configuration", "DamagedFile", "DenseLayer", "E5File", "FilledPair", "PairFormat", "Span", "Task", "Tensors",
    "UnsupportedModel", "__version__", "build_graph", "check_buildable", "check_weights", "find_architecture",
    "find_code", "find_external_data", "find_task", "has_foreign_code", "is_quantized", "list_architectures",
    "load_json", "parse_template", "quantize", "read_configuration", "read_e5s1", "read_prefix", "read_tokenizer",
    "read_unsigned", "read_weights", "save_whole", "tame_forks", "writes_text", "written_beside",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what needs numpy or onnx when it is first used, so that importing the package costs next to nothing."""
    for module, names in _LATE.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
