"""The `columns:` block that a spec needs for a file, ready to copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

MOST_SHOWN = 12
"""The most columns that a message lists."""
_WORDS: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query", "qid", "topic", "nr", "number", "key", "id"),
    "doc_id": ("doc", "document", "page", "passage", "corpus", "chunk", "file", "url", "source"),
    "relevance": ("relevance", "grade", "label", "judgement", "rating", "rel"),
    "score": ("score", "similarity", "distance", "value"),
    "title": ("title", "head", "heading"),
    "text": (
        *("text", "question", "query", "ask", "words", "body", "content"),
        *("frage", "pregunta", "domanda", "pergunta"),
    ),
    "reference": (
        *("reference", "answer", "gold", "truth", "expected", "target", "solution"),
        *("antwort", "respuesta", "r\u00e9ponse", "reponse", "risposta", "resposta"),
    ),
    "answer": (
        *("answer", "response", "output", "reply", "completion", "prediction"),
        *("antwort", "respuesta", "reponse", "text"),
    ),
}
"""Words that column names often contain, by the content of the column."""
_LIKE = 0.6
_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e")


def write_mapping(setting: Sequence[str], names: Mapping[str, str]) -> str:
    """The block as YAML on one line: `columns: {queries: {text: Frage}}`; `setting` has the keys that lead to it."""
    import yaml

    content: object = dict(names)
    for key in reversed(setting):
        content = {key: content}
    text: str = yaml.safe_dump(content, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**6)
    return text.strip()[1:-1]


def list_names(present: Sequence[str]) -> str:
    """The names of a file's columns, the first dozen: `'a', 'b', ...`."""
    shown = ", ".join(map(repr, present[:MOST_SHOWN]))
    return (shown or "nothing") + (", ..." if len(present) > MOST_SHOWN else "")


def guess_names(wanted: Iterable[str], present: Sequence[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Guess a different column of the file for each wanted part. Parts for which no column is left are omitted.

    Columns whose name resembles the part's, or contains one of its usual words, come first. The remaining columns go
    to the other parts in file order, except columns that resemble a part that was not requested.
    """
    free = [name for name in dict.fromkeys(present) if name and name not in taken]
    guessed: dict[str, str] = {}
    parts = [*wanted]
    for part in parts:
        near = max(free, key=lambda name, part=part: _likeness(part, name), default=None)  # type: ignore[misc]
        if near is not None and _likeness(part, near) >= _LIKE:
            guessed[part] = near
            free.remove(near)
    free = [name for name in free if all(_likeness(other, name) < _LIKE for other in _WORDS)]
    for part in parts:
        if part not in guessed and free:
            guessed[part] = free.pop(0)
    return {part: guessed[part] for part in parts if part in guessed}


def guess_question(rows: Sequence[Mapping[str, object]], present: Sequence[str]) -> str | None:
    """The column in which more than half of the values end in a question mark; None if there is none."""
    counts = {name: sum(str(row.get(name, "")).rstrip().endswith(_QUESTION_MARKS) for row in rows) for name in present}
    best = max(counts, key=lambda name: counts[name], default=None)
    return best if best is not None and 2 * counts[best] > len(rows) else None


def _likeness(part: str, name: str) -> float:
    from difflib import SequenceMatcher

    folded = name.casefold().replace("-", "_").replace(" ", "_")
    if folded.endswith("_id") and not part.endswith("_id"):
        return 0.0
    words = _WORDS.get(part, ())
    for place, word in enumerate(words):
        if word in folded.split("_"):
            return 2 - place / 100
        if len(word) > 3 and word in folded:
            return 1 - place / 100
    return SequenceMatcher(None, part, folded).ratio()
