"""T5 and FLAN-T5: SentencePiece pieces, then the sentinels <extra_id_99> to <extra_id_0>, and </s> after each text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onnx_from_checkpoints.tokenizers import sentencepiece
from onnx_from_checkpoints.tokenizers.special_tokens import SpecialToken, TokenizerSettings, add_special_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.processors import PostProcessor

FILES = ("spiece.model",)
CLASSES = frozenset({"T5Tokenizer"})
MODEL_TYPES = frozenset({"mt5", "t5"})

DEFAULTS = {"eos_token": SpecialToken("</s>"), "unk_token": SpecialToken("<unk>"), "pad_token": SpecialToken("<pad>")}
NEEDED = ("eos_token", "unk_token", "pad_token")
_SENTINELS = 100


def build(paths: tuple[Path, ...], settings: TokenizerSettings) -> Tokenizer:
    """The tokenizer of a T5 model, with as many sentinels as `extra_ids` says."""
    from tokenizers import decoders, normalizers, pre_tokenizers

    model = sentencepiece.read_sentencepiece(paths[0])
    sentinels = [f"<extra_id_{number}>" for number in range(settings.count("extra_ids", _SENTINELS) - 1, -1, -1)]
    known = {piece for piece, _ in model.pieces}
    further = [(name, 0.0) for name in sentinels if name not in known]
    tokenizer = sentencepiece.make_tokenizer(model, [*model.pieces, *further], model.unknown)
    tokenizer.normalizer = normalizers.Sequence(sentencepiece.make_charsmap(model))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(sentencepiece.SPACE, "always")]
    )
    tokenizer.decoder = decoders.Metaspace(sentencepiece.SPACE, "always")
    own = [*sentencepiece.list_own(model), *map(SpecialToken, sentinels)]
    roles = add_special_tokens(tokenizer, model.path, settings, DEFAULTS, needed=NEEDED, own=own)
    tokenizer.post_processor = make_template(roles, settings)
    return tokenizer


def make_template(roles: Mapping[str, SpecialToken], settings: TokenizerSettings) -> PostProcessor:  # noqa: ARG001 - as all families
    """`A </s> B </s>`."""
    from tokenizers.processors import TemplateProcessing

    end = roles["eos_token"]
    return TemplateProcessing(
        single=f"$A {end.content}", pair=f"$A {end.content} $B {end.content}", special_tokens=[end.entry]
    )
