from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.evidence.nuggets import Nugget, NuggetBank, parse_nuggets
from rageval_spec.errors import DataError
from rageval_spec.reading.nugget_banks import BankForm, read_banks, write_banks
from tests.command_line import invoke

AUTOJUDGE = (  # as autojudge-base 1.0.0 writes it
    '{"query_id":"1","title_query":"Machu Picchu","format_version":"v3","nugget_bank":{"Where is it?":{"question":'
    '"Where is it?","answers":{"in Peru":{"answer":"in Peru","references":[{"doc_id":"d1"}]},"in South America":'
    '{"answer":"in South America"}},"question_id":"480f0182c97f0d400d310cb9315b1e42","aggregator_type":"AND","query_id"'
    ':"1","importance":"vital"}},"claim_bank":{"It is old":{"claim":"It is old","references":[{"doc_id":"d2"}],'
    '"claim_id":"c4","query_id":"1","importance":"okay"}}}'
)
NUGGETIZER = (
    '{"query":"Machu Picchu","qid":"2","nuggets":[{"text":"in Peru","importance":"vital","assignment":"support"},'
    '{"text":"old","importance":"okay"}]}'
)
RAGTIME = '{"metadata": {"topic_id": "3"}, "nugget_bank": [{"question": "How?", "answers": [{"answer": "so"}]}]}'
BANKS = [
    NuggetBank(
        "1",
        "Machu Picchu",
        (
            Nugget("Where is it?", "vital", "480f0182c97f0d400d310cb9315b1e42", ("d1",),
                   ("in Peru", "in South America"), "AND"),
            Nugget("It is old", "okay", "c4", ("d2",)),
        ),
    ),
    NuggetBank("2", "Machu Picchu", (Nugget("in Peru", "vital", "1"), Nugget("old", "okay", "2"))),
    NuggetBank("3", "", (Nugget("How?", "vital", "1", (), ("so",)),)),
]  # fmt: skip


def test_the_forms_of_other_tools(tmp_path: Path) -> None:
    path = tmp_path / "bank.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join([AUTOJUDGE, "", NUGGETIZER, RAGTIME]).encode()))
    assert [*read_banks(path).values()] == BANKS


TEXTS = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
    .map(str.strip)
    .filter(lambda text: any(map(str.isalnum, text)))
)
NUGGETS = st.builds(
    Nugget,
    TEXTS,
    st.sampled_from(["vital", "okay"]),
    documents=st.lists(TEXTS, unique=True, max_size=2).map(tuple),
    answers=st.lists(TEXTS, unique=True, max_size=2).map(tuple),
)


@given(st.lists(NUGGETS, unique_by=lambda one: one.text, max_size=4), st.sampled_from(["nuggetizer", "autojudge"]))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, found: list[Nugget], form: BankForm) -> None:
    numbered = [
        Nugget(one.text, one.importance, str(at), one.documents, one.answers) for at, one in enumerate(found, 1)
    ]
    if form == "autojudge":  # which has questions before claims
        numbered.sort(key=lambda one: not one.answers)
    bank = NuggetBank("q", "?", tuple(numbered))
    path = tmp_path_factory.mktemp("banks") / "bank.jsonl"
    path.write_bytes(write_banks([bank], form))
    assert read_banks(path) == {"q": bank}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "bank.jsonl:2: each line must be a JSON object"),
        ('{"nuggets": ["a"]}', "bank.jsonl:2: no id of a question in 'qid' or 'query_id'"),
        ('{"qid": "1", "nuggets": ["a"]}', "bank.jsonl:2: the query '1' is listed twice, first in line 1"),
        ('{"qid": "2"}', "bank.jsonl:2: no nuggets in 'nuggets', 'nugget_bank' or 'claim_bank'"),
        ('{"qid": "2", "nuggets": "a"}', "bank.jsonl:2: nuggets is text that is not a JSON list"),
        ('{"qid": "2", "nuggets": {}}', "bank.jsonl:2: nuggets must be a list"),
        ('{"qid": "2", "nuggets": [{}]}', "bank.jsonl:2: nuggets[0] has no text"),
        ('{"qid": "2", "nuggets": [1]}', "bank.jsonl:2: nuggets[0] is 1"),
        ('{"qid": "2", "nuggets": ["a", "a"]}', "bank.jsonl:2: nuggets[1] has the same text as number 0"),
        ('{"qid": "2", "nuggets": [{"text": "a", "importance": "failed"}]}', "nuggets[0] has the importance 'failed'; "
                                                                            "write vital or okay"),
        ('{"qid": "2", "nuggets": [{"text": "a", "importanc": "okay"}]}', "unknown key 'importanc'; did you mean "
                                                                          "'importance'?"),
        ('{"qid": "2", "nuggets": [{"question": "a", "Answers": ["b"]}]}', "unknown key 'Answers'; did you mean"),
        ('{"qid": "2", "nuggets": ["a", "!!!"]}', "nuggets[1] is '!!!', which has no word"),
        ('{"qid": "2", "nuggets": ["a", "\\ud83d\\udc4d"]}', "which has no word; write a fact, or remove it"),
        ('{"qid": "2", "claim_bank": 3}', "bank.jsonl:2: 'claim_bank' must be a list or an object"),
        ('{"qid": "2", "nugget_bank": [{"question": "a", "aggregator_type": "NOT"}]}', "by 'NOT'; only AND and OR"),
        ('{"qid": "2", "nugget_bank": [{"question": "a", "answers": ["b", ""]}]}', "nuggets[0].answers[1] has no text"),
        ('{"qid": "2", "nugget_bank": [{"question": "a", "answers": 1}]}', "nuggets[0].answers must be a list"),
        ('{"qid": "2", "nugget_bank": [{"question": "a", "sub_nuggets": ["b"]}]}', "'sub_nuggets', which are not read"),
        ('{"qid": "2", "claim_bank": [{"claim": "a", "references": [null]}]}', "a document must be an id, not null"),
        ('{"qid": "2", "claim_bank": [{"claim": "a", "references": "d"}]}', "its documents must be a list of ids"),
    ],
)  # fmt: skip
def test_faults_have_their_place(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bank.jsonl"
    path.write_text(f'{{"qid": "1", "nuggets": ["a"]}}\n{line}\n')
    with pytest.raises(DataError) as caught:
        read_banks(path)
    assert message in str(caught.value)


def test_the_text_of_an_answer_can_be_its_key() -> None:
    (found,) = parse_nuggets([{"question": "When?", "answers": {"in 1889": {"references": [{"doc_id": "d"}]}}}], "here")
    assert (found.answers, found.documents) == (("in 1889",), ("d",))


KEYS = st.sampled_from(["text", "answers", "importance", "references", "id"])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_anything_is_read_or_refused(value: object) -> None:
    try:
        assert isinstance(parse_nuggets(value, "here"), tuple)
    except DataError as error:
        assert str(error).startswith("here")


SPEC = """\
version: 1
name: facts
datasets:
  golden: {dataset}
systems:
  bot: {{use: file, path: answers.jsonl}}
metrics:
  - {{use: nuggets, judge: overlap}}
"""


def write(folder: Path, dataset: str, bank: str | None = None, question: object = None) -> None:
    row = {"query_id": "1", "text": "Where is it?"} | ({} if question is None else {"nuggets": question})
    (folder / "golden.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "queries.tsv").write_text("1\tWhere is it?\n")
    (folder / "qrels.txt").write_text("1 0 d1 1\n")
    (folder / "answers.jsonl").write_text('{"query_id": "1", "answer": "It is in Peru."}\n')
    (folder / "spec.yaml").write_text(SPEC.format(dataset=dataset))
    if bank is not None:
        (folder / "bank.jsonl").write_text(bank)


BANK = '{"qid": "1", "query": "?", "nuggets": ["It is in Peru", "It is on a mountain"]}\n'
OTHER = '{"qid": "another topic", "query": "?", "nuggets": ["x"]}\n'


@pytest.mark.parametrize(
    ("dataset", "bank", "question"),
    [
        ("{use: golden, path: golden.jsonl, nuggets: bank.jsonl}", BANK + OTHER, None),
        ("{use: trec, qrels: qrels.txt, queries: queries.tsv, nuggets: bank.jsonl}", BANK + OTHER, None),
        ("{use: jsonl, path: golden.jsonl}", None, ["It is in Peru", {"text": "It is on a mountain"}]),
    ],
)
def test_an_evaluation_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, bank: str | None, question: object
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, dataset, bank, question)
    assert invoke("validate", "spec.yaml").exit_code == 0
    assert invoke("run", "spec.yaml").exit_code == 0
    results = json.loads((tmp_path / "rageval-results" / "results.json").read_text())
    assert results["aggregates"][0]["mean"] == 0.5
    assert ("nuggets" in results["digests"]["golden"]) == (bank is not None)
    assert "lacks 1 of 2 nuggets: 'It is on a mountain'" in invoke("show", "1").stdout


@pytest.mark.parametrize(
    ("command", "dataset", "bank", "question", "message"),
    [
        ("validate", "{use: golden, path: golden.jsonl}", None, None,
         "nuggets needs nuggets, and no question of 'golden' has any"),
        ("validate", "{use: golden, path: golden.jsonl, nuggets: bank.jsonl}", None, None, "bank.jsonl"),
        ("validate", "{use: golden, path: golden.jsonl, nuggets: bank.jsonl}", BANK + BANK, None,
         "bank.jsonl:2: the query '1' is listed twice, first in line 1"),
        ("run", "{use: golden, path: golden.jsonl, nuggets: bank.jsonl}", OTHER, None,
         "none of its questions is in the dataset; compare the ids: 'another topic' in the file, '1' in the dataset"),
        ("run", "{use: golden, path: golden.jsonl, nuggets: bank.jsonl}", BANK, ["a"],
         "the query '1' has nuggets in its column 'nuggets' and in"),
        ("run", "{use: golden, path: golden.jsonl}", None, ["a", ""], "golden.jsonl:1: 'nuggets'[1] has no text"),
    ],
)  # fmt: skip
def test_faults_of_an_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, dataset: str, bank: str | None, question: object,
    message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write(tmp_path, dataset, bank, question)
    found = invoke(command, "spec.yaml")
    assert found.exit_code in (2, 3, 4)
    assert message in " ".join((found.stdout + found.stderr).split())
