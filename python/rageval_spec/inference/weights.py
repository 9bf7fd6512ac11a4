"""Reads a model's tensors by their names in its architecture, and checks their shapes against config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rageval_spec.inference.checkpoint_errors import DamagedFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class Weights:
    """Tensors by name. The prefix that models with a head put before their encoder's names is left out."""

    _OLD_NAMES = ((".LayerNorm.weight", ".LayerNorm.gamma"), (".LayerNorm.bias", ".LayerNorm.beta"))

    def __init__(self, tensors: Mapping[str, NDArray[Any]], known: str = "embeddings.word_embeddings.weight") -> None:
        """Find the prefix from the full name of the tensor `known`, which every model of the architecture has."""
        self._tensors = tensors
        found = sorted(name.removesuffix(known) for name in tensors if name.endswith(known))
        self._prefix = found[0] if found else ""
        self._read_names: set[str] = set()

    def read(self, name: str, *shape: int | None) -> Array:
        """A tensor of the encoder as float32; None in `shape` allows any size.

        Raises:
            DamagedFile: the tensor is missing, has a different shape, or does not hold floating-point numbers.
        """
        return self._read(self._prefix + name, shape)

    def size(self, name: str, dimensions: int) -> tuple[int, ...]:
        """The shape of a tensor of the encoder, where config.json does not say it.

        Raises:
            DamagedFile: the tensor is missing, or has another number of dimensions.
        """
        return self.read(name, *[None] * dimensions).shape

    def count_layers(self, layer: str) -> int:
        """The number of layers; `layer` is the prefix of a layer's tensors, with `{}` for its number."""
        start = self._prefix + layer.partition("{}")[0]
        numbers = {name.removeprefix(start).partition(".")[0] for name in self._tensors if name.startswith(start)}
        return max((int(number) + 1 for number in numbers if number.isdecimal()), default=0)

    def refuse_layers(self, layer: str, count: int) -> None:
        """Refuse weights with more layers than config.json has: the model would run without them.

        Args:
            layer: the prefix of a layer's tensors, with `{}` for its number.
            count: the number of layers in config.json.

        Raises:
            DamagedFile: a tensor belongs to layer `count` (counted from 0) or a later one.
        """
        most = self.count_layers(layer)
        if most > count:
            start = self._prefix + layer.partition("{}")[0]
            raise DamagedFile(f"the weights have {most} layers ('{start}{most - 1}'), but config.json has {count}")

    def has(self, name: str) -> bool:
        """Whether the encoder has a tensor of this name."""
        return self._prefix + name in self._tensors

    def refuse_unread(self, *starts: str, heads: tuple[str, ...] = ()) -> None:
        """Refuse tensors that nothing has read: the model would run without them.

        Args:
            starts: the beginnings of the names of the encoder's tensors that count.
            heads: the same for a classifier's, whose names have no prefix.

        Raises:
            DamagedFile: there is such a tensor; buffers that are computed or hold no floats do not count.
        """
        counted = (*(self._prefix + start for start in starts), *heads)
        for name in sorted(self._tensors.keys() - self._read_names):
            if not name.startswith(counted) or name.endswith("inv_freq"):
                continue
            if self._tensors[name].dtype.kind == "f":
                raise DamagedFile(f"the weights have a tensor '{name}', but a model with this config.json has none")

    def read_head(self, name: str, *shape: int | None) -> Array:
        """A tensor of the classifier, whose names have no prefix; otherwise like `read`."""
        return self._read(name, shape)

    def read_linear(self, name: str, inputs: int, outputs: int) -> tuple[Array, Array]:
        """The weight [inputs, outputs], to multiply from the right, and the bias [outputs]."""
        return self.read(f"{name}.weight", outputs, inputs).T, self.read(f"{name}.bias", outputs)

    def _read(self, name: str, shape: tuple[int | None, ...]) -> Array:
        expected = list(shape)
        stored = self._find(name)
        tensor = self._tensors.get(stored)
        if tensor is None:
            needed = "" if None in expected else f", which must have the shape {expected} according to config.json"
            raise DamagedFile(
                f"the weights have no tensor '{name}'{needed}; use weights and a config.json of one model"
            )
        fits = len(tensor.shape) == len(shape) and all(
            wanted in (None, size) for wanted, size in zip(shape, tensor.shape, strict=True)
        )
        if not fits:
            raise DamagedFile(
                f"the tensor '{name}' has the shape {list(tensor.shape)}, but must have {expected} according to "
                "config.json"
            )
        if tensor.dtype.kind != "f":
            raise DamagedFile(f"the tensor '{name}' holds {tensor.dtype}, not floating-point numbers")
        self._read_names.add(stored)
        return tensor.astype(np.float32, copy=False)

    def _find(self, name: str) -> str:
        """The name under which the file has the tensor: old checkpoints name the tensors of norms differently."""
        if name in self._tensors:
            return name
        others = (name.removesuffix(new) + old for new, old in self._OLD_NAMES if name.endswith(new))
        return next((other for other in others if other in self._tensors), name)
