"""Sweeps on the command line: what runs, what is shared, what is found, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.asked_app import AskedApp
from tests.command_line import invoke
from tests.embedded import require

EXAMPLE = Path(__file__).parents[2] / "specs" / "sweep.yaml"

QUESTIONS = [{"query_id": f"q{at:03}", "question": f"Is it {at}?", "reference": "yes"} for at in range(80)]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_answers(folder: Path, **wrong: int) -> Path:
    """A spec with an axis over files of answers: each is wrong about so many of the 80 questions, the last ones."""
    write_rows(folder / "rows.jsonl", QUESTIONS)
    for name, count in wrong.items():
        rows = [{**row, "answer": "yes" if at < 80 - count else "no"} for at, row in enumerate(QUESTIONS)]
        write_rows(folder / f"{name}.jsonl", rows)
    first = next(iter(wrong))
    spec = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"app": {"use": "file", "path": f"{first}.jsonl"}},
        "metrics": ["exact_match", "token_f1"],
        "statistics": {"resamples": 1000, "permutations": 1000},
        "axes": {"systems.app.path": [f"{name}.jsonl" for name in wrong]},
    }
    return dump(folder, spec)


def dump(folder: Path, spec: Mapping[str, Any]) -> Path:
    (folder / "spec.yaml").write_text(yaml.safe_dump(dict(spec), sort_keys=False))
    return folder / "spec.yaml"


def change(path: Path, **sections: Any) -> Path:
    return dump(path.parent, {**yaml.safe_load(path.read_text()), **sections})


def sweep(path: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    """Run a sweep and read its JSON."""
    output = path.parent / "out"
    result = invoke("run", path, "-o", output, *arguments)
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads((output / "sweep.json").read_text())
    return found


def standings(found: dict[str, Any]) -> dict[str, str]:
    return {",".join(one["settings"].values()): one["standing"] for one in found["combinations"]}


def test_the_best_those_that_cannot_be_told_from_it_and_the_worse_ones(tmp_path: Path) -> None:
    path = write_answers(tmp_path, good=8, near=9, bad=50)
    result = invoke("run", path, "-o", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert standings(found) == {"good.jsonl": "best", "near.jsonl": "tied", "bad.jsonl": "worse"}
    assert (found["outcome"], found["best"], found["rounds"]) == ("shortlist", "path=good.jsonl", [80])
    best, near, bad = found["combinations"]
    assert (best["aggregate"]["mean"], best["aggregate"]["scored"]) == (0.9, 80)
    assert near["comparison"]["difference"] == pytest.approx(-1 / 80)
    assert bad["comparison"]["p_adjusted"] < 0.01
    assert found["corrected"]["interval"]["low"] < best["aggregate"]["interval"]["low"]
    assert [(axis, one["system"], round(one["difference"], 4)) for axis, one in found["effects"]] == [
        ("path", "near.jsonl", -0.0125), ("path", "bad.jsonl", -0.525),
    ]  # fmt: skip
    assert "shortlist: path=good.jsonl has the best mean" in result.stdout
    assert "1 of 2 other combinations cannot be told from it" in " ".join(result.stdout.split())
    assert f"takes about {near['needed']:,} questions" in " ".join(result.stdout.split())
    page = (tmp_path / "out" / "sweep.html").read_text()
    assert '<th scope="col">standing</th>' in page.replace("<span>", "").replace("</span>", "")
    assert '<th scope="col" class="number"><span>questions' in page  # above its numbers
    assert "not told apart" in page and "What each axis changes" in page


def test_each_combination_has_results_of_its_own(tmp_path: Path) -> None:
    sweep(write_answers(tmp_path, good=8, bad=50))
    shown = invoke("show", tmp_path / "out" / "combinations" / "2", "--format", "json")
    assert shown.exit_code == 0
    compared = invoke("compare", tmp_path / "out" / "combinations" / "1", tmp_path / "out" / "combinations" / "2")
    assert compared.exit_code == 0 and "0.900" in compared.stdout and "0.375" in compared.stdout
    assert not (tmp_path / ".rageval" / "history.db").exists()  # variants are no history of one system


def test_one_winner_and_a_field_that_cannot_be_split(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    result = invoke("run", write_answers(tmp_path / "one", good=8, bad=50))
    assert "best: path=good.jsonl has" in result.stdout and "All others are significantly worse." in result.stdout
    found = sweep(write_answers(tmp_path / "two", a=8, b=9, c=8))
    assert found["outcome"] == "unresolvable"
    assert [one["needed"] is None for one in found["combinations"]] == [True, False, True]  # a and c are equal


def test_another_metric_can_decide(tmp_path: Path) -> None:
    path = write_answers(tmp_path, good=8, bad=50)
    assert sweep(path, "--set", "sweep.metric=token_f1")["metric"] == "token_f1"
    refused = invoke("run", path, "--set", "sweep.metric=token_f2")
    assert refused.exit_code == 2 and "did you mean 'token_f1'?" in refused.output


def test_the_exit_code_follows_the_gates_of_the_best(tmp_path: Path) -> None:
    path = write_answers(tmp_path, bad=50, good=8)
    found = sweep(change(path, gates=[{"metric": "exact_match", "min": 0.8}]))
    assert [one["gates"] for one in found["combinations"]] == ["fail", "pass"]
    sweep(change(path, gates=[{"metric": "exact_match", "min": 0.95}]), code=1)


def test_halving_asks_more_and_more_and_leaves_out_only_what_is_worse(tmp_path: Path) -> None:
    path = change(write_answers(tmp_path, good=8, bad=70, near=9, worse=60), sweep={"search": "halving"})
    found = sweep(path)
    assert found["rounds"] == [20, 40, 80]
    by_name = {one["settings"]["path"]: one for one in found["combinations"]}
    assert {name: one["standing"] for name, one in by_name.items()} == {
        "good.jsonl": "best", "bad.jsonl": "worse", "near.jsonl": "tied", "worse.jsonl": "worse",
    }  # fmt: skip
    assert by_name["bad.jsonl"]["round"] < 3 and by_name["good.jsonl"]["round"] == 3
    assert by_name["bad.jsonl"]["aggregate"]["scored"] == found["rounds"][by_name["bad.jsonl"]["round"] - 1]
    assert by_name["near.jsonl"]["aggregate"]["scored"] == 80
    assert {one["queries"] for _, one in found["effects"]} == {by_name["bad.jsonl"]["aggregate"]["scored"]}


def test_validate_tells_of_the_sweep(tmp_path: Path) -> None:
    told = invoke("validate", write_answers(tmp_path, good=8, bad=70)).stdout
    assert "axes: 2 combinations; a sweep writes sweep.html and sweep.json, and none of `reports:`" in told


def test_rounds_and_the_plan_count_only_questions_that_are_evaluated(tmp_path: Path) -> None:
    """Of 200 questions, 80 are judged, so that halving has 20, 40 and 80."""
    write_rows(tmp_path / "rows.jsonl", [{"query_id": f"q{at}", "question": f"word{at}"} for at in range(200)])
    write_rows(tmp_path / "corpus.jsonl", [{"_id": f"d{at}", "text": f"word{at}"} for at in range(200)])
    judged = "".join(f"q{at}\td{at}\t1\n" for at in range(0, 160, 2))
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    spec = {
        "version": 1,
        "datasets": {"d": {"use": "jsonl", "path": "rows.jsonl", "qrels": "qrels.tsv", "corpus": "corpus.jsonl"}},
        "systems": {"bm25": {"use": "bm25"}},
        "metrics": ["rr"],
        "axes": {"systems.bm25.k1": [1.2, 1.3, 1.4, 1.5]},
        "sweep": {"search": "halving"},
    }
    path = dump(tmp_path, spec)
    assert "4 combinations, with 20 and 40 and 80 questions" in invoke("plan", path).stdout
    assert "with 25 and 50 questions" in invoke("plan", path, "--limit", "50").stdout
    found = sweep(path)
    assert found["rounds"] == [20, 40, 80]
    assert [one["aggregate"]["scored"] for one in found["combinations"]] == [80] * 4


def test_the_same_sweep_gives_the_same_bytes(tmp_path: Path) -> None:
    path = change(write_answers(tmp_path, good=8, bad=50), sweep={"search": "halving"})
    names = ("sweep.json", "sweep.html")
    sweep(path)
    first = [(tmp_path / "out" / name).read_bytes() for name in names]
    sweep(path, "--set", "limits.threads=1")
    assert [(tmp_path / "out" / name).read_bytes() for name in names] == first


APP = """
from pathlib import Path
def answer(question):
    with Path(__file__).with_name("asked.log").open("a") as log:
        print(question, file=log)
    return {"answer": "yes"}
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AskedApp:
    monkeypatch.syspath_prepend(tmp_path)
    made = AskedApp(tmp_path, f"app_{tmp_path.name}".replace("-", "_"), APP, 6)
    (tmp_path / "other.jsonl").write_text((tmp_path / "rows.jsonl").read_text())
    return made


VERSIONS = {"systems.app.version": ["1", "2"]}
PATHS = {"datasets.rows.path": ["rows.jsonl", "other.jsonl"]}


def test_what_combinations_share_is_asked_once(app: AskedApp) -> None:
    path = app.write_spec(axes={**VERSIONS, **PATHS}, resume="never")
    planned = json.loads(invoke("plan", path, "--format", "json").stdout)
    assert planned["to_ask"]["questions"] == {"app": 12}
    assert "4 combinations, with 6 questions\n" in invoke("plan", path).stdout
    for _ in range(2):  # a finished sweep is not continued: the next one asks again
        sweep(path)
        assert len(app.asked) == 12
    sweep(path, "--no-store")
    sweep(path, "--set", "systems.app.version=3", "--fresh")
    app.asked  # noqa: B018 - empties the log
    sweep(path, "--set", "systems.app.version=4", "--fresh")
    assert len(app.asked) == 6


def test_the_limits_are_of_the_whole_sweep_and_the_next_run_continues_it(app: AskedApp) -> None:
    path = app.write_spec(axes=VERSIONS, limits={"max_calls": 9})
    stopped = invoke("run", path)
    assert stopped.exit_code == 3 and "asked systems 9 questions" in stopped.output
    assert len(app.asked) == 9
    found = sweep(path)
    assert len(app.asked) == 3
    assert [one["aggregate"]["scored"] for one in found["combinations"]] == [6, 6]


def test_a_combination_that_fails_is_told_and_not_compared(app: AskedApp) -> None:
    app.write("broken.py", "def answer(question):\n    raise ValueError('nobody there')\n")
    found = sweep(app.write_spec(axes={"systems.app.function": [app.block["function"], "broken:answer"]}), code=3)
    assert [one["standing"] for one in found["combinations"]] == ["best", "unscored"]
    assert found["combinations"][1]["aggregate"] is None
    assert (found["outcome"], found["combinations"][1]["failed"]) == ("unresolvable", 6)  # it did not beat anything
    page = (app.folder / "out" / "sweep.html").read_text()
    assert "There are no values of 1 of 1 other combination." in page and "All others" not in page
    assert "Nothing is known of the axes" in page


def test_to_fail_where_questions_are_hard_makes_no_winner(app: AskedApp) -> None:
    """`flaky` answers two of six, all of them right; the other answers all, and one is wrong."""
    answer = 'def answer(question):\n    return {"answer": "yes" if question != "Is it 5?" else "no"}\n'
    flaky = answer.replace("    return", '    if question not in ("Is it 0?", "Is it 1?"):\n        1 / 0\n    return')
    app.write("steady.py", answer)
    app.write("flaky.py", flaky)
    found = sweep(app.write_spec(axes={"systems.app.function": ["flaky:answer", "steady:answer"]}))
    assert standings(found) == {"flaky:answer": "tied", "steady:answer": "best"}
    assert [one["failed"] for one in found["combinations"]] == [4, 0]
    page = (app.folder / "out" / "sweep.html").read_text()
    assert "2 (4 failed)" in page and "This is not final" in page


def test_the_plan_of_a_fresh_sweep_counts_all_that_it_asks(app: AskedApp) -> None:
    path = app.write_spec(axes=VERSIONS)
    sweep(path, "--set", "limits.max_calls=9", code=3)
    for arguments in (["--fresh"], ["--set", "resume=never"]):
        planned = json.loads(invoke("plan", path, "--format", "json", *arguments).stdout)
        assert planned["to_ask"]["questions"] == {"app": 12}


def test_a_stopped_halving_goes_to_no_further_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    app = AskedApp(tmp_path, f"app_{tmp_path.name}".replace("-", "_"), APP, 80)
    path = app.write_spec(axes={"systems.app.version": ["1", "2", "3", "4"]}, sweep={"search": "halving"})
    planned = json.loads(invoke("plan", path, "--format", "json").stdout)["to_ask"]["questions"]["app"]
    found = sweep(path, "--set", "limits.max_calls=50", code=3)
    assert [(one["round"], one["failed"]) for one in found["combinations"]] == [(1, 0), (1, 0), (1, 10), (1, 20)]
    assert found["outcome"] == "unresolvable"
    assert {one["round"] for one in sweep(path)["combinations"]} == {3}
    assert len(app.asked) == planned == 320


def test_a_file_that_cannot_be_read_is_told_at_its_value(tmp_path: Path) -> None:
    path = write_answers(tmp_path, good=8, bad=50)
    (tmp_path / "bad.jsonl").write_text("{not json\n")
    refused = invoke("run", path)
    assert refused.exit_code == 2
    assert "bad.jsonl:1:2: not JSON" in refused.output and "    - bad.jsonl\n      ^^^^^^^^^" in refused.output


def test_other_questions_or_references_are_refused(app: AskedApp) -> None:
    app.write("other.jsonl", (app.folder / "rows.jsonl").read_text().replace('"yes"', '"no"', 1))
    refused = invoke("run", app.write_spec(axes=PATHS))
    assert refused.exit_code == 3
    assert "path=other.jsonl: 'rows' has other questions or references than with path=rows.jsonl" in refused.output
    assert not app.asked  # nothing is paid for


def test_files_of_an_earlier_sweep_do_not_stay(tmp_path: Path) -> None:
    path = write_answers(tmp_path, good=8, bad=5)
    sweep(path)
    folder = tmp_path / "out"
    (folder / "combinations" / "9").mkdir()
    (folder / "note.txt").write_text("mine")
    sweep(path)
    assert {one.name for one in (folder / "combinations").iterdir()} == {"1", "2"}
    (tmp_path / "bad.jsonl").write_text("{not json\n")
    assert invoke("run", path, "-o", folder).exit_code == 2
    assert (folder / "note.txt").exists() and not (folder / "sweep.json").exists()


def test_another_corpus_is_compared_on_the_same_questions(tmp_path: Path) -> None:
    rows = [{"query_id": f"q{at}", "question": f"word{at}"} for at in range(12)]
    write_rows(tmp_path / "rows.jsonl", rows)
    (tmp_path / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{at}\td{at}\t1\n" for at in range(12))
    )
    for name, kept in (("whole", 12), ("half", 3)):
        documents = [{"_id": f"d{at}", "text": f"word{at}" if at < kept else "nothing"} for at in range(12)]
        write_rows(tmp_path / f"{name}.jsonl", documents)
    spec = {
        "version": 1,
        "datasets": {"d": {"use": "jsonl", "path": "rows.jsonl", "qrels": "qrels.tsv", "corpus": "half.jsonl"}},
        "systems": {"bm25": {"use": "bm25"}},
        "metrics": ["rr"],
        "axes": {"datasets.d.corpus": ["half.jsonl", "whole.jsonl"], "systems.bm25.k1": [1.2, 1.5]},
    }
    found = sweep(dump(tmp_path, spec))
    assert standings(found) == {
        "half.jsonl,1.2": "worse", "half.jsonl,1.5": "worse", "whole.jsonl,1.2": "best", "whole.jsonl,1.5": "tied",
    }  # fmt: skip
    effects = {axis: one for axis, one in found["effects"]}  # noqa: C416 - two values each
    assert effects["corpus"]["difference"] == pytest.approx(0.75)
    assert (effects["k1"]["difference"], effects["k1"]["queries"]) == (0, 12)


@pytest.mark.parametrize(
    ("sections", "arguments", "message"),
    [
        ({}, ["--save-as", "main"], "a sweep has no label"),
        ({}, ["--shard", "1/2"], "without --shard"),
        ({"axes": {"systems.app.path": ["bad.jsonl", "good.jsonl", "bad.jsonl"]}}, [],
         "the combinations path=bad.jsonl and path=bad.jsonl are the same; write each value of an axis once"),
        ({}, ["--sweep", "systems.app.path"], "--sweep systems.app.path: write PATH=A,B, and each path once"),
        ({}, ["--sweep", "systems.app.path=a,b", "--sweep", "systems.app.path=c,d"],
         "--sweep systems.app.path=a,b: write PATH=A,B, and each path once"),
        ({"axes": {}}, ["--shard", "1/2", "--sweep", "systems.app.version=1,2"], "a sweep cannot be sharded"),
        ({"systems": {"a": {"use": "file", "path": "good.jsonl"}, "b": {"use": "file", "path": "bad.jsonl"}},
          "axes": {"systems.a.path": ["good.jsonl", "bad.jsonl"], "systems.b.path": ["good.jsonl", "bad.jsonl"]}}, [],
         "add --only with one of a, b"),
        ({"models": {"m": {"use": "onnx", "model": "minilm"}}, "axes": {"models.m.precision": ["fp32", "int8"]},
          "metrics": [{"use": "semantic_similarity", "model": "m"}]}, [],
         "a judge or metric asks this model, so another value measures something else"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, sections: dict[str, Any], arguments: list[str], message: str
) -> None:
    result = invoke("run", change(write_answers(tmp_path, good=8, bad=50), **sections), *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert not (tmp_path / "rageval-results").exists()


def test_equal_values_are_refused_however_they_are_written(app: AskedApp) -> None:
    refused = invoke("run", app.write_spec(axes={"systems.app.concurrency": [2, 3, 2.0]}))
    assert refused.exit_code == 2 and app.asked == []
    assert "the combinations concurrency=2 and concurrency=2.0 are the same" in " ".join(refused.output.split())


def test_a_plan_of_a_sweep_has_no_shards(tmp_path: Path) -> None:
    path = change(write_answers(tmp_path, good=8, bad=50), axes={})
    refused = invoke("plan", path, "--shard", "1/2", "--sweep", "systems.app.path=bad.jsonl,good.jsonl")
    assert refused.exit_code == 2 and "a sweep cannot be sharded" in refused.output


def test_a_system_beside_the_swept_one_is_not_compared(tmp_path: Path) -> None:
    both = {"base": {"use": "file", "path": "bad.jsonl"}, "app": {"use": "file", "path": "good.jsonl"}}
    found = sweep(change(write_answers(tmp_path, good=8, bad=50), systems=both))
    assert (found["system"], len(found["combinations"])) == ("app", 2)


def test_the_command_line_makes_a_sweep_of_any_spec(tmp_path: Path) -> None:
    path = change(write_answers(tmp_path, good=8, bad=50), axes={})
    found = sweep(path, "--sweep", "systems.app.path=bad.jsonl,good.jsonl", "-q")
    assert standings(found) == {"bad.jsonl": "worse", "good.jsonl": "best"}


def test_the_example_names_a_shortlist(tmp_path: Path) -> None:
    """Twenty documents are better than five or ten, and int8 cannot be told from fp32."""
    require("minilm")
    result = invoke("run", EXAMPLE, "-o", tmp_path / "out", "--store", tmp_path / "store")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert found["outcome"] == "shortlist"
    kept = {name for name, standing in standings(found).items() if standing != "worse"}
    assert kept == {"20,fp32", "20,int8"}
