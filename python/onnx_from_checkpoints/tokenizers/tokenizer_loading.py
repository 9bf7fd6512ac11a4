"""Loads the tokenizer of a model: its tokenizer.json, or one built from its vocabulary.

A tokenizer.json becomes what transformers 5 makes of it with the files beside it. A vocabulary is read by the family
of the model's tokenizer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.tokenizers.families import BERT, FAMILIES, MPNET, ROBERTA, TokenizerFamily
from onnx_from_checkpoints.tokenizers.special_tokens import TokenizerSettings, check_padding, require

if TYPE_CHECKING:
    from tokenizers import Tokenizer


_PARALLEL = "TOKENIZERS_PARALLELISM"
TOKENIZER = "tokenizer.json"


class Loaded(NamedTuple):
    """A tokenizer, and the file that it is from or that its vocabulary is from."""

    tokenizer: Tokenizer
    path: Path


def read_tokenizer(folder: Path, names: Collection[str] | None = None) -> Loaded | None:
    """Read a model's tokenizer; None if it has no tokenizer.json, and its family is not known here.

    Args:
        folder: the model's root.
        names: the tokenizer files in it that count; by default all.

    Raises:
        DamagedFile: a file is missing or damaged, or the files belong to different models.
    """
    tame_forks()
    if names is None:
        names = [path.name for path in folder.iterdir()]
    if TOKENIZER in names:
        path = folder / TOKENIZER
        tokenizer = _read(path)
        adjust(tokenizer, path, TokenizerSettings(folder))
        return Loaded(tokenizer, path)
    settings = TokenizerSettings(folder)
    family = find_family(settings)
    if family is None:
        return None
    missing = [name for name in family.files if name not in names]
    if missing:
        raise DamagedFile(
            f"{folder}: its tokenizer needs {' and '.join(family.files)}, but {missing[0]} is missing; "
            "download the model again"
        )
    return Loaded(family.build(folder, settings), folder / family.files[0])


def tame_forks() -> None:
    """Let tokenizers use threads, but not in forked children, where they would hang. Without this it warns."""
    if _PARALLEL not in os.environ:
        os.environ[_PARALLEL] = "true"
        if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
            os.register_at_fork(after_in_child=lambda: os.environ.__setitem__(_PARALLEL, "false"))


def _read(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_buffer(path.read_bytes())
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # tokenizers raises a plain Exception
        raise DamagedFile(f"{path}: is not a tokenizer: {error}") from error


_BERT_OPTIONS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
"""Keys of tokenizer_config.json that count more than the normalizer of tokenizer.json, and their names in it."""


def adjust(tokenizer: Tokenizer, path: Path, settings: TokenizerSettings) -> None:
    """Apply the options of tokenizer_config.json, and add the family's template if the file adds no special tokens.

    Only if the files name a class of a known family, or none at all: generic classes take a tokenizer.json as it is.
    """
    if settings.config.flag("split_special_tokens", False):
        tokenizer.encode_special_tokens = True
    if any(name in GENERIC for name in settings.classes[:1]):
        return
    family = find_family(settings)
    if family is None:
        return
    if family in (BERT, MPNET):
        _apply_bert_options(tokenizer, settings)
    if family is ROBERTA and "add_prefix_space" in settings.config.content:
        _apply_prefix_space(tokenizer, settings.config.flag("add_prefix_space", False))
    check_padding(tokenizer, path, settings, settings.role("pad_token", family.defaults["pad_token"]))
    if tokenizer.num_special_tokens_to_add(is_pair=False):
        _check_template(tokenizer, path)
    else:
        roles = {key: require(tokenizer, path, key, settings.role(key, family.defaults[key])) for key in family.needed}
        tokenizer.post_processor = family.make_template(roles, settings)


def _apply_bert_options(tokenizer: Tokenizer, settings: TokenizerSettings) -> None:
    from tokenizers.normalizers import BertNormalizer

    if not isinstance(tokenizer.normalizer, BertNormalizer):
        return
    for key, name in _BERT_OPTIONS.items():
        if key in settings.config.content:
            value = settings.config.optional(key, bool, "true or false")
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


GENERIC = frozenset({"PreTrainedTokenizer", "TokenizersBackend"})
"""Classes that say nothing about the family."""


def find_family(settings: TokenizerSettings) -> TokenizerFamily | None:
    """The family that the tokenizer's class belongs to, or else the model's type."""
    for name in settings.classes:
        found = next((family for family in FAMILIES if name in family.classes), None)
        if found is not None or name not in GENERIC:
            return found
    return next((family for family in FAMILIES if settings.model.get("model_type") in family.model_types), None)
