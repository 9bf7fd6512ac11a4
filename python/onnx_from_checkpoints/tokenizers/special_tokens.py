"""Reads the special and added tokens that files beside a vocabulary name, and adds them to a tokenizer.

The files are read as transformers 5 reads them. The tokens are checked against the vocabulary and the model's
config.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx_from_checkpoints.configuration import OFFSET_POSITIONS
from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.settings import Settings, is_whole, read_settings

if TYPE_CHECKING:
    from tokenizers import Tokenizer


CONFIG, MAP, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"

ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The keys of special tokens, in the order in which transformers adds them to a vocabulary."""
_EXTRA = ("extra_special_tokens", "additional_special_tokens")


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A token that is found in a text before the text is split into pieces.

    Attributes:
        lstrip: whether it takes the spaces before it.
        rstrip: whether it takes the spaces after it.
        normalized: whether it is looked for in the normalised text.
        single_word: whether it is found only between spaces or punctuation.
        named: the file and key that name it, for messages.
        id: the id that the files give it; None if they leave it to the order.
    """

    content: str
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    single_word: bool = False
    special: bool = True
    named: str = ""
    id: int | None = None

    @property
    def entry(self) -> tuple[str, int]:
        """The token and its id, which must be known, as post-processors want them."""
        assert self.id is not None, f"{self.content} has no id"
        return self.content, self.id


class TokenizerSettings:
    """tokenizer_config.json, special_tokens_map.json, added_tokens.json and what config.json says about tokens.

    Values are checked when they are read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = read_settings(folder / CONFIG)
        self.model = read_settings(folder / "config.json")

    @cached_property
    def _decoder(self) -> Mapping[str, Any]:
        return self.config.mapping("added_tokens_decoder")

    @cached_property
    def _map(self) -> Settings:
        return self._read_older(MAP)

    @cached_property
    def _added(self) -> Settings:
        return self._read_older(ADDED)

    def _read_older(self, name: str) -> Settings:
        """Empty with `added_tokens_decoder`, because transformers reads the older files only without it."""
        return Settings({}, self.folder / name) if self._decoder else read_settings(self.folder / name)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the tokenizer's class that the files give, the more specific file first, without `Fast`."""
        found = (values.get("tokenizer_class") for values in (self.config, self.model))
        return tuple(name.removesuffix("Fast") for name in found if isinstance(name, str))

    def role(self, key: str, default: SpecialToken | None) -> SpecialToken | None:
        """The token with a role such as `cls_token`; the default's flags count if the files give only its text."""
        for values in (self._map, self.config):
            if (value := values.get(key)) is not None:
                return _read_token(values, key, value, default, self._listed)
        if key in self._map.content or key in self.config.content or default is None:
            return None
        return self._listed.get(default.content, default)

    def extra(self) -> list[SpecialToken]:
        """Further special tokens, in the order of the files."""
        found: dict[str, SpecialToken] = {}
        for values in (self._map, self.config):
            for key in _EXTRA:
                value = values.get(key) or ()
                if not isinstance(value, (dict, list, tuple)):
                    values.refuse_value(key, "a list of tokens", value)
                for item in value.values() if isinstance(value, dict) else value:
                    token = _read_token(values, key, item, None, self._listed)
                    found.setdefault(token.content, token)
        return list(found.values())

    @cached_property
    def added(self) -> tuple[SpecialToken, ...]:
        """The tokens that the files list with ids, in the order of the ids."""
        found = [self._entry(key, value) for key, value in self._decoder.items()]
        added = self._added.content
        named = [_text(value) for values in (self._map, self.config) for value in map(values.get, ROLES)]
        special = {*filter(None, named), *(token.content for token in self.extra())} if added else set()
        for content, number in added.items():
            if not is_whole(number) or number < 0:
                self._added.refuse_value(content, "an id", number)
            known, place = content in special, f"{self._added.place}: '{content}'"
            found.append(SpecialToken(content, normalized=not known, special=known, named=place, id=number))
        return tuple(sorted(found, key=lambda token: token.id or 0))

    @cached_property
    def _listed(self) -> Mapping[str, SpecialToken]:
        """The tokens of `added_tokens_decoder`, whose flags count where another key has only the text."""
        return {token.content: token for token in self.added} if self._decoder else {}

    def _entry(self, key: str, value: object) -> SpecialToken:
        name = f"added_tokens_decoder.{key}"
        if not key.isdecimal():
            self.config.refuse_value(name, "an id as its name", key)
        token = _read_token(self.config, name, value, None, {})
        special = bool(value.get("special", False)) if isinstance(value, dict) else False
        return replace(token, special=special, id=int(key))


def _read_token(
    values: Settings, key: str, value: object, default: SpecialToken | None, listed: Mapping[str, SpecialToken]
) -> SpecialToken:
    """A token as a text, or as an object with flags; `listed` are those whose flags count where it is only a text."""
    named, content = f"{values.place}: '{key}'", _text(value)
    if not content:
        values.refuse_value(key, "a token", value)
    if not isinstance(value, dict):
        token = replace(default or SpecialToken(content), content=content, special=True, named=named, id=None)
        return listed.get(content, token)
    flags_of = {name: bool(value.get(name, False)) for name in ("lstrip", "rstrip", "normalized", "single_word")}
    return SpecialToken(content, **flags_of, special=True, named=named)


def _text(value: object) -> str:
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else ""


def add_special_tokens(
    tokenizer: Tokenizer,
    path: Path,
    settings: TokenizerSettings,
    defaults: Mapping[str, SpecialToken],
    *,
    needed: Sequence[str],
    own: Iterable[SpecialToken] = (),
) -> dict[str, SpecialToken]:
    """Add the tokens that the files list, the special tokens, and those that the vocabulary itself marks.

    A token that is in the vocabulary keeps its id; the others get the next ids.

    Args:
        path: the file with the vocabulary, for messages.
        defaults: the family's special tokens by role, such as `cls_token`; the files may name others.
        needed: the roles whose tokens must be in the vocabulary or listed.
        own: tokens that the vocabulary marks as special or as never split.

    Returns:
        The special tokens by role, those of `needed` at least, all with their ids.
    """
    found = {key: settings.role(key, defaults.get(key)) for key in ROLES}
    roles = {key: token for key, token in found.items() if token is not None}
    _add(tokenizer, path, settings.added)
    for key in needed:
        require(tokenizer, path, key, roles.get(key))
    _add(tokenizer, path, [*roles.values(), *settings.extra(), *own])
    tokenizer.encode_special_tokens = settings.config.flag("split_special_tokens", False)
    roles = {key: replace(token, id=tokenizer.token_to_id(token.content)) for key, token in roles.items()}
    check_padding(tokenizer, path, settings, roles.get("pad_token"))
    return roles


def _add(tokenizer: Tokenizer, path: Path, tokens: Iterable[SpecialToken]) -> None:
    """Add tokens that are not added yet, all in one call, because each call takes as long as all the earlier ones."""
    from tokenizers import AddedToken

    known = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    new: dict[str, SpecialToken] = {}
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


def require(tokenizer: Tokenizer, path: Path, key: str, token: SpecialToken | None) -> SpecialToken:
    """The token of a role, with its id; refuses a role without a token, and one that the tokenizer does not know."""
    if token is None:
        raise DamagedFile(f"{path.parent / CONFIG}: '{key}' is null, but the model needs one")
    number = tokenizer.token_to_id(token.content)
    if number is None:
        named = f"which {token.named} names" if token.named else f"which the model needs as its {key}"
        raise DamagedFile(f"{path}: has no token {token.content}, {named}; the files belong to different models")
    return replace(token, id=number)


def check_padding(tokenizer: Tokenizer, path: Path, settings: TokenizerSettings, padding: SpecialToken | None) -> None:
    """Refuse a tokenizer whose padding has another id than config.json says, if the model counts positions from it.

    Other models are not told how a text is padded, and multilingual ones exist in which the two ids differ.
    """
    if settings.model.get("model_type") not in OFFSET_POSITIONS or padding is None:
        return
    stated, number = settings.model.get("pad_token_id"), tokenizer.token_to_id(padding.content)
    if number is not None and number != (1 if stated is None else stated):
        said = "has no 'pad_token_id', which means 1" if stated is None else f"says that 'pad_token_id' is {stated}"
        raise DamagedFile(
            f"{settings.folder / 'config.json'}: {said}, but the id of {padding.content} in {path.name} is {number}; "
            "the files belong to different models"
        )
