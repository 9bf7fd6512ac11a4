"""CamemBERT: as XLM-RoBERTa, with five tokens of fairseq before the pieces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onnx_from_checkpoints.tokenizers.families.xlm_roberta import DEFAULTS, NEEDED, check_first, finish, make_template
from onnx_from_checkpoints.tokenizers.sentencepiece import make_tokenizer, read_sentencepiece
from onnx_from_checkpoints.tokenizers.special_tokens import TokenizerSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["CLASSES", "DEFAULTS", "FILES", "MODEL_TYPES", "NEEDED", "build", "make_template"]

FILES = ("sentencepiece.bpe.model",)
CLASSES = frozenset({"CamembertTokenizer"})
MODEL_TYPES = frozenset({"camembert"})

_FIRST = [("<s>NOTUSED", 0.0), ("<pad>", 0.0), ("</s>NOTUSED", 0.0), ("<unk>", 0.0), ("<unk>NOTUSED", -100.0)]
_UNKNOWN = 3


def build(paths: tuple[Path, ...], settings: TokenizerSettings) -> Tokenizer:
    """The tokenizer of a CamemBERT model."""
    model = read_sentencepiece(paths[0])
    check_first(model, ("<unk>", "<s>", "</s>"))
    tokenizer = make_tokenizer(model, [*_FIRST, *model.pieces[1:], ("<mask>", 0.0)], _UNKNOWN)
    finish(tokenizer, model, settings)
    return tokenizer
