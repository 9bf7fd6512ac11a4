"""The commands `import` and `export` have a command for each tool, whose options are the fields of its node.

`export` on the command line.

`import` on the command line.

Options of a command become the node of a tool, or a message about the option.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from rageval_spec.commands.exchange import read_settings
from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.langsmith.source import LangSmithSourceNode
from rageval_spec.exchange.otel.target import OtelTargetNode as OtelNode
from rageval_spec.exchange.phoenix.source import PhoenixSourceNode
from rageval_spec.exchange.shared.contracts import WindowNode, load, words
from rageval_spec.exchange.shared.row_files import RowsNode
from tests.command_line import invoke
from tests.exchange.evaluating import evaluate, evaluate_file


def test_every_tool_is_listed_and_has_help_with_an_example() -> None:
    for command, part in (("import", "source"), ("export", "target")):
        listed = invoke(command, "--help").stdout
        for word in words():
            offered = getattr(load(word), part) is not None
            assert (f"\n  {word} " in listed) == offered
            if offered:
                help = invoke(command, word, "--help").stdout
                assert f"rageval-spec {command} {word}" in help


def test_an_unknown_tool_is_refused() -> None:
    done = invoke("import", "phonix", "x")
    assert done.exit_code == 2
    assert "there is no tool 'phonix' to import from; did you mean 'phoenix'?" in done.stderr
    targets = ", ".join(word for word in words() if load(word).target is not None)
    assert f"there is no tool 'zzz' to export to; the tools are {targets}" in invoke("export", "zzz").stderr


def test_a_dry_run_shows_what_would_be_sent_and_sends_nothing(toy: ModuleType, tmp_path: Path) -> None:
    results = evaluate(tmp_path)
    done = invoke("export", "toy", results, "--dry-run")
    assert done.stdout.splitlines()[0] == "is_json -> t0"
    assert done.stdout.splitlines()[-1] == "would send 10 scores to the toy"
    assert toy.ToyTarget.stored == {}
    assert invoke("export", "toy", results).stdout == "sent 10 scores to the toy\n"


def test_results_without_a_trace_say_how_to_get_one(toy: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"id": "1", "question": "Why?", "reference": "So."}\n')
    (tmp_path / "answers.jsonl").write_text('{"id": "1", "response": "So."}\n')
    (tmp_path / "spec.yaml").write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl}}\n"
        "systems: {bot: {use: file, path: answers.jsonl}}\nmetrics: [exact_match]\n"
    )
    invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    done = invoke("export", "toy", tmp_path / "results")
    assert done.exit_code == 2
    assert (
        "no answer has a trace of toy; evaluate answers that were read from it: systems: {prod: {use: toy}}"
        in done.stderr
    )


def test_a_file_is_named_as_its_format_is(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "question": "Why?", "answer": "So.", "reference": "So."}\n')
    results = evaluate_file(tmp_path, "rows.jsonl", "[exact_match]")
    for output, told in (("cases.csv", "name a file that ends in .json"), (".", "name a file that ends in .json")):
        done = invoke("export", "deepeval", results, "-o", tmp_path / output if output != "." else output)
        assert (done.exit_code, told in done.stderr) == (2, True), done.stderr
    (tmp_path / "there.json").mkdir()
    done = invoke("export", "deepeval", results, "-o", tmp_path / "there.json")
    assert (done.exit_code, "there.json is a folder; name a file with -o" in done.stderr) == (2, True), done.stderr
    done = invoke("export", "otlp", results, "-o", tmp_path / "values", "--signals", "traces", "--signals", "metrics")
    assert (done.exit_code, "name a file that ends in .otlp" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "values").exists()


def test_one_of_several_systems_can_be_written_and_read_again(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"id": "1", "question": "Why?", "reference": "So."}\n')
    for name, answer in (("v1", "No."), ("v2", "So.")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "1", "response": answer}))
    (tmp_path / "spec.yaml").write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl}}\n"
        "systems: {v1: {use: file, path: v1.jsonl}, v2: {use: file, path: v2.jsonl}}\nmetrics: [exact_match]\n"
    )
    invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    done = invoke("export", "ragas", tmp_path / "results", "--system", "v2", "-o", tmp_path / "ragas.jsonl")
    assert done.exit_code == 0, done.output
    (row,) = map(json.loads, (tmp_path / "ragas.jsonl").read_text().splitlines())
    assert (row["response"], row["system"], row["exact_match"]) == ("So.", "v2", 1.0)
    done = invoke("import", "ragas", tmp_path / "ragas.jsonl", "-o", tmp_path / "again.jsonl")
    assert "wrote 1 question with 1 answer" in done.stdout and "left out" not in done.stdout
    done = invoke("export", "ragas", tmp_path / "results", "--system", "v3")
    assert (done.exit_code, "there is no system 'v3' in these results" in done.stderr) == (2, True)


def test_an_unknown_tool_and_an_existing_file_are_refused(toy: ModuleType, tmp_path: Path) -> None:
    assert invoke("import", "phonix").exit_code == 2
    (tmp_path / "there.jsonl").write_text("")
    done = invoke("import", "toy", "-o", tmp_path / "there.jsonl")
    assert (done.exit_code, "already exists" in done.stderr) == (2, True)
    assert "--since: '7x' is not a moment; write how long ago" in invoke("import", "toy", "--since", "7x").stderr


def test_a_source_that_fails_leaves_no_file(toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(self: object) -> object:
        yield from toy.TRACES[:2]
        raise RagevalError("half a page")

    monkeypatch.setattr(toy.ToySource, "read", read)
    done = invoke("import", "toy", "-o", tmp_path / "traces.jsonl")
    assert (done.exit_code, [*tmp_path.iterdir()]) == (3, [])


HOSTILE = {"NaN": "Infinity", "half": "\ud800", "control": "\x00\u2028", "big": 10**30, "small": 5e-324, "many": [[[]]]}


def test_whatever_a_tool_knows_becomes_a_line_of_json(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = [Trace(TraceLink("toy", name), name, metadata={name: value}) for name, value in HOSTILE.items()]
    monkeypatch.setattr(toy.ToySource, "traces", traces)
    done = invoke("import", "toy", "-o", tmp_path / "traces.jsonl")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in (tmp_path / "traces.jsonl").read_bytes().split(b"\n")[:-1]]
    assert {row["question"]: row["metadata"][row["question"]] for row in rows} == HOSTILE


def test_a_number_that_is_none_is_never_written(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Trace(TraceLink("toy", "t"), "Why?", metadata={"deep": [float("nan")]})
    monkeypatch.setattr(toy.ToySource, "traces", [trace])
    assert invoke("import", "toy", "-o", tmp_path / "traces.jsonl").exit_code == 3
    assert [*tmp_path.iterdir()] == []


def test_an_import_of_nothing_says_what_was_left_out(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy.ToySource, "traces", [])
    monkeypatch.setattr(toy.ToySource, "remarks", lambda self: ["7 traces without a question left out"])
    done = invoke("import", "toy", "-o", tmp_path / "traces.jsonl")
    assert done.exit_code == 3
    assert "nothing to import in what the options name; 7 traces without a question left out" in done.stderr


def test_settings_become_a_node() -> None:
    assert read_settings(WindowNode, {"since": "7d", "limit": 3}) == WindowNode(since="7d", limit=3)


def test_a_wrong_or_missing_option_is_named() -> None:
    with pytest.raises(UsageError, match=r"^--limit: must be at least 1, not 0$"):
        read_settings(WindowNode, {"limit": 0})
    with pytest.raises(UsageError, match=r"^--signals: must be 'traces', 'logs' or 'metrics', not 'x'$"):
        read_settings(OtelNode, {"signals": ("x",)})
    with pytest.raises(UsageError, match=r"^PATH: is missing$"):
        read_settings(RowsNode, {})


def test_options_that_do_not_go_together_are_named_as_they_are_written() -> None:
    with pytest.raises(UsageError, match=r"^name one of these: --project or --dataset$"):
        read_settings(PhoenixSourceNode, {})
    with pytest.raises(UsageError, match=r"^name one of these: --project or --dataset or PATH$"):
        read_settings(LangSmithSourceNode, {})


def test_an_empty_option_is_said_to_be_empty() -> None:
    with pytest.raises(UsageError, match=r"^--project: must not be empty$"):
        read_settings(PhoenixSourceNode, {"project": ""})
