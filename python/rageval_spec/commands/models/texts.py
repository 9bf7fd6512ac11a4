"""The texts that `rageval-spec models bench` measures with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.errors import DataError

if TYPE_CHECKING:
    from rageval_spec.data.tables import Collection

_SENTENCES = Path(__file__).parent / "sentences.txt"
_MOST_SENTENCES = 12
_SEED = 20_240_601


def choose_texts(path: Path | None, count: int, collection: Collection | None) -> list[str]:
    """The first `count` distinct texts of a collection or a file, or built-in texts without either.

    Raises:
        DataError: the file has no texts, or a line of it is not one.
    """
    from rageval_spec.data.tables import document_texts

    if collection is not None:
        found = document_texts(collection.require("corpus", "models bench")).to_list()
    else:
        found = list(_read_texts(path) if path else write_texts(count))
    texts = [text for text in dict.fromkeys(found) if text.strip()][:count]
    if not texts:
        raise DataError(f"{path}: the file contains no text")
    return texts


def _read_texts(path: Path) -> Iterator[str]:
    """One text per line; in a `.jsonl` file, the key `title` followed by the key `text`."""
    from rageval_spec.reading.files import format_of, text_lines

    is_json = format_of(path) in ("jsonl", "ndjson")
    for number, line in text_lines(path):
        if line.strip():
            yield _read_object(line, f"{path}:{number}") if is_json else line


def _read_object(line: str, place: str) -> str:
    try:
        content = json.loads(line)
        return f"{content.get('title') or ''} {content['text']}".strip()
    except (ValueError, RecursionError, AttributeError, KeyError) as error:
        raise DataError(f'{place}: expected an object such as {{"text": "..."}}') from error


def write_texts(count: int) -> Iterator[str]:
    """`count` passages of one to twelve sentences, the same every time."""
    import random

    sentences = _SENTENCES.read_text("utf-8").splitlines()
    choice = random.Random(_SEED)
    for number in range(1, count + 1):
        chosen = choice.sample(sentences, choice.randint(1, _MOST_SENTENCES))
        yield f"{number}. {' '.join(chosen)}"


def pair_texts(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs for classifiers: each text with a claim, which is in turn a sentence of it and one of the next text."""
    import random

    from rageval_spec import kernels

    choice, pairs = random.Random(_SEED), []
    for place, text in enumerate(texts):
        of = text if place % 2 == 0 else texts[(place + 1) % len(texts)]
        start, end = choice.choice(kernels.split_sentences(of))
        pairs.append((text, of[start:end]))
    return pairs
