"""A chat endpoint that writes and checks questions about pumps, and a folder of documents about pumps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rageval_spec.datasets.generated import Generated
from rageval_spec.generation.question_sets import GeneratedTestSet
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.spec import load
from rageval_spec.store.store import open_store
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer

NAMES = (
    "Ardent", "Borealis", "Cascade", "Dorado", "Ember", "Fathom", "Garnet", "Harrier", "Isobar", "Juniper", "Kestrel",
    "Lodestar", "Meridian", "Nimbus", "Orchard", "Pinnacle", "Quarry", "Ridgeway", "Saffron", "Tundra",
)  # fmt: skip
QUESTIONS = {
    "factual": "How many litres of water per minute does the {name} pump deliver?",
    "analytical": "Why does the {name} pump stop when its tank runs dry?",
    "comparative": "Is the {name} pump louder at night or by day, and how much?",
    "procedural": "What are the steps for cleaning the filter of a {name} pump?",
}
ANSWERS = {
    "factual": "{litres} litres.",
    "analytical": "A float switch opens its circuit, which protects the motor from heat.",
    "comparative": "It is quieter at night, by nine decibels.",
    "procedural": "Unplug it, open the lower hatch, rinse the mesh and close the hatch.",
}
QUOTES = {
    "factual": "delivers {litres} litres of water per minute",
    "analytical": "a float switch opens the circuit",
    "comparative": "nine decibels",
    "procedural": "rinse the mesh",
}


def describe(name: str, litres: int) -> str:
    return (
        f"The {name} pump delivers {litres} litres of water per minute. When its tank runs dry, a float switch opens "
        f"the circuit, so that the motor of the {name} does not overheat. At night it runs at nine decibels less than "
        f"by day. To clean its filter, unplug it, open the lower hatch, rinse the mesh and close the hatch."
    )


def write_documents(folder: Path, count: int = len(NAMES)) -> Path:
    """A folder with a Markdown file for each pump."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(NAMES[:count]):
        text = f"# {name} pump\n\n{describe(name, 40 + number)}\n"
        (folder / f"{name.lower()}.md").write_text(text, "utf-8")
    return folder


class Writer:
    """The script of an endpoint. A test changes what one kind of prompt is answered with."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, number: int, body: dict[str, Any]) -> Answer:
        self.bodies.append(body)
        asked = body["messages"][-1]["content"]
        said = getattr(self, tell_kind(asked))(asked)
        return (
            said
            if isinstance(said, Answer)
            else Answer(completion(said if isinstance(said, str) else json.dumps(said)))
        )

    def draft(self, asked: str) -> Any:
        name, kind = find_name(asked), find_type(asked)
        words = {"name": name, "litres": 40 + NAMES.index(name)}
        return write_draft(QUESTIONS[kind].format(**words), ANSWERS[kind].format(**words), QUOTES[kind].format(**words))

    def unanswerable(self, asked: str) -> Any:
        question = f"Which paints are sold for the housing of the {find_name(asked)} pump?"
        return {"suitable": True, "why_not": "", "question": question, "missing": "paints", "language": "en"}

    def check(self, asked: str) -> Any:
        answerable = "no" if "paints" in asked else "yes"
        return {"answer": "As it says.", "reason": "It is said.", "answerable": answerable, "stands_alone": "yes"}

    def closed_book(self, asked: str) -> Any:
        return {"answer": "", "known": "no"}

    def same(self, asked: str) -> Any:
        return {"reason": "They agree.", "correct": "yes"}

    def support(self, asked: str) -> Any:
        return "yes"

    def count(self, kind: str) -> int:
        return sum(tell_kind(body["messages"][-1]["content"]) == kind for body in self.bodies)


def write_draft(question: str, answer: str, *quotes: str, **other: Any) -> dict[str, Any]:
    evidence = [{"passage": number, "quote": quote} for number, quote in enumerate(quotes, 1)]
    return {
        "suitable": True, "why_not": "", "question": question, "answer": answer, "evidence": evidence,
        "language": "en", **other,
    }  # fmt: skip


def tell_kind(asked: str) -> str:
    """Which prompt it is."""
    beginnings = {
        "Write one question that the passage": "draft",
        "Write one question that a person": "unanswerable",
        "Decide two things": "check",
        "Answer the question below": "closed_book",
        "Decide whether the answer below": "same",
    }
    return next((kind for beginning, kind in beginnings.items() if asked.startswith(beginning)), "support")


def find_name(asked: str) -> str:
    """The pump that the first passage is about."""
    found = re.search(r"The (\w+) pump delivers", asked)
    assert found is not None, asked
    return found[1]


def find_type(asked: str) -> str:
    found = re.search(r"^Type: (\w+)", asked, re.MULTILINE)
    assert found is not None, asked
    return found[1]


SPEC = """\
version: 1
name: pumps
datasets:
  golden: {{use: generated, path: corpus, model: gpt, {keys}}}
models:
  gpt: {{use: chat, base_url: "{url}", model: tiny, retries: 0, price: {{input: 1, output: 2}}}}
systems:
  bm25: {{use: bm25}}
metrics: [ndcg@10]
limits: {{{limits}}}
"""


class Workshop:
    """A folder with documents and specs, and the endpoint that writes their questions."""

    def __init__(self, folder: Path, documents: int = len(NAMES)) -> None:
        self.folder = folder
        self.writer = Writer()
        self.server = ChatServer(self.writer)
        write_documents(folder / "corpus", documents)

    def write_spec(self, keys: str = "count: 10", limits: str = "max_calls: 1000", **replaced: str) -> Path:
        text = SPEC.format(url=self.server.url, keys=keys, limits=limits)
        for old, new in replaced.items():
            text = text.replace(old, new)
        path = self.folder / "spec.yaml"
        path.write_text(text, "utf-8")
        return path

    @contextmanager
    def open(self, keys: str = "count: 10", limits: str = "max_calls: 1000", **options: Any) -> Iterator[Generated]:
        """The dataset of a spec, with the spec's store."""
        spec = load(self.write_spec(keys, limits))
        budget = spec.limits.budget(**options)
        with closing(open_store(self.folder / ".rageval" / "store")) as store:
            parts = build_parts(spec, answers=store.answers, fingerprint=store.fingerprint, budget=budget)
            dataset = parts.datasets["golden"]
            assert isinstance(dataset, Generated)
            yield dataset

    def make(self, keys: str = "count: 10", limits: str = "max_calls: 1000") -> GeneratedTestSet:
        with self.open(keys, limits) as dataset:
            return dataset.produce()
