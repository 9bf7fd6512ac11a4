"""Adds special tokens to a tokenizer, and checks them against its vocabulary and the model's config.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.configuration import OFFSET_POSITIONS
from rageval_spec.inference.tokenizing.settings import CONFIG, ROLES, Settings, Token

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.processors import TemplateProcessing


def add_special_tokens(
    tokenizer: Tokenizer,
    path: Path,
    settings: Settings,
    defaults: Mapping[str, Token],
    *,
    needed: Sequence[str],
    own: Iterable[Token] = (),
) -> dict[str, Token]:
    """Add the tokens that the files list, the special tokens, and those that the vocabulary itself marks.

    A token that is in the vocabulary keeps its id; the others get the next ids.

    Args:
        path: the file with the vocabulary, for messages.
        defaults: the family's special tokens by role, such as `cls_token`; the files may name others.
        needed: the roles whose tokens must be in the vocabulary or listed.
        own: tokens that the vocabulary marks as special or as never split.

    Returns:
        The special tokens by role, those of `needed` at least, all with their ids.

    Raises:
        DamagedFile: a needed token is missing, or a file gives a token another id than the vocabulary does.
    """
    found = {key: settings.role(key, defaults.get(key)) for key in ROLES}
    roles = {key: token for key, token in found.items() if token is not None}
    _add(tokenizer, path, settings.added)
    for key in needed:
        require(tokenizer, path, key, roles.get(key))
    _add(tokenizer, path, [*roles.values(), *settings.extra(), *own])
    tokenizer.encode_special_tokens = settings.flag("split_special_tokens", False)
    roles = {key: token.with_id(tokenizer.token_to_id(token.content)) for key, token in roles.items()}
    check_padding(tokenizer, path, settings, roles.get("pad_token"))
    return roles


def frame(cls: Token, sep: Token) -> TemplateProcessing:
    """BERT's template, `[CLS] A [SEP] B [SEP]`, in which the second text and its [SEP] are of type 1."""
    from tokenizers.processors import TemplateProcessing

    single = f"{cls.content}:0 $A:0 {sep.content}:0"
    return TemplateProcessing(
        single=single, pair=f"{single} $B:1 {sep.content}:1", special_tokens=[cls.entry, sep.entry]
    )


def _add(tokenizer: Tokenizer, path: Path, tokens: Iterable[Token]) -> None:
    """Add tokens that are not added yet, all in one call, because each call takes as long as all the earlier ones."""
    from tokenizers import AddedToken

    known = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    new: dict[str, Token] = {}
    for token in tokens:
        if token.content not in known:
            new.setdefault(token.content, token)
    tokenizer.add_tokens(
        [
            AddedToken(
                token.content,
                lstrip=token.lstrip,
                rstrip=token.rstrip,
                single_word=token.single_word,
                normalized=token.normalized,
                special=token.special,
            )
            for token in new.values()
        ]
    )
    for token in new.values():
        number = tokenizer.token_to_id(token.content)
        if token.id is not None and number != token.id:
            raise DamagedFile(
                f"{token.named} gives {token.content} the id {token.id}, but with the vocabulary in {path.name} its id "
                f"is {number}; the files belong to different models"
            )


def require(tokenizer: Tokenizer, path: Path, key: str, token: Token | None) -> Token:
    """The token of a role, with its id.

    Raises:
        DamagedFile: the role has no token, or the tokenizer does not know it.
    """
    if token is None:
        raise DamagedFile(f"{path.parent / CONFIG}: '{key}' is null, but the model needs one")
    number = tokenizer.token_to_id(token.content)
    if number is None:
        named = f"which {token.named} names" if token.named else f"which the model needs as its {key}"
        raise DamagedFile(f"{path}: has no token {token.content}, {named}; the files belong to different models")
    return token.with_id(number)


def check_padding(tokenizer: Tokenizer, path: Path, settings: Settings, padding: Token | None) -> None:
    """Refuse a tokenizer whose padding has another id than config.json says, if the model counts positions from it.

    Other models are not told how a text is padded, and multilingual ones exist in which the two ids differ.
    """
    if settings.model_type not in OFFSET_POSITIONS or padding is None:
        return
    stated, number = settings.model_number("pad_token_id"), tokenizer.token_to_id(padding.content)
    if number is not None and number != (1 if stated is None else stated):
        said = "has no 'pad_token_id', which means 1" if stated is None else f"says that 'pad_token_id' is {stated}"
        raise DamagedFile(
            f"{settings.folder / 'config.json'}: {said}, but the id of {padding.content} in {path.name} is {number}; "
            "the files belong to different models"
        )
