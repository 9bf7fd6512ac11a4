"""Makes of a tokenizer.json what transformers 5 makes of it with the files beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.tokenizing import mpnet, roberta, wordpiece
from rageval_spec.inference.tokenizing.families import GENERIC, Family, find_family
from rageval_spec.inference.tokenizing.settings import Settings
from rageval_spec.inference.tokenizing.special_tokens import check_padding, require

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BERT_OPTIONS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
"""Keys of tokenizer_config.json that count more than the normalizer of tokenizer.json, and their names in it."""


def adjust(tokenizer: Tokenizer, path: Path, settings: Settings) -> None:
    """Apply the options of tokenizer_config.json, and add the family's template if the file adds no special tokens.

    Only if the files name a class of a known family, or none at all: generic classes take a tokenizer.json as it is.

    Args:
        tokenizer: what tokenizer.json holds; changed in place.
        path: the tokenizer.json.

    Raises:
        DamagedFile: the tokenizer lacks a token that the model needs, or counts its padding otherwise than config.json.
    """
    if settings.flag("split_special_tokens", False):
        tokenizer.encode_special_tokens = True
    if any(name in GENERIC for name in settings.classes[:1]):
        return
    family = find_family(settings)
    if family is None:
        return
    if family in (wordpiece, mpnet):
        _apply_bert_options(tokenizer, settings)
    if family is roberta and settings.states("add_prefix_space"):
        _apply_prefix_space(tokenizer, settings.flag("add_prefix_space", False))
    check_padding(tokenizer, path, settings, settings.role("pad_token", family.DEFAULTS["pad_token"]))
    if tokenizer.num_special_tokens_to_add(is_pair=False):
        _check_template(tokenizer, path)
    else:
        _add_template(tokenizer, path, family, settings)


def _apply_bert_options(tokenizer: Tokenizer, settings: Settings) -> None:
    from tokenizers.normalizers import BertNormalizer

    if not isinstance(tokenizer.normalizer, BertNormalizer):
        return
    for key, name in _BERT_OPTIONS.items():
        if settings.states(key):
            value = settings.optional_flag(key)
            setattr(tokenizer.normalizer, name, value if name == "strip_accents" else bool(value))


def _apply_prefix_space(tokenizer: Tokenizer, spaced: bool) -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    if isinstance(tokenizer.pre_tokenizer, ByteLevel):
        tokenizer.pre_tokenizer.add_prefix_space = spaced


def _check_template(tokenizer: Tokenizer, path: Path) -> None:
    """Refuse a template with other ids than the vocabulary's: versions of transformers differ in which they use."""
    for content, number in _find_entries(json.loads(tokenizer.post_processor.__getstate__())):
        known = tokenizer.token_to_id(content)
        if known is not None and known != number:
            raise DamagedFile(
                f"{path}: 'post_processor' gives {content} the id {number}, but the vocabulary gives it {known}; write "
                "the id that the model was trained with in both places"
            )


def _find_entries(state: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The special tokens of a post-processor, with their ids."""
    for processor in state.get("processors", ()):
        yield from _find_entries(processor)
    for key in ("cls", "sep"):
        if key in state:
            yield tuple(state[key])
    for entry in state.get("special_tokens", {}).values():
        yield from zip(entry["tokens"], entry["ids"], strict=True)


def _add_template(tokenizer: Tokenizer, path: Path, family: Family, settings: Settings) -> None:
    roles = {key: require(tokenizer, path, key, settings.role(key, family.DEFAULTS[key])) for key in family.NEEDED}
    tokenizer.post_processor = family.make_template(roles, settings)
