"""MPNet: BERT's words with RoBERTa's special tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onnx_from_checkpoints.tokenizers.families.bert import read_words
from onnx_from_checkpoints.tokenizers.special_tokens import SpecialToken, TokenizerSettings, add_special_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.processors import PostProcessor

FILES = ("vocab.txt",)
CLASSES = frozenset({"MPNetTokenizer"})
MODEL_TYPES = frozenset({"mpnet"})

DEFAULTS = {
    "bos_token": SpecialToken("<s>"),
    "eos_token": SpecialToken("</s>"),
    "unk_token": SpecialToken("[UNK]"),
    "sep_token": SpecialToken("</s>"),
    "pad_token": SpecialToken("<pad>"),
    "cls_token": SpecialToken("<s>"),
    "mask_token": SpecialToken("<mask>", lstrip=True),
}
NEEDED = ("cls_token", "sep_token", "unk_token", "pad_token")


def build(paths: tuple[Path, ...], settings: TokenizerSettings) -> Tokenizer:
    """The tokenizer of an MPNet model."""
    tokenizer = read_words(paths[0], settings, DEFAULTS)
    roles = add_special_tokens(tokenizer, paths[0], settings, DEFAULTS, needed=NEEDED)
    tokenizer.post_processor = make_template(roles, settings)
    return tokenizer


def make_template(roles: Mapping[str, SpecialToken], settings: TokenizerSettings) -> PostProcessor:  # noqa: ARG001 - as all families
    """RoBERTa's template, `<s> A </s></s> B </s>`."""
    from tokenizers.processors import RobertaProcessing

    return RobertaProcessing(
        roles["sep_token"].entry, roles["cls_token"].entry, trim_offsets=True, add_prefix_space=False
    )
