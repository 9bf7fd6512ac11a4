"""XLM-RoBERTa: SentencePiece pieces in fairseq's order of ids, which put <pad> among the first and <mask> last."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.tokenizers import sentencepiece
from onnx_from_checkpoints.tokenizers.special_tokens import SpecialToken, TokenizerSettings, add_special_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.processors import PostProcessor

FILES = ("sentencepiece.bpe.model",)
CLASSES = frozenset({"XLMRobertaTokenizer"})
MODEL_TYPES = frozenset({"xlm-roberta"})

DEFAULTS = {
    "bos_token": SpecialToken("<s>"),
    "eos_token": SpecialToken("</s>"),
    "unk_token": SpecialToken("<unk>"),
    "sep_token": SpecialToken("</s>"),
    "pad_token": SpecialToken("<pad>"),
    "cls_token": SpecialToken("<s>"),
    "mask_token": SpecialToken("<mask>", lstrip=True),
}
NEEDED = ("bos_token", "eos_token", "unk_token", "pad_token")
_FIRST = ("<unk>", "<s>", "</s>")
"""The first pieces of the SentencePiece models that fairseq reads."""
_UNKNOWN = 3


def build(paths: tuple[Path, ...], settings: TokenizerSettings) -> Tokenizer:
    """The tokenizer of an XLM-RoBERTa model."""
    model = sentencepiece.read_sentencepiece(paths[0])
    check_first(model, _FIRST)
    names = [_name(settings, key) for key in ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token")]
    *first, mask = [(name, 0.0) for name in names]
    tokenizer = sentencepiece.make_tokenizer(model, [*first, *model.pieces[len(_FIRST) :], mask], _UNKNOWN)
    finish(tokenizer, model, settings)
    return tokenizer


def check_first(model: sentencepiece.SentencePieceModel, wanted: tuple[str, ...]) -> None:
    """Refuse a model whose first pieces are others: its ids would be shifted."""
    found = tuple(piece for piece, _ in model.pieces[: len(wanted)])
    if found != wanted:
        raise DamagedFile(
            f"{model.path}: its first pieces are {', '.join(found)}, but those of a model of this kind are "
            f"{', '.join(wanted)}; the files belong to different models"
        )


def finish(tokenizer: Tokenizer, model: sentencepiece.SentencePieceModel, settings: TokenizerSettings) -> None:
    """Add the normalisation, the special tokens and the template."""
    from tokenizers import decoders, normalizers, pre_tokenizers

    tokenizer.normalizer = normalizers.Sequence(sentencepiece.make_charsmap(model))
    scheme = "always" if settings.flag("add_prefix_space", True) else "never"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(sentencepiece.SPACE, scheme)]
    )
    tokenizer.decoder = decoders.Metaspace(sentencepiece.SPACE, scheme)
    roles = add_special_tokens(
        tokenizer, model.path, settings, DEFAULTS, needed=NEEDED, own=sentencepiece.list_own(model)
    )
    tokenizer.post_processor = make_template(roles, settings)


def make_template(roles: Mapping[str, SpecialToken], settings: TokenizerSettings) -> PostProcessor:  # noqa: ARG001 - as all families
    """`<s> A </s></s> B </s>`, all of type 0."""
    from tokenizers.processors import TemplateProcessing

    start, end = roles["bos_token"], roles["eos_token"]
    single = f"{start.content} $A {end.content}"
    return TemplateProcessing(
        single=single, pair=f"{single} {end.content} $B {end.content}", special_tokens=[start.entry, end.entry]
    )


def _name(settings: TokenizerSettings, key: str) -> str:
    token = settings.role(key, DEFAULTS[key])
    return (token or DEFAULTS[key]).content
