"""Blocks that do not fit together are reported before any data are read.

Labels that cannot correct a metric are told before anything runs, with the place and what to write.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.labels import Label
from rageval_spec.diagnostics import SpecError
from rageval_spec.pipeline.planning.preflight import choose_labels, inspect
from tests.checked_specs import validate
from tests.command_line import invoke
from tests.pipeline.labelling import write
from tests.tiny import write_spec

CHAT = {"use": "chat", "base_url": "http://127.0.0.1:1/v1", "model": "m"}


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (
            {"use": "dense", "model": "gpt"},
            "the model 'gpt' (use: chat) is not an embedding model; name one that embeds texts",
        ),
        (
            {"use": "rerank", "system": "good", "model": "gpt"},
            "is not a cross-encoder; name a model that reads pairs of texts",
        ),
    ],
)
def test_a_model_of_another_kind(tmp_path: Path, system: dict[str, Any], message: str) -> None:
    systems = {"good": {"use": "file", "path": "data/good.run"}, "other": system}
    path = write_spec(tmp_path, systems=systems, models={"gpt": CHAT})
    with pytest.raises(SpecError) as caught:
        validate(path)
    (fault,) = caught.value.diagnostics
    assert message in fault.message
    assert path.read_text().splitlines()[fault.position.line - 1].strip() == "other:"


def test_a_limit_on_cost_without_a_price(tmp_path: Path) -> None:
    path = write_spec(tmp_path, models={"gpt": CHAT}, limits={"max_cost": 1})
    with pytest.raises(SpecError, match="a limit on cost needs the price of 'm'"):
        validate(path)
    validate(path, ["limits.max_cost=null"])
    validate(path, ["models.gpt.price={input: 1, output: 2}"])


def test_all_wiring_faults_are_reported_at_once_in_order(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text('{"query_id": "q1", "answer": "red"}\n')
    metrics = [{"use": "faithfulness", "judge": "j"}, {"use": "noise_sensitivity", "judge": "grader"}]
    judges = {"j": {"use": "claims", "model": "minilm"}, "grader": {"use": "grade", "model": "gpt"}}
    path = write_spec(
        tmp_path,
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        models={"gpt": CHAT},
        judges=judges,
        metrics=metrics,
    )
    with pytest.raises(SpecError) as caught:
        validate(path)
    assert [fault.position.line for fault in caught.value.diagnostics] == sorted(
        fault.position.line for fault in caught.value.diagnostics
    )
    messages = [fault.message for fault in caught.value.diagnostics]
    assert any("'minilm' (use: onnx) writes no replies" in message for message in messages)
    assert any("'grader'" in message for message in messages)


def diagnose(path: Path) -> list[tuple[str, str | None]]:
    """The faults of a spec: the underlined text of the line with the message, and the hint."""
    with pytest.raises(SpecError) as caught:
        validate(path)
    return [
        (f"{fault.source_line[fault.position.column - 1 :].strip()}: {fault.message}", fault.hint)
        for fault in caught.value.diagnostics
    ]


def test_all_unknown_columns_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(
        '{"id": "q1", "question": "red?", "gold": "yes"}\n{"id": "q2", "hue": 1}\n'
    )
    (tmp_path / "documents.csv").write_text("doc,body\nd1,red\n")
    (tmp_path / "answers.jsonl").write_text('{"query_id": "q1", "answer_text": "red"}\n')
    golden = {
        "use": "jsonl",
        "path": "questions.jsonl",
        "columns": {"reference": "golt", "group": "hue", "condition": "state"},
    }
    table = {"use": "csv", "path": "documents.csv", "columns": {"doc_id": "dok"}}
    bot = {"use": "file", "path": "answers.jsonl", "columns": {"answer": "antwrt"}}
    path = write_spec(
        tmp_path, datasets={"golden": golden, "table": table}, systems={"bot": bot}, metrics=["exact_match"], gates=[]
    )
    assert diagnose(path) == [
        ("golt: questions.jsonl has no column 'golt'", "the columns are 'gold', 'question', 'id', 'hue'"),
        ("state: questions.jsonl has no column 'state'", "the columns are 'question', 'hue', 'id', 'gold'"),
        (
            "documents.csv: documents.csv: no column 'query_id', 'query-id' or 'qid' and no column 'relevance', "
            "'score' or 'label'; the columns are 'doc', 'body'",
            "name them in 'columns.query_id' and 'columns.relevance'",
        ),
        ("dok: documents.csv has no column 'dok'", "the columns are 'doc', 'body'"),
        ("antwrt: answers.jsonl has no column 'antwrt'", "the columns are 'answer_text', 'query_id'"),
    ]


UNKNOWN = "golden.csv has neither questions nor judgements under a known name; its columns are"


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (
            "Nr,Frage,Antwort\n1,Was ist rot?,Ein Apfel\n2,Was ist blau?,Der Himmel\n",
            f"{UNKNOWN} 'Nr', 'Frage', 'Antwort'",
            "for questions with gold answers write columns: {text: Frage, reference: Antwort}",
        ),
        (
            "a,b\nyes,is it?\nno,is it so?\n",
            f"{UNKNOWN} 'a', 'b'",
            "for questions with gold answers write columns: {text: b, reference: a}",
        ),
        (
            "topic,page,grade\nq1,d1,1\n",
            f"{UNKNOWN} 'topic', 'page', 'grade'",
            "for judgements write columns: {query_id: topic, doc_id: page, relevance: grade}",
        ),
        (
            "qid,docid\nq1,d1\n",
            "golden.csv: no column 'relevance', 'score' or 'label'; the columns are 'qid', 'docid'",
            "name it in 'columns.relevance'",
        ),
    ],
)
def test_validate_names_the_columns_to_write(tmp_path: Path, content: str, message: str, hint: str) -> None:
    (tmp_path / "golden.csv").write_text(content)
    (tmp_path / "answers.jsonl").write_text('{"query_id": "1", "answer": "red"}\n')
    bot = {"use": "file", "path": "answers.jsonl"}
    golden = {"use": "csv", "path": "golden.csv"}
    path = write_spec(tmp_path, datasets={"golden": golden}, systems={"bot": bot}, metrics=["error_rate"], gates=[])
    assert diagnose(path) == [(f"golden.csv: {message}", hint)]
    overrides = [f"datasets.golden.{hint.partition('write ')[2].replace(': ', '=', 1)}"]
    if "write" in hint:
        assert validate(path, overrides).datasets  # what the hint says is right


def test_columns_of_questions_belong_to_their_file(tmp_path: Path) -> None:
    (tmp_path / "qrels.csv").write_text("query_id,doc_id,relevance\nq1,d1,1\n")
    (tmp_path / "questions.csv").write_text("query_id,Frage\nq1,rot?\n")
    golden = {"use": "csv", "path": "qrels.csv", "queries": "questions.csv", "columns": {"text": "Frage"}}
    path = write_spec(tmp_path, datasets={"golden": golden}, gates=[])
    assert diagnose(path) == [
        (
            "questions.csv: questions.csv: no column 'text', 'query', 'question', 'user_input', 'input' or 'prompt'; "
            "the columns are 'query_id', 'Frage'",
            "write columns: {queries: {text: Frage}}",
        ),
        (
            "Frage: qrels.csv has no column 'Frage'",
            "the columns are 'relevance', 'query_id', 'doc_id'",
        ),
    ]


def test_long_files_are_not_checked(tmp_path: Path) -> None:
    bot = {"use": "file", "path": "answers.jsonl", "columns": {"error": "why"}}
    path = write_spec(tmp_path, systems={"bot": bot}, metrics=["error_rate"], gates=[])
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"query_id": "q1", "answer": "red"}\n' * 40_000)
    validate(path)
    answers.write_text('{"query_id": "q1", "answer": "red"}\n{"query_id": "q2", "why": "timed out"}\n')
    validate(path)


@pytest.mark.parametrize("metric", ["error_rate", {"use": "column", "column": "nps"}])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.jsonl",
            '{"id": "q1", "answer": "red"}\n{"id": "q2", "nps": NaN}',
            "a.jsonl:2: not JSON: NaN is not a JSON",
        ),
        ("a.jsonl", '{"id": "q1", "answer": "red"}\n{"id": "q2", "nps": Infinity}', "a.jsonl:2: not JSON: Infinity is"),
        (
            "a.json",
            '[{"id": "q1", "answer": "red"},\n {"id": "q2", "nps": -Infinity}]',
            "a.json:2: not JSON: -Infinity",
        ),
        ("a.jsonl", '{"query_id": ', "a.jsonl:1:14: not JSON: Expecting value"),
        ("a.jsonl.gz", "no gzip", "a.jsonl.gz"),
    ],
)
def test_a_damaged_file_of_answers_is_named_at_its_place(
    tmp_path: Path, name: str, content: str, message: str, metric: Any
) -> None:
    (tmp_path / name).write_text(content)
    path = write_spec(tmp_path, systems={"bot": {"use": "file", "path": name}}, metrics=[metric], gates=[])
    with pytest.raises(SpecError) as caught:
        validate(path)
    (fault,) = caught.value.diagnostics
    assert fault.position.line == 10 and message in fault.message
    assert "not JSON" not in fault.message or "write null" in fault.message or "Expecting value" in fault.message


@pytest.mark.parametrize(
    ("dataset", "files", "key", "message"),
    [
        (
            {"use": "jsonl", "path": "golden.jsonl"},
            {"golden.jsonl": "".join(f'{{"id": "{query}", "question": "?"}}\n' for query in "aba")},
            "path:",
            "golden.jsonl:3: the query 'a' is listed twice, first at {folder}/golden.jsonl:1",
        ),
        (
            {"use": "csv", "path": "golden.csv"},
            {"golden.csv": "id,question,reference\na,?,x\na,!,y\n"},
            "path:",
            "golden.csv:3: the query 'a' is listed twice, first at {folder}/golden.csv:2",
        ),
    ],
)
def test_a_duplicate_query_in_a_dataset(
    tmp_path: Path, dataset: dict[str, Any], files: dict[str, str], key: str, message: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "answers.jsonl").write_text('{"query_id": "a", "answer": "red"}\n')
    systems = {"bot": {"use": "file", "path": "answers.jsonl"}}
    path = write_spec(tmp_path, datasets={"faq": dataset}, systems=systems, metrics=["exact_match"])
    with pytest.raises(SpecError) as caught:
        validate(path)
    (fault,) = caught.value.diagnostics
    assert fault.message == f"{tmp_path}/{message.format(folder=tmp_path)}"
    assert fault.source_line.strip().startswith(key)


def test_a_duplicate_query_in_a_beir_folder(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    validate(path)
    with (tmp_path / "data" / "queries.jsonl").open("a") as queries:
        queries.write('{"_id": "q1", "text": "again"}\n')
    with pytest.raises(SpecError, match=r"queries\.jsonl:6: the query 'q1' is listed twice, first at .*jsonl:1"):
        validate(path)


@pytest.mark.parametrize(
    ("sections", "package", "message"),
    [
        (
            {"models": {"big": {"use": "sentence_transformers", "model": "a/b"}},
             "systems": {"d": {"use": "dense", "model": "big"}}},
            "sentence_transformers",
            "needs the package sentence_transformers; run `pip install \"rageval-spec[torch]\"`",
        ),
        (
            {"systems": {"b": {"use": "bm25", "stemmer": "english"}}},
            "Stemmer",
            "'stemmer: english' needs the package PyStemmer; `pip install PyStemmer`",
        ),
    ],
)  # fmt: skip
def test_a_package_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sections: dict[str, Any], package: str, message: str
) -> None:
    find_spec = importlib.util.find_spec
    path = write_spec(tmp_path, **sections)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == package else find_spec(name, *more)
    )
    with pytest.raises(SpecError) as caught:
        validate(path)
    assert message in [fault.message for fault in caught.value.diagnostics]


CHECKS: list[dict[str, Any]] = [
    {"use": "contains", "column": "must_sya"},
    {"use": "not_contains", "column": "forbidden"},
    {"use": "matches", "column": "pattern"},
    {"use": "json_schema", "column": "shape"},
    {"use": "max_words", "column": "reference"},
    {"use": "contains", "column": "must_say", "as": "says"},
]


def write_checks(folder: Path, golden: str) -> Path:
    (folder / "golden.jsonl").write_text(golden)
    (folder / "answers.jsonl").write_text('{"query_id": "q1", "answer": "red"}\n')
    return write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        metrics=CHECKS,
    )


def test_a_column_of_a_check_that_the_questions_lack_is_found_at_its_key(tmp_path: Path) -> None:
    path = write_checks(tmp_path, '{"query_id": "q1", "question": "Who?", "must_say": "Me", "shape": {}}\n')
    assert diagnose(path) == [
        ("must_sya: the questions of 'golden' have no column 'must_sya'", "did you mean 'must_say'?"),
        ("forbidden: the questions of 'golden' have no column 'forbidden'", "the columns are 'must_say', 'shape'"),
        ("pattern: the questions of 'golden' have no column 'pattern'", "the columns are 'must_say', 'shape'"),
    ]


def test_a_column_of_a_check_in_questions_without_any_is_found_too(tmp_path: Path) -> None:
    path = write_checks(tmp_path, '{"query_id": "q1", "question": "Who?"}\n')
    found = diagnose(path)
    assert len(found) == 5
    assert found[0][1] == "add it to the file with the questions"


def write_own_prompt(folder: Path, judge: dict[str, Any], metric: dict[str, Any] | None = None) -> Path:
    (folder / "questions.jsonl").write_text('{"query_id": "q1", "question": "red?", "level": 2}\n')
    (folder / "answers.jsonl").write_text('{"query_id": "q1", "answer": "red"}\n')
    return write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "questions.jsonl"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        models={"gpt": CHAT},
        judges={"mine": {"use": "prompt", "model": "gpt", **judge}},
        metrics=[{"use": "rubric", "judge": "mine", **(metric or {})}],
        gates=[],
    )


@pytest.mark.parametrize(
    "system",
    [
        {"use": "http", "url": "http://127.0.0.1:1/", "body": {"q": ["{{ question }}", "{{ levl }}"]}},
        {"use": "command", "command": ["cat"], "input": {"q": ["{{ question }}", "{{ levl }}"]}},
    ],
)
def test_an_unknown_variable_of_a_request_is_an_error_at_its_text(tmp_path: Path, system: dict[str, Any]) -> None:
    (tmp_path / "questions.jsonl").write_text('{"query_id": "q1", "question": "red?", "level": 2}\n')
    golden = {"use": "jsonl", "path": "questions.jsonl"}
    path = write_spec(tmp_path, datasets={"golden": golden}, systems={"bot": system}, metrics=["latency@p50"], gates=[])
    with pytest.raises(SpecError) as caught:
        validate(path)
    (fault,) = caught.value.diagnostics
    assert fault.message == "unknown variable 'levl'"
    assert (
        fault.hint == "did you mean 'level'? The variables are question, query_id, contexts, messages, history, level"
    )
    assert "{{ levl }}" in fault.source_line[fault.position.column - 1 :]
    path.write_text(path.read_text().replace("levl", "level"))
    validate(path)


def test_a_request_that_leaves_out_the_conversation_is_told(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Rome?"}, {"role": "assistant", "content": "Yes"}]
    row = {"query_id": "q1", "messages": [*turns, {"role": "user", "content": "And Paris?"}]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n")
    golden = {"use": "jsonl", "path": "questions.jsonl"}
    system = {"use": "http", "url": "http://127.0.0.1:1/", "body": {"q": "{{ question }}"}}
    path = write_spec(tmp_path, datasets={"golden": golden}, systems={"bot": system}, metrics=["latency@p50"], gates=[])
    (warning,) = validate(path).warnings
    assert warning.message == "the questions have conversations, but the request sends only the last turn of each"
    assert warning.hint == "add '{{ messages }}' or '{{ history }}' to the body"
    assert validate(path, ["systems.bot.body={q: '{{ question }}', so_far: '{{ history }}'}"]).warnings == ()


def test_an_unknown_variable_of_a_template_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("Judge.\n{{ answer }} {{ levl }}\n")
    (fault,) = diagnose(write_own_prompt(tmp_path, {"file": "mine.jinja"}))
    assert fault == ("mine.jinja: mine.jinja:2:17: unknown variable 'levl'; did you mean 'level'?", None)
    (fault,) = diagnose(write_own_prompt(tmp_path, {"template": "{{ answer }} {{ xyzzy }}"}))
    assert "template:1:17: unknown variable 'xyzzy'; the template can use question, contexts" in fault[0]
    assert fault[0].endswith("level")


def test_a_template_without_the_answer_gets_a_warning(tmp_path: Path) -> None:
    (warning,) = validate(write_own_prompt(tmp_path, {"template": "{{ question }} {{ level }}"})).warnings
    assert warning.severity == "warning"
    assert "does not show the answer" in str(warning)
    assert validate(write_own_prompt(tmp_path, {"template": "{{ answer }} {{ level }}"})).warnings == ()


def test_a_gate_is_checked_on_the_scale_of_the_judge_s_own_question(tmp_path: Path) -> None:
    path = write_own_prompt(tmp_path, {"template": "{{ answer }}", "scale": [0, 1]})
    assert validate(path, ["gates=[{metric: mine, min: 0.5}]"]).gates[0].min == 0.5
    with pytest.raises(SpecError, match="its values are between 0 and 1"):
        validate(path, ["gates=[{metric: mine, min: 5}]"])


def test_a_panel_of_judges_with_the_same_scale_has_that_scale(tmp_path: Path) -> None:
    path = write_own_prompt(tmp_path, {"template": "{{ answer }}", "scale": [0, 1]}, {"judge": "both"})
    other = "judges.other={use: prompt, model: gpt, template: 'Really? {{ answer }}'}"
    spec = validate(
        path, [other, "judges.both={use: panel, judges: [mine, other]}", "gates=[{metric: both, min: 0.5}]"]
    )
    assert spec.warnings == ()
    with pytest.raises(SpecError, match="names itself"):
        validate(path, ["judges.both={use: panel, judges: [mine, both]}", "gates=[{metric: both, min: 0.5}]"])


SAME = "the judge 'mine' asks gpt-4o-2024-08-06, the model that writes the answers of 'bot'"


@pytest.mark.parametrize(
    ("generator", "warns"),
    [("gpt-4o", True), ("gpt", True), ("openai/gpt-4o", True), ("gpt-4o-mini", False), ("claude-3-opus", False)],
)
def test_a_judge_of_its_own_model_s_answers_gets_a_warning(tmp_path: Path, generator: str, warns: bool) -> None:
    path = write_own_prompt(tmp_path, {"template": "{{ answer }}"})
    spec = validate(path, ["models.gpt.model=gpt-4o-2024-08-06", f"systems.bot.generator={generator}"])
    assert [SAME in str(warning) for warning in spec.warnings] == [True] * warns


def test_the_judges_behind_a_composed_judge_are_seen(tmp_path: Path) -> None:
    path = write_own_prompt(tmp_path, {"template": "{{ answer }}"}, {"judge": "both", "name": "x", "scale": [0, 1]})
    other = "judges.other={use: prompt, model: claude, template: '{{ answer }}'}"
    both = "judges.both={use: panel, judges: [mine, other]}"
    claude = "models.claude={use: chat, base_url: 'http://127.0.0.1:1/v1', model: claude-3-5-sonnet-20240620}"
    spec = validate(path, [other, both, claude, "systems.bot.generator=claude-3.5-sonnet"])
    (warning,) = spec.warnings
    assert "the judge 'other' asks claude-3-5-sonnet-20240620" in warning.message


def test_judges_of_one_model_share_a_warning(tmp_path: Path) -> None:
    path = write_own_prompt(tmp_path, {"template": "{{ answer }}"})
    other = "judges.other={use: prompt, model: gpt, template: 'Really? {{ answer }}'}"
    metrics = "metrics=[{use: rubric, judge: mine}, {use: rubric, judge: other}]"
    (warning,) = validate(path, [other, metrics, "systems.bot.generator=gpt"]).warnings
    assert warning.message.startswith("the judges 'mine' and 'other' ask m, the model that writes the answers of 'bot'")


def test_a_metric_takes_the_labels_that_name_it_its_word_or_nothing() -> None:
    labels = [Label("q1", metric, 1.0, "ann") for metric in ("strict", "faithfulness", "", "relevance")]
    assert [label.metric for label in choose_labels(labels, "strict", "faithfulness")] == ["strict", ""]
    assert [label.metric for label in choose_labels(labels, "lenient", "faithfulness")] == ["faithfulness", ""]


def block(**keys: Any) -> list[dict[str, Any]]:
    return [{"use": "token_f1", "labels": "people", **keys}]


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"metrics": block(labels="person")}, "the spec has no source of labels 'person'", "there is people"),
        (
            {"metrics": block(correction="ppl")},
            "expected ppi or rogan_gladen, found the text 'ppl'",
            "did you mean 'ppi'",
        ),
        (
            {"metrics": [*block(), {"use": "ndcg", "cutoff": 3, "labels": "people"}]},
            "ndcg needs labels of pairs of a query and a document ('use: qrels'), and 'people' has others",
            "remove 'labels:'",
        ),
        (
            {"metrics": [{"use": "latency", "percentile": 95, "labels": "people"}]},
            "latency@p95 is the p95 of its values",
            "remove",
        ),
        ({"metrics": [{"use": "latency", "labels": "people"}]}, "latency has no highest value", "remove 'labels:'"),
        (
            {"stopping": {"batch": 10}, "gates": [{"metric": "token_f1", "min": 0.1, "decide": "certain"}]},
            "'stopping' decides by the judge's values alone",
            "remove 'labels:' or 'stopping:'",
        ),
        (
            {"criterion": "relevance"},
            "no label of 'people' is about token_f1; they are about relevance",
            "name the metric as they do: 'as: relevance'",
        ),
        (
            {"labelled": 4},
            "'people' has labels of only 8 answers for token_f1; a corrected mean needs at least 10",
            "label more answers",
        ),
        ({"columns": "query_id,value"}, "the same annotator judged q0 already", ""),
        (
            {"columns": "query_id,metric,value,answer_digest"},
            "does not name its system, and there are several: a, b",
            "add a column 'system'",
        ),
        (
            {"value": "4"},
            "the label 4 lies outside the scale from 0 to 1; name the scale, worst first: scale: [1, 5]",
            "",
        ),
        ({"value": "good"}, "'good' is not a number", ""),
        ({"columns": "query_id,system,value,claim"}, "all labels of 'people' are of claims", "label whole answers"),
    ],
)
def test_what_cannot_be_corrected_shows_before_anything_runs(
    tmp_path: Path, changes: dict[str, Any], message: str, hint: str
) -> None:
    done = invoke("validate", write(tmp_path, **changes))
    assert done.exit_code == 2, done.output
    assert message in done.output and hint in done.output
    assert "spec.yaml:" in done.output and "^" in done.output


LAYOUT = "question,{},chunk_id,answer\nWhat is it?,Paris,c1,Lyon\nHow long?,30 days,c2,14 days\n"


def told(folder: Path, content: str, metrics: list[Any], name: str = "golden.csv", **columns: str) -> list[str]:
    """What is wrong with a spec whose dataset and system are one file, without advice; [] if it is valid."""
    (folder / name).write_text(content)
    file = {"path": name, **({"columns": columns} if columns else {})}
    systems = {"bot": {"use": "file", "path": name}}
    path = write_spec(
        folder, datasets={"golden": {"use": "golden", **file}}, systems=systems, metrics=metrics, gates=[]
    )
    try:
        validate(path)
    except SpecError as error:
        return [diagnostic.message for diagnostic in error.diagnostics]
    return []


@pytest.mark.parametrize(
    "name", ["ground_truth_answer", "groundTruthAnswer", "Ground Truth Answer", "expected_response"]
)
def test_the_gold_answer_of_the_articles_layout_is_known_in_any_spelling(tmp_path: Path, name: str) -> None:
    assert told(tmp_path, LAYOUT.format(name), ["exact_match", "ndcg@10"]) == []
    path = tmp_path / "spec.yaml"
    _, readings = inspect(path)
    assert readings["datasets.golden"][0].columns == {"text": "question", "reference": name, "relevant": "chunk_id"}
    assert readings["systems.bot"][0].columns["answer"] == "answer"


def test_a_second_column_that_may_be_gold_is_a_question_with_its_position(tmp_path: Path) -> None:
    content = LAYOUT.format("solution")
    assert told(tmp_path, content, ["exact_match"]) == [
        "golden.csv: the gold answers may be in 'answer' or 'solution', and nothing shows which",
        "golden.csv: the system's answers may be in 'answer' or 'solution', and nothing shows which",
    ]


def test_answers_are_never_compared_with_themselves(tmp_path: Path) -> None:
    content = "question,answer\nWhat is it?,Paris\n"
    (message,) = told(tmp_path, content, ["exact_match"])
    assert message == (
        "the answers are read from 'answer' of golden.csv, which 'golden' takes for the gold answers: every answer "
        "would be right"
    )
    assert told(tmp_path, content, ["error_rate"]) == []


@pytest.mark.parametrize(
    ("metric", "needs"),
    [
        ("exact_match", "a gold answer, and no question of 'golden' has one"),
        ("ndcg@10", "relevant documents, and no question of 'golden' has any"),
        ({"use": "context_recall", "by": "ids"}, "relevant documents, and no question of 'golden' has any"),
        ({"use": "answerability", "by": "phrases"}, "a value that shows whether it can be answered, and no question"),
    ],
)
@pytest.mark.parametrize(
    "extra", ["", ',"reference":null,"relevant":[],"answerable":null', ',"ground_truth":"","relevant":{}']
)
def test_what_no_question_has_is_told_before_anything_runs(tmp_path: Path, metric: Any, needs: str, extra: str) -> None:
    content = f'{{"question":"Who?","answer":"A","contexts":["d"],"context_ids":["d"]{extra}}}\n'
    (message,) = told(tmp_path, content, [metric], "golden.jsonl")
    assert needs in message


def test_a_layout_with_its_questions_under_queries(tmp_path: Path) -> None:
    rows = '{"id":"q1","query":"Who?","queryType":"factual","expectedResponse":"A","answer":"B","relevantDocIds":["d"]}'
    content = f'{{"version":"1.2","createdAt":"2026-03-01","humanReviewedCount":1,"queries":[{rows}]}}'
    assert told(tmp_path, content, ["exact_match", "ndcg@10"], "golden.json") == []
    (reading,) = inspect(tmp_path / "spec.yaml")[1]["datasets.golden"]
    assert reading.details == ("version 1.2", "created 2026-03-01")
    assert reading.columns["reference"] == "expectedResponse"
    assert reading.others == ("queryType",)


@pytest.mark.parametrize("name", ["golden.jsonl", "golden.json"])
def test_a_key_that_is_there_twice_is_an_error_with_its_line(tmp_path: Path, name: str) -> None:
    row = '{"question":"Who?","reference":"A",\n"reference":"B"}'
    content = f"[{row}]" if name.endswith(".json") else row.replace("\n", "")
    (message, *_) = told(tmp_path, content, ["error_rate"], name)
    line = 2 if name.endswith(".json") else 1
    assert f"{name}:{line}: the key 'reference' is there twice in one object; keep one" in message


def write_retrieval(folder: Path, **changes: Any) -> Path:
    """A retriever by vectors beside recorded answers, which a judge and metrics rate by vectors as well."""
    (folder / "answers.jsonl").write_text('{"query_id": "q1", "answer": "red", "contexts": ["red"]}\n')
    (folder / "golden.jsonl").write_text(
        '{"query_id": "q1", "question": "colour?", "reference": "red", "relevant": ["d1"]}\n'
    )
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "red"}\n')
    blocks = {
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl", "corpus": "corpus.jsonl"}},
        "systems": {"dense": {"use": "dense"}, "bot": {"use": "file", "path": "answers.jsonl"}},
        "judges": {"near": {"use": "embedding"}},
        "metrics": ["semantic_similarity"],
        "gates": [],
    }
    return write_spec(folder, **{**blocks, **changes})


def shared(path: Path) -> list[str]:
    return [one.message for one in validate(path).warnings if one.code == "shared-model"]


YARDSTICK = (
    "documents: what that model takes for near counts as good, so the score rates the retriever by its own yardstick"
)
RUN_SYSTEMS = {"dense": {"use": "dense"}, "bm25": {"use": "bm25"}}
BOT = {"bot": {"use": "file", "path": "answers.jsonl"}}
HYBRID = {"use": "hybrid", "systems": ["bm25", "dense"]}
OTHER = {"use": "http", "base_url": "http://localhost:1/v1", "model": "text-embedding-3-small"}


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({}, ["semantic_similarity measures with minilm, by which 'dense' ranks"]),
        (
            {"metrics": [{"use": "faithfulness", "judge": "near"}]},
            ["the judge 'near' measures with minilm, by which 'dense' ranks"],
        ),
        (
            {"systems": {**RUN_SYSTEMS, "both": HYBRID, **BOT}},
            ["semantic_similarity measures with minilm, by which 'dense' and 'both' rank"],
        ),
        (
            {"models": {"a": OTHER, "b": {**OTHER, "model": "openai/Text-Embedding-3-small"}},
             "systems": {"dense": {"use": "dense", "model": "a"}, **BOT},
             "metrics": [{"use": "semantic_similarity", "model": "b"}]},
            ["semantic_similarity measures with openai/Text-Embedding-3-small, by which 'dense' ranks"],
        ),
        (
            {"models": {"small": {"use": "onnx", "model": "x/all-MiniLM-L6-v2", "precision": "int8"}},
             "systems": {"dense": {"use": "dense", "model": "small"}, **BOT}},
            ["semantic_similarity measures with minilm, by which 'dense' ranks"],
        ),
        (
            {"judges": {"words": {"use": "overlap"}, "near": {"use": "embedding"},
                        "all": {"use": "panel", "judges": ["words", "near"]}},
             "metrics": [{"use": "faithfulness", "judge": "all"}]},
            ["the judge 'near' measures with minilm, by which 'dense' ranks"],
        ),
        ({"metrics": ["exact_match"]}, []),
        ({"metrics": ["semantic_similarity"], "systems": {"bm25": {"use": "bm25"}, **BOT}}, []),
        (
            {"models": {"other": OTHER}, "metrics": [{"use": "semantic_similarity", "model": "other"}]},
            [],
        ),
        ({"metrics": ["ndcg@10"]}, []),
    ],
)  # fmt: skip
def test_a_metric_with_the_model_that_retrieves_gets_a_warning(
    tmp_path: Path, changes: dict[str, Any], messages: list[str]
) -> None:
    assert shared(write_retrieval(tmp_path, **changes)) == [f"{told} {YARDSTICK}" for told in messages]


def test_models_in_folders_of_one_name_are_not_one_model(tmp_path: Path) -> None:
    for folder in ("a/model", "b/model"):
        (tmp_path / folder).mkdir(parents=True)
    models = {name: {"use": "sentence_transformers", "model": f"{name}/model"} for name in ("a", "b")}
    systems = {"dense": {"use": "dense", "model": "a"}, **BOT}
    for name, count in (("a", 1), ("b", 0)):
        metrics = [{"use": "semantic_similarity", "model": name}]
        path = write_retrieval(tmp_path, models=models, systems=systems, metrics=metrics)
        try:
            found = len(shared(path))
        except SpecError as error:
            found = sum("yardstick" in one.message for one in error.diagnostics)
        assert found == count


def test_the_warning_of_one_model_says_what_to_write_and_plan_shows_it(tmp_path: Path) -> None:
    path = write_retrieval(tmp_path)
    (warning,) = (one for one in validate(path).warnings if one.code == "shared-model")
    assert warning.hint == "name another model here, or rate retrieval by judged documents: ndcg@10, recall@10"
    done = invoke("plan", path)
    assert done.exit_code == 0
    assert "its own yardstick" in " ".join(done.output.split())
