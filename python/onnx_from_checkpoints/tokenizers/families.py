"""The families of tokenizers that are built from a vocabulary: the files, special tokens and template of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.tokenizers import sentencepiece
from onnx_from_checkpoints.tokenizers.special_tokens import SpecialToken, TokenizerSettings, add_special_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Normalizer
    from tokenizers.pre_tokenizers import PreTokenizer
    from tokenizers.processors import PostProcessor

    Roles = Mapping[str, SpecialToken]
    Vocabulary = tuple[Tokenizer, Sequence[SpecialToken]]
    """A tokenizer without special tokens, and those that its vocabulary itself marks."""


@dataclass(frozen=True, slots=True)
class TokenizerFamily:
    """What the tokenizers of one family have in common.

    Attributes:
        files: the files that it reads.
        classes: the names of transformers' classes, without `Fast`.
        model_types: the `model_type`s of config.json that use this family if no file names a class.
        defaults: the special tokens by role, such as `cls_token`; a model's files may name others.
        needed: the roles without which a model of the family cannot be used.
        read: reads `files`, which exist.
        make_template: what puts the special tokens of the roles, all with their ids, around a text and between two.
    """

    files: Sequence[str]
    classes: Collection[str]
    model_types: Collection[str]
    defaults: Mapping[str, SpecialToken]
    needed: Sequence[str]
    read: Callable[[Sequence[Path], TokenizerSettings], Vocabulary]
    make_template: Callable[[Roles, TokenizerSettings], PostProcessor]

    def build(self, folder: Path, settings: TokenizerSettings) -> Tokenizer:
        """The tokenizer from `files` in the folder, which exist."""
        paths = [folder / name for name in self.files]
        tokenizer, own = self.read(paths, settings)
        roles = add_special_tokens(tokenizer, paths[0], settings, self.defaults, needed=self.needed, own=own)
        tokenizer.post_processor = self.make_template(roles, settings)
        return tokenizer


def _read_words(paths: Sequence[Path], settings: TokenizerSettings) -> Vocabulary:
    """WordPiece over the lines of vocab.txt; tokenizer_config.json says whether to lowercase and strip accents."""
    from tokenizers import Tokenizer
    from tokenizers.decoders import WordPiece as WordPieceDecoder
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    try:
        vocabulary = WordPiece.read_file(str(paths[0]))
    except Exception as error:  # tokenizers raises a plain Exception
        raise DamagedFile(f"{paths[0]}: cannot be read as a vocabulary with one token a line: {error}") from error
    unknown = settings.role("unk_token", _BERT_TOKENS["unk_token"])
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token=unknown.content if unknown else "[UNK]"))
    tokenizer.normalizer = BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.config.flag("tokenize_chinese_chars", True),
        strip_accents=settings.config.optional("strip_accents", bool, "true or false"),
        lowercase=settings.config.flag("do_lower_case", True),
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = WordPieceDecoder(prefix="##")
    return tokenizer, ()


def _read_bytes(paths: Sequence[Path], settings: TokenizerSettings) -> Vocabulary:
    """Byte-level BPE over vocab.json and merges.txt, with the option `add_prefix_space`."""
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
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=settings.config.flag("add_prefix_space", False))
    tokenizer.decoder = ByteLevelDecoder()
    return tokenizer, ()


def _read_deberta(paths: Sequence[Path], settings: TokenizerSettings) -> Vocabulary:
    """Ids as in the SentencePiece model, and the options `do_lower_case` and `split_by_punct`.

    The result is the tokenizer.json that transformers 4 writes, and that most repositories of such models hold. Version
    5 ignores the model's rules of normalisation when it reads these files.
    """
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    model = sentencepiece.read_sentencepiece(paths[0])
    tokenizer = sentencepiece.make_tokenizer(model, model.pieces, model.unknown)
    lower: list[Normalizer] = [normalizers.Lowercase()] if settings.config.flag("do_lower_case", False) else []
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence(
        [*lower, normalizers.Strip(), *sentencepiece.make_charsmap(model), spaces]
    )
    scheme = "always" if settings.config.flag("add_prefix_space", True) else "first"
    split: list[PreTokenizer] = (
        [pre_tokenizers.Punctuation("isolated")] if settings.config.flag("split_by_punct", False) else []
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split, pre_tokenizers.Metaspace(sentencepiece.SPACE, scheme)])
    tokenizer.decoder = decoders.Metaspace(sentencepiece.SPACE, scheme)
    return tokenizer, sentencepiece.list_own(model)


_FAIRSEQ_UNKNOWN = 3
_CAMEMBERT_FIRST = [
    ("<s>NOTUSED", 0.0), ("<pad>", 0.0), ("</s>NOTUSED", 0.0), ("<unk>", 0.0), ("<unk>NOTUSED", -100.0),
]  # fmt: skip


def _read_xlm_roberta(paths: Sequence[Path], settings: TokenizerSettings) -> Vocabulary:
    """Pieces in fairseq's order of ids, which put <pad> among the first and <mask> last."""
    model = _read_fairseq(paths[0])
    roles = ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token")
    defaults = [_ROBERTA_TOKENS[key] for key in roles]
    tokens = [settings.role(key, default) or default for key, default in zip(roles, defaults, strict=True)]
    *first, mask = [(token.content, 0.0) for token in tokens]
    tokenizer = sentencepiece.make_tokenizer(model, [*first, *model.pieces[3:], mask], _FAIRSEQ_UNKNOWN)
    return _split_at_spaces(tokenizer, model, "always" if settings.config.flag("add_prefix_space", True) else "never")


def _read_camembert(paths: Sequence[Path], settings: TokenizerSettings) -> Vocabulary:
    """As XLM-RoBERTa, with five tokens of fairseq before the pieces."""
    model = _read_fairseq(paths[0])
    pieces = [*_CAMEMBERT_FIRST, *model.pieces[1:], ("<mask>", 0.0)]
    tokenizer = sentencepiece.make_tokenizer(model, pieces, _FAIRSEQ_UNKNOWN)
    return _split_at_spaces(tokenizer, model, "always" if settings.config.flag("add_prefix_space", True) else "never")


def _read_t5(paths: Sequence[Path], settings: TokenizerSettings) -> Vocabulary:
    """The pieces, then as many sentinels as `extra_ids` says, by default <extra_id_99> to <extra_id_0>."""
    model = sentencepiece.read_sentencepiece(paths[0])
    sentinels = [f"<extra_id_{number}>" for number in reversed(range(settings.config.whole("extra_ids", 100, least=0)))]
    known = {piece for piece, _ in model.pieces}
    further = [(name, 0.0) for name in sentinels if name not in known]
    tokenizer = sentencepiece.make_tokenizer(model, [*model.pieces, *further], model.unknown)
    tokenizer, own = _split_at_spaces(tokenizer, model, "always")
    return tokenizer, [*own, *map(SpecialToken, sentinels)]


def _read_fairseq(path: Path) -> sentencepiece.SentencePieceModel:
    """The model, if its first pieces are those that fairseq reads; with others, its ids would be shifted."""
    model, wanted = sentencepiece.read_sentencepiece(path), ("<unk>", "<s>", "</s>")
    found = tuple(piece for piece, _ in model.pieces[: len(wanted)])
    if found != wanted:
        raise DamagedFile(
            f"{model.path}: its first pieces are {', '.join(found)}, but those of a model of this kind are "
            f"{', '.join(wanted)}; the files belong to different models"
        )
    return model


def _split_at_spaces(tokenizer: Tokenizer, model: sentencepiece.SentencePieceModel, scheme: str) -> Vocabulary:
    """Add the normalisation, and the spaces that pieces begin with."""
    from tokenizers import decoders, normalizers, pre_tokenizers

    tokenizer.normalizer = normalizers.Sequence(sentencepiece.make_charsmap(model))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(sentencepiece.SPACE, scheme)]
    )
    tokenizer.decoder = decoders.Metaspace(sentencepiece.SPACE, scheme)
    return tokenizer, sentencepiece.list_own(model)


def _frame(single: str, second: str) -> Callable[[Roles, TokenizerSettings], PostProcessor]:
    """A template of one text, and of what a second one adds; both name special tokens by their roles."""

    def make(roles: Roles, _: TokenizerSettings) -> PostProcessor:
        from tokenizers.processors import TemplateProcessing

        contents = {key: token.content for key, token in roles.items()}
        one = single.format_map(contents)
        named = [token.entry for key, token in roles.items() if f"{{{key}}}" in single]
        return TemplateProcessing(single=one, pair=f"{one} {second.format_map(contents)}", special_tokens=named)

    return make


_FRAME_BERT = _frame("{cls_token}:0 $A:0 {sep_token}:0", "$B:1 {sep_token}:1")
_FRAME_XLM_ROBERTA = _frame("{bos_token} $A {eos_token}", "{eos_token} $B {eos_token}")


def _frame_roberta(roles: Roles, settings: TokenizerSettings) -> PostProcessor:
    """`<s> A </s></s> B </s>`."""
    return _frame_mpnet(roles, settings, spaced=settings.config.flag("add_prefix_space", False))


def _frame_mpnet(roles: Roles, _: TokenizerSettings, *, spaced: bool = False) -> PostProcessor:
    from tokenizers.processors import RobertaProcessing

    start, end = roles["cls_token"], roles["sep_token"]
    return RobertaProcessing(end.entry, start.entry, trim_offsets=True, add_prefix_space=spaced)


_BERT_TOKENS = {
    "unk_token": SpecialToken("[UNK]"),
    "sep_token": SpecialToken("[SEP]"),
    "pad_token": SpecialToken("[PAD]"),
    "cls_token": SpecialToken("[CLS]"),
    "mask_token": SpecialToken("[MASK]"),
}
_ROBERTA_TOKENS = {
    "bos_token": SpecialToken("<s>"),
    "eos_token": SpecialToken("</s>"),
    "unk_token": SpecialToken("<unk>"),
    "sep_token": SpecialToken("</s>"),
    "pad_token": SpecialToken("<pad>"),
    "cls_token": SpecialToken("<s>"),
    "mask_token": SpecialToken("<mask>", lstrip=True),
}
_FRAMED = ("cls_token", "sep_token", "unk_token", "pad_token")
_FAIRSEQ_NEEDED = ("bos_token", "eos_token", "unk_token", "pad_token")

BERT = TokenizerFamily(
    files=("vocab.txt",),
    classes={"BertTokenizer", "ConvBertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer"},
    model_types={"bert", "convbert", "distilbert", "electra", "mobilebert", "nomic_bert"},
    defaults=_BERT_TOKENS,
    needed=_FRAMED,
    read=_read_words,
    make_template=_FRAME_BERT,
)
MPNET = TokenizerFamily(
    files=("vocab.txt",),
    classes={"MPNetTokenizer"},
    model_types={"mpnet"},
    defaults=_ROBERTA_TOKENS | {"unk_token": SpecialToken("[UNK]")},
    needed=_FRAMED,
    read=_read_words,
    make_template=_frame_mpnet,
)
ROBERTA = TokenizerFamily(
    files=("vocab.json", "merges.txt"),
    classes={"BartTokenizer", "LongformerTokenizer", "RobertaTokenizer"},
    model_types={"roberta"},
    defaults=_ROBERTA_TOKENS,
    needed=_FRAMED,
    read=_read_bytes,
    make_template=_frame_roberta,
)
DEBERTA = TokenizerFamily(
    files=("spm.model",),
    classes={"DebertaV2Tokenizer"},
    model_types={"deberta-v2"},
    defaults=_BERT_TOKENS
    | {
        "bos_token": SpecialToken("[CLS]"),
        "eos_token": SpecialToken("[SEP]"),
        "unk_token": SpecialToken("[UNK]", normalized=True),
    },
    needed=_FRAMED,
    read=_read_deberta,
    make_template=_FRAME_BERT,
)
XLM_ROBERTA = TokenizerFamily(
    files=("sentencepiece.bpe.model",),
    classes={"XLMRobertaTokenizer"},
    model_types={"xlm-roberta"},
    defaults=_ROBERTA_TOKENS,
    needed=_FAIRSEQ_NEEDED,
    read=_read_xlm_roberta,
    make_template=_FRAME_XLM_ROBERTA,
)
CAMEMBERT = TokenizerFamily(
    files=("sentencepiece.bpe.model",),
    classes={"CamembertTokenizer"},
    model_types={"camembert"},
    defaults=_ROBERTA_TOKENS,
    needed=_FAIRSEQ_NEEDED,
    read=_read_camembert,
    make_template=_FRAME_XLM_ROBERTA,
)
T5 = TokenizerFamily(
    files=("spiece.model",),
    classes={"T5Tokenizer"},
    model_types={"mt5", "t5"},
    defaults={
        "eos_token": SpecialToken("</s>"),
        "unk_token": SpecialToken("<unk>"),
        "pad_token": SpecialToken("<pad>"),
    },
    needed=("eos_token", "unk_token", "pad_token"),
    read=_read_t5,
    make_template=_frame("$A {eos_token}", "$B {eos_token}"),
)
FAMILIES = (BERT, MPNET, ROBERTA, DEBERTA, XLM_ROBERTA, CAMEMBERT, T5)
