"""Test sets over real documents, with an endpoint that makes questions from their sentences."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import invoke
from tests.generation.writing import Writer, write_draft
from tests.models.chat_endpoint import ChatServer

BEGINNINGS = {"en": "What is known about", "de": "Was ist bekannt über"}
JOINTS = {"en": " and ", "de": " und "}


class Excerpter(Writer):
    """Asks about the long words of a sentence; some replies are refused, are no JSON, or quote what is nowhere."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self.language = language

    def draft(self, asked: str) -> Any:
        chance = random.Random(asked)
        (passage,) = [json.loads(text) for text in re.findall(r'<passage number="\d+">\n(.*)\n</passage>', asked)]
        sentences = [one for one in re.split(r"(?<=[.!?])\s+", passage.partition("]\n")[2]) if len(one.split()) > 6]
        if not sentences or chance.random() < 0.1:
            return {**write_draft("", ""), "suitable": False, "why_not": "It has no sentences."}
        if chance.random() < 0.1:
            return "I cannot help with that."
        sentence = chance.choice(sentences)
        words = list(dict.fromkeys(re.findall(r"\w{6,}", sentence)))[:4]
        question = f"{BEGINNINGS[self.language]} {JOINTS[self.language].join(words)}?"
        quote = "words that stand nowhere" if chance.random() < 0.1 else sentence
        return write_draft(question, sentence, quote, language=self.language)


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_real_corpus_gives_a_set_that_is_evaluated(shared_data: Path, language: str, tmp_path: Path) -> None:
    writer = Excerpter(language)
    server = ChatServer(writer)
    corpus = shared_data / "retrieval" / f"xquad_{language}" / "corpus.jsonl"
    output, address = ("-o", tmp_path / "golden.jsonl"), ("--model", "tiny", "--base-url", server.url)
    try:
        done = invoke("generate", corpus, *output, *address, "--count", "60", "--store", tmp_path / "store")
    finally:
        server.close()
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in (tmp_path / "golden.jsonl").read_text("utf-8").splitlines()]
    rejected = [json.loads(line) for line in (tmp_path / "golden.rejected.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) >= 55
    assert {"unsuitable", "no_evidence"} <= {row["reason"] for row in rejected}
    assert {row["language"] for row in rows} == {language}
    texts = {row["_id"]: row["text"] for row in map(json.loads, corpus.read_text("utf-8").splitlines())}
    for row in rows:
        for one in row["evidence"]:
            assert texts[one["document"]][one["document_start"] : one["document_end"]] == one["quote"]
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl, corpus: golden.corpus.jsonl}}\n"
        "systems: {bm25: {use: bm25}}\nmetrics: [target_rank]\ngates: [{metric: target_rank, max: 5}]\n"
    )
    evaluated = invoke("run", spec, "--no-history", "-o", tmp_path / "results")
    assert evaluated.exit_code == 0, evaluated.output
