"""DeBERTa-v2, DeBERTa-v3 and mDeBERTa: SentencePiece pieces, ids as in the model, [MASK] after the last one.

The result is the tokenizer.json that transformers 4 writes, and that most repositories of such models hold. Version 5
ignores the model's rules of normalisation when it reads these files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onnx_from_checkpoints.tokenizers import sentencepiece
from onnx_from_checkpoints.tokenizers.special_tokens import SpecialToken, TokenizerSettings, add_special_tokens, frame

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Normalizer
    from tokenizers.pre_tokenizers import PreTokenizer
    from tokenizers.processors import PostProcessor

FILES = ("spm.model",)
CLASSES = frozenset({"DebertaV2Tokenizer"})
MODEL_TYPES = frozenset({"deberta-v2"})

DEFAULTS = {
    "bos_token": SpecialToken("[CLS]"),
    "eos_token": SpecialToken("[SEP]"),
    "unk_token": SpecialToken("[UNK]", normalized=True),
    "sep_token": SpecialToken("[SEP]"),
    "pad_token": SpecialToken("[PAD]"),
    "cls_token": SpecialToken("[CLS]"),
    "mask_token": SpecialToken("[MASK]"),
}
NEEDED = ("cls_token", "sep_token", "unk_token", "pad_token")


def build(paths: tuple[Path, ...], settings: TokenizerSettings) -> Tokenizer:
    """The tokenizer of a DeBERTa-v2 or -v3 model, with the options `do_lower_case` and `split_by_punct`."""
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    model = sentencepiece.read_sentencepiece(paths[0])
    tokenizer = sentencepiece.make_tokenizer(model, model.pieces, model.unknown)
    lower: list[Normalizer] = [normalizers.Lowercase()] if settings.flag("do_lower_case", False) else []
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence(
        [*lower, normalizers.Strip(), *sentencepiece.make_charsmap(model), spaces]
    )
    scheme = "always" if settings.flag("add_prefix_space", True) else "first"
    split: list[PreTokenizer] = (
        [pre_tokenizers.Punctuation("isolated")] if settings.flag("split_by_punct", False) else []
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split, pre_tokenizers.Metaspace(sentencepiece.SPACE, scheme)])
    tokenizer.decoder = decoders.Metaspace(sentencepiece.SPACE, scheme)

    roles = add_special_tokens(
        tokenizer, model.path, settings, DEFAULTS, needed=NEEDED, own=sentencepiece.list_own(model)
    )
    tokenizer.post_processor = make_template(roles, settings)
    return tokenizer


def make_template(roles: Mapping[str, SpecialToken], settings: TokenizerSettings) -> PostProcessor:  # noqa: ARG001 - as all families
    """BERT's template."""
    return frame(roles["cls_token"], roles["sep_token"])
