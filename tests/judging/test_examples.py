from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.judging.examples import MOST_EXAMPLES, read_examples

OBJECT = '{"question": "Q?", "answer": "A", "contexts": ["c1", "c2"], "value": 0.5, "reason": "half", "level": 2}'
FILES = {
    "e.jsonl": OBJECT + "\n",
    "e.json": f"[{OBJECT}]",
    "e.yaml": "- question: Q?\n  answer: A\n  contexts: [c1, c2]\n  value: 0.5\n  reason: half\n  level: 2\n",
    "e.csv": 'question,answer,contexts,value,reason,level\nQ?,A,"[""c1"", ""c2""]",0.5,half,2\n',
}


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_example(tmp_path: Path, name: str) -> None:
    (example,) = read_examples(write(tmp_path, name, FILES[name]), name)
    sample = example.sample
    assert (sample.question, sample.answer, sample.contexts) == ("Q?", "A", ("c1", "c2"))
    assert (float(example.value), example.reason) == (0.5, "half")
    assert sample.columns is not None
    assert int(sample.columns["level"]) == 2
    assert example.place.startswith(name)


@pytest.mark.parametrize("text", ["question;answer;value\nQ;A, b;0.5\n", "question\tanswer\tvalue\nQ\tA, b\t0.5\n"])
def test_a_csv_file_of_a_spreadsheet_may_have_another_separator(tmp_path: Path, text: str) -> None:
    (example,) = read_examples(write(tmp_path, "e.csv", text), "e.csv")
    assert (example.sample.question, example.sample.answer, example.value) == ("Q", "A, b", "0.5")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.jsonl", '{"value": 1}\n{"answer": "A", "score": 1}\n', "e.jsonl:2: the example has no `value`; it has"),
        ("e.csv", "answer,value\nA,\n", "the example has no `value`"),
        ("e.yaml", "answer: A\n", "e.yaml: the examples must be a list"),
        ("e.yaml", "- A\n", "e.yaml: example 1 must be a mapping"),
        ("e.yaml", "- {a: [}\n", "e.yaml: it is not YAML"),
        ("e.yaml", "- !!python/object:os.system {}\n", "e.yaml: it is not YAML"),
        ("e.yaml", "[]\n", "e.yaml: there are no examples"),
        ("e.yaml", "- &a {answer: A, value: 1}\n- *a\n", "e.yaml:2: an example cannot refer to another one with '*'"),
        ("e.yaml", "- value: 1\n  a: " + "[" * 100_000, "e.yaml:2: the example is nested too deep"),
        ("e.jsonl", '{"answer": ["A"], "value": 1}\n', "e.jsonl:1: 'answer' must be text"),
        ("e.jsonl", '{"contexts": [1], "value": 1}\n', "e.jsonl:1: 'contexts' must be a list of texts"),
        ("e.yaml", "- {value: 1}\n" * (MOST_EXAMPLES + 1), "there are 101 examples; write at most 100"),
    ],
)  # fmt: skip
def test_wrong_files_are_explained(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_examples(write(tmp_path, name, text), name)
    assert message in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
