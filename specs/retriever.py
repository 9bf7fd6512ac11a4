"""A retriever that counts the words that a question shares with an article, rare words more."""

import json
import math
import re
from collections import Counter
from pathlib import Path

ARTICLES = Path(__file__).parent / "data" / "support" / "corpus.jsonl"


def read_words(text: str) -> set[str]:
    """The words of a text, each once."""
    return set(re.findall(r"\w+", text.lower()))


articles = {
    article["_id"]: read_words(f"{article['title']} {article['text']}")
    for article in map(json.loads, ARTICLES.read_text(encoding="utf-8").splitlines())
}
counts = Counter(word for words in articles.values() for word in words)


def find(question: str) -> list[tuple[str, float]]:
    """The ids of the ten articles that share most with the question, with their scores."""
    wanted = read_words(question)
    scores = {name: sum(1 / math.log(1 + counts[word]) for word in wanted & words) for name, words in articles.items()}
    return sorted(scores.items(), key=lambda pair: pair[1], reverse=True)[:10]
