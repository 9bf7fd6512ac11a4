"""The models that systems on the command line name, as blocks under `models:`."""

from __future__ import annotations

import re
from pathlib import Path

from rageval_spec.commands.benchmark.pieces import Piece, make_block, name_after, refuse, write_text
from rageval_spec.diagnostics import suggest
from rageval_spec.spec.places import quote
from rageval_spec.spec.reading import YamlEntry, YamlScalar

_EMBEDDED = "minilm"
_MODEL_PLUGIN = "onnx"
_PARTS_OF_MODELS = re.compile(r"model.*|onnx|snapshots|[0-9a-f]{40}")


class Models:
    """The blocks under `models:`, one for each model that a system names."""

    def __init__(self) -> None:
        self.blocks: dict[str, YamlEntry] = {}
        self._names: dict[str, str] = {}

    def name(self, piece: Piece) -> str:
        """The name in the spec of a model that is given as `minilm`, a hub id, a folder or an `.onnx` file."""
        text = piece.text
        if text == _EMBEDDED:
            return text
        if text not in self._names:
            self._check(piece)
            self._names[text] = name = self._free_name(describe_model(text))
            use = YamlScalar(piece.place, _MODEL_PLUGIN, _MODEL_PLUGIN)
            block = make_block(piece.place, {"use": use, "model": write_text(piece.place, text)})
            self.blocks[name] = YamlEntry(piece.place, block)
        return self._names[text]

    def _check(self, piece: Piece) -> None:
        text = piece.text
        forms = f"a model is {_EMBEDDED}, a hub id such as intfloat/e5-small-v2, a folder, or an .onnx file"
        if not text:
            refuse(piece, "the name of a model is missing", forms)
        is_path = Path(text).expanduser().exists()
        if text.lower().endswith(".onnx") and not is_path:
            refuse(piece, f"there is no file {quote(text)}", None)
        if "/" not in text and not is_path:
            refuse(piece, f"there is no model {quote(text)}", suggest(text, [_EMBEDDED]) or forms)

    def _free_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.blocks or name == _EMBEDDED:
            number += 1
            name = f"{wanted}-{number}"
        return name


def describe_model(text: str) -> str:
    """The part of a model's id or path that people know it by."""
    parts = [part.removesuffix(".onnx") for part in Path(text).parts]
    telling = [part for part in parts if not _PARTS_OF_MODELS.fullmatch(part) and name_after(part)]
    return name_after(telling[-1] if telling else parts[-1]) or "model"
