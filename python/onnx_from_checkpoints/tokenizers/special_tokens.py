"""Reads the special and added tokens that files beside a vocabulary name, and adds them to a tokenizer.

The files are read as transformers 5 reads them. The tokens are checked against the vocabulary and the model's
config.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from onnx_from_checkpoints.configuration import OFFSET_POSITIONS, load_json
from onnx_from_checkpoints.errors import DamagedFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer


CONFIG, MAP, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"

ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The keys of special tokens, in the order in which transformers adds them to a vocabulary."""
_EXTRA = ("extra_special_tokens", "additional_special_tokens")
_UNSET = object()


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
        self._config = _read_object(folder / CONFIG)
        self._model = _read_object(folder / "config.json")

    @cached_property
    def _decoder(self) -> Mapping[str, Any]:
        found = self._config.get("added_tokens_decoder")
        if found is not None and not isinstance(found, dict):
            _refuse(self.folder / CONFIG, "added_tokens_decoder", "an object", found)
        return found or {}

    @cached_property
    def _map(self) -> Mapping[str, Any]:
        """Empty with `added_tokens_decoder`, because transformers reads the older files only without it."""
        return {} if self._decoder else _read_object(self.folder / MAP)

    @cached_property
    def _added(self) -> Mapping[str, Any]:
        return {} if self._decoder else _read_object(self.folder / ADDED)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the tokenizer's class that the files give, the more specific file first, without `Fast`."""
        found = (values.get("tokenizer_class") for values in (self._config, self._model))
        return tuple(name.removesuffix("Fast") for name in found if isinstance(name, str))

    @property
    def model_type(self) -> str:
        found = self._model.get("model_type")
        return found if isinstance(found, str) else ""

    def states(self, key: str) -> bool:
        """Whether tokenizer_config.json has this key, be it null."""
        return key in self._config

    def flag(self, key: str, default: bool) -> bool:
        found = self.optional_flag(key)
        return default if found is None else found

    def optional_flag(self, key: str) -> bool | None:
        found = self._config.get(key)
        if found is not None and not isinstance(found, bool):
            _refuse(self.folder / CONFIG, key, "true or false", found)
        return found

    def count(self, key: str, default: int) -> int:
        """A number of tokenizer_config.json, 0 or more."""
        found = self._config.get(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            _refuse(self.folder / CONFIG, key, "a number, 0 or more", found)
        return found

    def model_number(self, key: str) -> int | None:
        """A number of config.json; None if it is missing, or of another kind."""
        found = self._model.get(key)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def role(self, key: str, default: SpecialToken | None) -> SpecialToken | None:
        """The token with a role such as `cls_token`; the default's flags count if the files give only its text."""
        for name, values in ((MAP, self._map), (CONFIG, self._config)):
            value = values.get(key, _UNSET)
            if value is not _UNSET and value is not None:
                return self._token(self.folder / name, key, value, default)
        if key in self._map or key in self._config or default is None:
            return None
        return self._listed.get(default.content, default)

    def extra(self) -> list[SpecialToken]:
        """Further special tokens, in the order of the files."""
        found: dict[str, SpecialToken] = {}
        for name, values in ((MAP, self._map), (CONFIG, self._config)):
            for key in _EXTRA:
                value = values.get(key) or ()
                if not isinstance(value, (dict, list, tuple)):
                    _refuse(self.folder / name, key, "a list of tokens", value)
                for item in value.values() if isinstance(value, dict) else value:
                    token = self._token(self.folder / name, key, item, None)
                    found.setdefault(token.content, token)
        return list(found.values())

    @cached_property
    def added(self) -> tuple[SpecialToken, ...]:
        """The tokens that the files list with ids, in the order of the ids."""
        found = [self._entry(key, value) for key, value in self._decoder.items()]
        named = [self._text(value) for values in (self._map, self._config) for value in map(values.get, ROLES)]
        special = {*filter(None, named), *(token.content for token in self.extra())} if self._added else set()
        for content, number in self._added.items():
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                _refuse(self.folder / ADDED, content, "an id", number)
            known, place = content in special, f"{self.folder / ADDED}: '{content}'"
            found.append(SpecialToken(content, normalized=not known, special=known, named=place, id=number))
        return tuple(sorted(found, key=lambda token: token.id or 0))

    @cached_property
    def _listed(self) -> Mapping[str, SpecialToken]:
        """The tokens of `added_tokens_decoder`, whose flags count where another key has only the text."""
        return {token.content: token for token in self.added} if self._decoder else {}

    def _entry(self, key: str, value: object) -> SpecialToken:
        path, name = self.folder / CONFIG, f"added_tokens_decoder.{key}"
        if not key.isdecimal():
            _refuse(path, name, "an id as its name", key)
        token = self._token(path, name, value, None)
        special = bool(value.get("special", False)) if isinstance(value, dict) else False
        return replace(token, special=special, id=int(key))

    def _token(self, path: Path, key: str, value: object, default: SpecialToken | None) -> SpecialToken:
        """A token as a text, or as an object with flags."""
        named = f"{path}: '{key}'"
        if isinstance(value, str) and value:
            if value in self._listed:
                return self._listed[value]
            return replace(default or SpecialToken(value), content=value, special=True, named=named, id=None)
        content = value.get("content") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(content, str) or not content:
            _refuse(path, key, "a token", value)
        flags_of = {name: bool(value.get(name, False)) for name in ("lstrip", "rstrip", "normalized", "single_word")}
        return SpecialToken(content, **flags_of, special=True, named=named)

    @staticmethod
    def _text(value: object) -> str:
        content = value.get("content") if isinstance(value, dict) else value
        return content if isinstance(content, str) else ""


def _read_object(path: Path) -> Mapping[str, Any]:
    """The object in a JSON file; an empty one if the file does not exist."""
    if not path.is_file():
        return {}
    content = load_json(path)
    if not isinstance(content, dict):
        raise DamagedFile(f"{path}:1: must be an object, but is {_shorten(content)}")
    return content


def _refuse(path: Path, key: str, wanted: str, found: object) -> NoReturn:
    raise DamagedFile(f"{path}: '{key}' must be {wanted}, but is {_shorten(found)}")


def _shorten(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


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
    tokenizer.encode_special_tokens = settings.flag("split_special_tokens", False)
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
    if settings.model_type not in OFFSET_POSITIONS or padding is None:
        return
    stated, number = settings.model_number("pad_token_id"), tokenizer.token_to_id(padding.content)
    if number is not None and number != (1 if stated is None else stated):
        said = "has no 'pad_token_id', which means 1" if stated is None else f"says that 'pad_token_id' is {stated}"
        raise DamagedFile(
            f"{settings.folder / 'config.json'}: {said}, but the id of {padding.content} in {path.name} is {number}; "
            "the files belong to different models"
        )
