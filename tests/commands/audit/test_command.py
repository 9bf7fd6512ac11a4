"""`audit` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command_line import invoke


def test_the_help_says_what_fails() -> None:
    done = invoke("audit", "--help")
    assert done.exit_code == 0
    assert "The exit code is 1 if there are errors." in " ".join(done.stdout.split())


def test_a_spec_is_needed() -> None:
    assert invoke("audit").exit_code == 2


ROWS: list[dict[str, Any]] = [
    {"id": "1", "question": "How long is the notice period?", "reference": "30 days", "relevant": ["d1"]},
    {"id": "2", "question": "How long is the notice period", "reference": "14 days", "relevant": ["d1"]},
    {"id": "3", "question": "Who pays for shipping?", "reference": "The customer", "relevant": ["d1"]},
    {"id": "4", "question": "who pays for shipping", "reference": "the customer", "relevant": ["d1"]},
    {"id": "5", "question": "Which card is free?", "reference": "", "relevant": ["d9"]},
]


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "d1", "text": "notice period, shipping"}\n')
    return write_spec(tmp_path, {"use": "jsonl", "path": "golden.jsonl", "corpus": "corpus.jsonl"})


def write_spec(folder: Path, dataset: dict[str, Any]) -> Path:
    path = folder / "spec.yaml"
    content = {
        "version": 1,
        "name": "shop",
        "datasets": {"golden": dataset},
        "systems": {"bm25": {"use": "bm25"}, "flat": {"use": "bm25", "b": 0.0}},
        "metrics": ["ndcg@10"],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def audit(spec: Path, *options: str | Path, code: int = 1) -> dict[str, Any]:
    done = invoke("audit", spec, "--format", "json", *options)
    assert done.exit_code == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def list_codes(found: dict[str, Any]) -> list[tuple[str, str]]:
    checks = found["datasets"][0]["checks"]
    return [
        (finding["code"], finding["rows"][0]["place"] if finding["rows"] else "")
        for check in checks
        for finding in check["findings"]
    ]


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.html", "<!doctype html>"), ("a.HTM", "<!doctype html>"), ("a.json", "{"), ("a.md", "# Audit of shop"),
     ("a.txt", "Audit of shop: ")],
)  # fmt: skip
def test_the_name_of_the_output_tells_its_format(spec: Path, name: str, start: str) -> None:
    assert invoke("audit", spec, "-o", name).exit_code == 1
    assert Path(name).read_text(encoding="utf-8").startswith(start)


def test_a_name_that_tells_no_format_is_refused_unless_the_format_is_named(spec: Path) -> None:
    done = invoke("audit", spec, "-o", "audit.pdf")
    assert done.exit_code == 2 and not Path("audit.pdf").exists()
    assert "-o audit.pdf: end the name in" in done.stderr and "--format json" in done.stderr


def test_a_file_that_cannot_be_written_is_named(spec: Path) -> None:
    done = invoke("audit", spec, "-o", spec / "audit.json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{spec / 'audit.json'} cannot be written: " in done.stderr
    assert invoke("audit", spec, "-o", "audit.log", "--format", "json").exit_code == 1
    assert json.loads(Path("audit.log").read_text())["name"] == "shop"


def test_a_wanted_type_that_no_question_has_is_a_gap_and_a_mistyped_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "typed.jsonl"
    path.write_text('{"question": "a", "type": "billing"}\n{"question": "b", "type": "billing"}\n')
    (mix,) = [
        finding
        for check in audit(path, "--types", "billing:50,refunds:50", code=0)["datasets"][0]["checks"]
        for finding in check["findings"]
        if finding["code"] == "mix"
    ]
    assert "refunds 0% instead of 50%" in mix["message"]
    done = invoke("audit", path, "--types", "biling:100")
    assert done.exit_code == 2 and "did you mean 'billing'?" in done.stderr


@pytest.mark.parametrize("option", ["--metric", "--model"])
def test_a_dataset_without_a_spec_has_no_metrics_and_models(spec: Path, option: str) -> None:
    done = invoke("audit", "golden.jsonl", option, "minilm")
    assert done.exit_code == 2
    assert f"{option} minilm: golden.jsonl is a dataset; {option} names a part of a spec" in done.stderr


def test_a_folder_without_judgements_is_no_test_set(tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    done = invoke("audit", tmp_path / "sets")
    assert done.exit_code == 2 and "BEIR's layout" in done.stderr and "name the file" in done.stderr


def test_findings_name_the_line_of_the_file(spec: Path) -> None:
    assert list_codes(audit(spec)) == [
        ("duplicate", "golden.jsonl:4"),
        ("contradiction", "golden.jsonl:2"),
        ("no_reference", "golden.jsonl:5"),
        ("absent_document", "golden.jsonl:5"),
        ("few_questions", ""),
    ]


def test_the_text_is_a_linters(spec: Path) -> None:
    done = invoke("audit", spec)
    assert done.exit_code == 1
    assert "golden.jsonl:2: error: the same question as golden.jsonl:1, but the references differ" in done.stdout
    assert "[contradiction]" in done.stdout and "→ correct one" in done.stdout
    assert done.stdout.splitlines()[-1] == "2 errors and 3 warnings"


def test_warnings_fail_only_if_the_audit_is_strict(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text(json.dumps(ROWS[0]) + "\n" + json.dumps(ROWS[2]) + "\n")
    assert audit(spec, code=0)["counts"] == {"error": 0, "warning": 1, "info": 0}
    assert audit(spec, "--strict")["counts"]["warning"] == 1
    assert audit(spec, "--strict", "--count", "2", code=0)["counts"]["warning"] == 0


def test_the_audit_says_which_findings_need_an_evaluation_and_uses_one_that_is_there(spec: Path) -> None:
    size = find_check(audit(spec), "size")
    assert "'shop' has not been evaluated; evaluate it with: rageval-spec run" in size["remark"]
    assert invoke("run", spec, "-q").exit_code == 0
    found = audit(spec)
    assert found["results"] == ["rageval-results"]
    assert {row[0] for row in find_check(found, "size")["tables"][0]["rows"]} == {"bm25", "flat"}


def test_results_of_another_spec_do_not_count_but_the_history_does(spec: Path, tmp_path: Path) -> None:
    assert invoke("run", spec, "-q").exit_code == 0
    other = spec.with_name("other.yaml")
    other.write_text(spec.read_text().replace("name: shop", "name: other"))
    assert invoke("run", other, "-q").exit_code == 0
    (result,) = audit(spec)["results"]
    assert result.startswith("record ")


def find_check(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(check for check in found["datasets"][0]["checks"] if check["name"] == name)


def test_a_training_file_is_compared(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("question\nwho pays for the shipping?\nwhich card is FREE\n")
    found = find_check(audit(spec, "--train", tmp_path / "train.csv"), "train_overlap")
    assert [(one["code"], one["rows"][0]["query_id"]) for one in found["findings"]] == [
        ("train_overlap", "5"), ("train_near_overlap", "3"), ("train_near_overlap", "4")
    ]  # fmt: skip
    done = invoke("audit", spec, "--train", tmp_path / "nowhere.csv")
    assert done.exit_code == 2 and "no such file" in done.stderr


def test_a_split_of_a_beir_folder_can_be_the_training_data(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "qrels").mkdir(parents=True)
    texts = {"q1": "who won", "q2": "Who won?", "q3": "who lost"}
    (data / "queries.jsonl").write_text("".join(json.dumps({"_id": k, "text": v}) + "\n" for k, v in texts.items()))
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    (data / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td1\t1\nq3\td1\t1\n")
    (data / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n')
    spec = write_spec(tmp_path, {"use": "beir", "path": "data"})
    found = find_check(audit(spec, "--train", data / "qrels" / "train.tsv"), "train_overlap")
    assert [one["details"]["train"]["query_id"] for one in found["findings"]] == ["q2"]
    assert "Compared with 2 questions" in found["remark"] and "(100%)" in found["remark"]


def test_options_that_are_wrong_say_what_to_write(spec: Path) -> None:
    done = invoke("audit", spec, "--dataset", "goldn")
    assert done.exit_code == 2 and "did you mean 'golden'?" in done.stderr
    done = invoke("audit", spec, "--types", "factual:40")
    assert done.exit_code == 2 and "--types" in done.stderr


def test_the_findings_can_be_written_to_a_file(spec: Path, tmp_path: Path) -> None:
    done = invoke("audit", spec, "--format", "json", "-o", tmp_path / "out" / "audit.json")
    assert done.exit_code == 1 and done.stdout == f"wrote {tmp_path / 'out' / 'audit.json'}\n"
    assert json.loads((tmp_path / "out" / "audit.json").read_text())["name"] == "shop"


def test_a_judgement_without_a_question_and_a_dataset_without_judgements_are_audited(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("b 0 d1 1\n")
    spec = write_spec(tmp_path, {"use": "trec", "qrels": "qrels.txt"})
    (tmp_path / "r.txt").write_text("b Q0 d1 1 1.0 x\n")
    content = yaml.safe_load(spec.read_text())
    content["systems"] = {"s": {"use": "file", "path": "r.txt"}}
    spec.write_text(yaml.safe_dump(content))
    found = audit(spec, code=0)
    assert found["datasets"][0]["questions"] == 1
    assert find_check(found, "duplicates")["state"] == "skipped"


def test_a_file_of_questions_needs_no_spec(spec: Path, tmp_path: Path) -> None:
    found = audit(tmp_path / "golden.jsonl")
    assert found["name"] == "golden.jsonl"
    assert ("contradiction", "golden.jsonl:2") in list_codes(found)
    assert "rageval-spec run" in find_check(found, "every_system_fails")["skipped"]
    content = {"version": "1", "created": "2025-11-01", "test_cases": [{"id": "1", "query": "Who won?"}]}
    (tmp_path / "golden.json").write_text(json.dumps(content))
    found = audit(tmp_path / "golden.json", code=0)
    assert found["datasets"][0]["questions"] == 1 and "created 2025-11-01" in found["datasets"][0]["origin"]
    for options in (["--set", "a=1"], ["--results", "x"]):
        done = invoke("audit", tmp_path / "golden.jsonl", *options)
        assert done.exit_code == 2 and "spec" in done.stderr


def test_the_page_and_the_markdown_name_the_rows(spec: Path, tmp_path: Path) -> None:
    done = invoke("audit", spec, "--format", "markdown")
    assert done.exit_code == 1 and "- `golden.jsonl:2`: **error:** the same question" in done.stdout
    assert invoke("audit", spec, "--format", "html", "-o", tmp_path / "audit.html").exit_code == 1
    assert "golden.jsonl:2" in (tmp_path / "audit.html").read_text()


def test_a_wrong_path_is_an_error_of_the_command_line(tmp_path: Path) -> None:
    done = invoke("audit", tmp_path / "nowhere.yaml")
    assert done.exit_code == 2 and "no such file" in done.stderr


def test_findings_of_an_evaluation_are_there_once_it_has_run(spec: Path) -> None:
    before = audit(spec)
    assert all("has not been evaluated" in find_check(before, name)["skipped"] for name in EVALUATED)
    assert invoke("run", spec, "-q").exit_code == 0
    after = audit(spec)
    assert find_check(after, "every_system_fails")["findings"][0]["rows"][0]["place"] == "golden.jsonl:5"
    assert find_check(after, "unjudged")["tables"][0]["header"][1:4] == ["ndcg@10", "bpref", "judged@10"]
    assert find_check(after, "discrimination")["skipped"].startswith("2 systems;")


EVALUATED = ("unjudged", "every_system_fails", "every_system_solves", "discrimination")


def test_fix_writes_a_copy_and_never_the_original(spec: Path, tmp_path: Path) -> None:
    before = (tmp_path / "golden.jsonl").read_bytes()
    done = invoke("audit", spec, "--fix", "--format", "json")
    assert done.exit_code == 1 and json.loads(done.stdout)["counts"]["error"] == 2
    assert "4 questions, 1 removed; to use it, write path: golden.clean.jsonl" in done.stderr
    assert (tmp_path / "golden.jsonl").read_bytes() == before
    kept = [json.loads(line)["id"] for line in (tmp_path / "golden.clean.jsonl").read_text().splitlines()]
    assert kept == ["1", "2", "3", "5"], "contradictions are for people to settle"
    again = invoke("audit", spec, "--fix")
    assert again.exit_code == 2 and "golden.clean.jsonl exists" in again.stderr
    assert invoke("audit", spec, "--fix", "--force").exit_code == 1
    clean = invoke("audit", tmp_path / "golden.clean.jsonl", "--fix")
    assert "nothing to remove" in clean.stderr


def test_a_copy_that_loses_the_version_of_its_set_says_so(tmp_path: Path) -> None:
    case = {"query": "Who pays?", "expected_answer": "the customer"}
    content = {"version": "2", "created": "2024-01-01", "test_cases": [{"id": "a", **case}, {"id": "b", **case}]}
    (tmp_path / "g.json").write_text(json.dumps(content))
    done = invoke("audit", tmp_path / "g.json", "--fix")
    assert "The copy lacks these keys of the file: version and created" in " ".join(done.stderr.split())
