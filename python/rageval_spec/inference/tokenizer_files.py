"""Which files of a repository are a tokenizer's, and whose tokenizer a model without one reads with."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import NoReturn

from rageval_spec.errors import UsageError
from rageval_spec.inference.configuration import load_json
from rageval_spec.inference.translation import translated

TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt",
    "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "bpe.codes",
)  # fmt: skip
"""The files of a tokenizer; `tokenizer.json` is enough by itself."""
VOCABULARY_FILES = ("spm.model", "sentencepiece.model")
"""Files that count only without a `tokenizer.json`: beside one they would change the keys of stored vectors."""
_SETTINGS = frozenset({"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*")


def choose_tokenizer(names: Collection[str]) -> tuple[str, ...]:
    """The tokenizer's files among `names`; none if they have no vocabulary."""
    wanted = TOKENIZER_FILES if "tokenizer.json" in names else (*TOKENIZER_FILES, *VOCABULARY_FILES)
    found = tuple(name for name in wanted if name in names)
    return found if set(found) - _SETTINGS else ()


def find_foundation(config: Path) -> str | None:
    """The Hub's name of the model whose tokenizer a model reads with: `foundation` in config.json, as HHEM has it.

    Raises:
        DataError: config.json is damaged.
    """
    with translated():
        content = load_json(config) if config.is_file() else None
    foundation = content.get("foundation") if isinstance(content, dict) else None
    return foundation if isinstance(foundation, str) and HUB_ID.fullmatch(foundation) else None


def refuse_without_tokenizer(names: Collection[str], model: str, foundation: str | None = None) -> NoReturn:
    """Raise the error for a model without a tokenizer.

    Args:
        names: all files of the repository.
        model: the model's name in messages.
        foundation: the model whose tokenizer it reads with.

    Raises:
        UsageError: always.
    """
    there = ", ".join(sorted(name for name in names if "/" not in name)[:8]) or "nothing"
    if foundation is not None:
        raise UsageError(
            f"{model}: has no tokenizer, and reads with that of {foundation} according to its config.json; run "
            f"`hf download {foundation} tokenizer.json --local-dir FOLDER` with this folder"
        )
    raise UsageError(
        f"{model}: has no tokenizer: neither tokenizer.json nor a vocabulary such as spm.model or vocab.txt is "
        f"among its files ({there})"
    )
