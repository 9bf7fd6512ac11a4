"""RoBERTa: byte-level BPE over vocab.json and merges.txt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.tokenizers.special_tokens import SpecialToken, TokenizerSettings, add_special_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.processors import PostProcessor

FILES = ("vocab.json", "merges.txt")
CLASSES = frozenset({"BartTokenizer", "LongformerTokenizer", "RobertaTokenizer"})
MODEL_TYPES = frozenset({"roberta"})

DEFAULTS = {
    "bos_token": SpecialToken("<s>"),
    "eos_token": SpecialToken("</s>"),
    "unk_token": SpecialToken("<unk>"),
    "sep_token": SpecialToken("</s>"),
    "pad_token": SpecialToken("<pad>"),
    "cls_token": SpecialToken("<s>"),
    "mask_token": SpecialToken("<mask>", lstrip=True),
}
NEEDED = ("cls_token", "sep_token", "unk_token", "pad_token")


def build(paths: tuple[Path, ...], settings: TokenizerSettings) -> Tokenizer:
    """The tokenizer of a RoBERTa model, with the option `add_prefix_space`."""
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as ByteLevelDecoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    words, merges = paths
    try:
        vocabulary, pairs = BPE.read_file(str(words), str(merges))
        model = BPE(vocabulary, pairs, continuing_subword_prefix="", end_of_word_suffix="")
    except Exception as error:  # tokenizers raises a plain Exception
        raise DamagedFile(
            f"{words}: cannot be read as a vocabulary with the merges in {merges.name}: {error}"
        ) from error
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=settings.flag("add_prefix_space", False))
    tokenizer.decoder = ByteLevelDecoder()
    roles = add_special_tokens(tokenizer, words, settings, DEFAULTS, needed=NEEDED)
    tokenizer.post_processor = make_template(roles, settings)
    return tokenizer


def make_template(roles: Mapping[str, SpecialToken], settings: TokenizerSettings) -> PostProcessor:
    """RoBERTa's template, `<s> A </s></s> B </s>`."""
    from tokenizers.processors import RobertaProcessing

    spaced = settings.flag("add_prefix_space", False)
    return RobertaProcessing(
        roles["sep_token"].entry, roles["cls_token"].entry, trim_offsets=True, add_prefix_space=spaced
    )
