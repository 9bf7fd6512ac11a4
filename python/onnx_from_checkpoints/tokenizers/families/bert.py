"""BERT, ELECTRA, DistilBERT, MobileBERT and nomic-bert: WordPiece over the lines of vocab.txt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.tokenizers.special_tokens import SpecialToken, TokenizerSettings, add_special_tokens, frame

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.processors import PostProcessor

FILES = ("vocab.txt",)
CLASSES = frozenset(
    {"BertTokenizer", "ConvBertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer"}
)
MODEL_TYPES = frozenset({"bert", "convbert", "distilbert", "electra", "mobilebert", "nomic_bert"})

DEFAULTS = {
    "unk_token": SpecialToken("[UNK]"),
    "sep_token": SpecialToken("[SEP]"),
    "pad_token": SpecialToken("[PAD]"),
    "cls_token": SpecialToken("[CLS]"),
    "mask_token": SpecialToken("[MASK]"),
}
NEEDED = ("cls_token", "sep_token", "unk_token", "pad_token")


def build(paths: tuple[Path, ...], settings: TokenizerSettings) -> Tokenizer:
    """The tokenizer of a BERT model."""
    tokenizer = read_words(paths[0], settings, DEFAULTS)
    roles = add_special_tokens(tokenizer, paths[0], settings, DEFAULTS, needed=NEEDED)
    tokenizer.post_processor = make_template(roles, settings)
    return tokenizer


def make_template(roles: Mapping[str, SpecialToken], settings: TokenizerSettings) -> PostProcessor:  # noqa: ARG001 - as all families
    """BERT's template."""
    return frame(roles["cls_token"], roles["sep_token"])


def read_words(path: Path, settings: TokenizerSettings, defaults: Mapping[str, SpecialToken]) -> Tokenizer:
    """A WordPiece tokenizer, which splits, strips accents and lowercases as tokenizer_config.json says.

    Raises:
        DamagedFile: the file is not UTF-8, or cannot be read.
    """
    from tokenizers import Tokenizer
    from tokenizers.decoders import WordPiece as WordPieceDecoder
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    try:
        vocabulary = WordPiece.read_file(str(path))
    except Exception as error:  # tokenizers raises a plain Exception
        raise DamagedFile(f"{path}: cannot be read as a vocabulary with one token a line: {error}") from error
    unknown = settings.role("unk_token", defaults["unk_token"])
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token=unknown.content if unknown else "[UNK]"))
    tokenizer.normalizer = BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.flag("tokenize_chinese_chars", True),
        strip_accents=settings.optional_flag("strip_accents"),
        lowercase=settings.flag("do_lower_case", True),
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = WordPieceDecoder(prefix="##")
    return tokenizer
