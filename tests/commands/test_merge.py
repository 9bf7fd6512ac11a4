"""`run --shard` and `merge` on the command line: what they say, and what is refused."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from rageval_spec.errors import BROKEN, GATE_FAILED, PASSED, SPEC_WRONG
from rageval_spec.pipeline.execution.shard_files import MANIFEST, read_manifest
from tests.command_line import invoke, start
from tests.tiny import write_spec

BM25: dict[str, Any] = {"systems": {"bm25": {"use": "bm25"}, "tied": {"use": "file", "path": "data/tied.run"}}}

SLOW = """
import time
def answer(question):
    with open("asked.log", "a") as log:
        log.write(question + chr(10))
    time.sleep(0.1)
    return question
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards of a spec, in `parts`."""
    write_spec(tmp_path, **BM25, gates=[{"metric": "rr", "system": "bm25", "min": 0.9}])
    for number in (1, 2):
        assert invoke("run", "spec.yaml", "--shard", f"{number}/2", "-o", "parts").exit_code == PASSED
    return tmp_path / "parts"


def refuse(*arguments: str, code: int = BROKEN) -> str:
    """What `merge` says when it refuses these arguments, on one line."""
    found = invoke("merge", *arguments)
    assert found.exit_code == code, found.output
    assert not Path("rageval-results").exists()
    return found.stderr.removeprefix("rageval-spec: ").strip()


def change(folder: Path, **keys: Any) -> None:
    """Change keys of a shard's manifest."""
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def test_a_shard_says_what_it_did_and_what_to_do_next(tmp_path: Path) -> None:
    write_spec(tmp_path, **BM25, gates=[{"metric": "rr", "system": "bm25", "min": 0.9}])
    found = invoke("run", "spec.yaml", "--shard", "1/3")
    assert found.exit_code == PASSED
    assert found.stdout == ""
    assert found.stderr.splitlines()[-3:] == [
        "shard 1/3 of tiny: 2 of 4 questions",
        "  bm25 on fruit: retrieved for 2 queries",
        "wrote rageval-results/shard-1-of-3; when all 3 are there, put them together with: "
        "rageval-spec merge spec.yaml rageval-results",
    ]
    assert sorted(path.name for path in Path("rageval-results").iterdir()) == ["shard-1-of-3"]
    assert not Path(".rageval", "history.db").exists()
    assert invoke("run", "spec.yaml", "--shard", "1/3", "-q").output == ""


def test_merge_shows_the_reports_and_ends_as_run_does(shards: Path) -> None:
    whole = invoke("run", "spec.yaml", "-o", "out")
    shutil.copytree("out", "whole")
    merged = invoke("merge", "spec.yaml", "parts", "-o", "out")
    assert (merged.exit_code, merged.stdout) == (whole.exit_code, whole.stdout) == (GATE_FAILED, whole.stdout)
    for path in Path("whole").iterdir():
        assert (Path("out") / path.name).read_bytes() == path.read_bytes()
    records = json.loads(invoke("history", "list", "--format", "json").stdout)
    assert len(records) == 2


def test_the_folders_may_be_named_in_any_way_and_the_spec_by_the_shards(shards: Path) -> None:
    first, second = shards / "shard-1-of-2", shards / "shard-2-of-2"
    for places in (
        ("parts",),
        (str(second), str(first)),
        ("parts", str(first)),
        ("spec.yaml", "parts/shard-2-of-2", "parts/shard-1-of-2"),
    ):
        assert invoke("merge", *places, "-q").exit_code == GATE_FAILED
    Path("downloads/artifact-1/rageval-results").mkdir(parents=True)
    first.rename("downloads/artifact-1/rageval-results/shard-1-of-2")
    second.rename("downloads/artifact-2")
    assert invoke("merge", "downloads", "-q").exit_code == GATE_FAILED


def test_options_of_run_that_make_sense(shards: Path) -> None:
    found = invoke("merge", "spec.yaml", "parts", "--set", "gates=[]", "--save-as", "main", "--annotations", "github")
    assert found.exit_code == PASSED, found.output
    assert found.stdout.startswith("::stop-commands::")
    assert "main" in invoke("history", "list").stdout


def test_what_a_beginner_writes_instead(shards: Path) -> None:
    wrote = "name the folder that `rageval-spec run --shard` wrote, such as rageval-results"
    Path("empty").mkdir()
    refused = {
        ("spec.yaml",): "no folder of a shard is named; write: rageval-spec merge spec.yaml rageval-results",
        (): "no folder of a shard is named; write: rageval-spec merge spec.yaml rageval-results",
        ("spec.yaml", "nowhere"): f"nowhere: there is no such folder; {wrote}",
        ("spec.yaml", "parts/shard-1-of-2/shard.json"): "parts/shard-1-of-2/shard.json is a file; name its folder: "
        "parts/shard-1-of-2",
        ("spec.yaml", "data"): "data has no shard, only 'corpus.jsonl', 'good.run', 'qrels', 'queries.jsonl', "
        f"'tied.run'; {wrote}",
        ("spec.yaml", "empty"): f"empty is empty; {wrote}",
        ("spec.yaml", "parts", "-o", "parts/shard-1-of-2"): "-o parts/shard-1-of-2 is the folder of a shard; write the "
        "results to another: -o rageval-results",
    }
    for places, told in refused.items():
        assert refuse(*places, code=SPEC_WRONG) == told
    shutil.copy("spec.yaml", "other.yaml")
    told = "spec.yaml and other.yaml are two specs, and shards are of one; name it: rageval-spec merge spec.yaml parts"
    assert refuse("spec.yaml", "other.yaml", "parts", code=SPEC_WRONG) == told
    invoke("run", "spec.yaml", "-q", "-o", "whole")
    assert refuse("spec.yaml", "whole", code=SPEC_WRONG) == (
        "whole has the results of a whole evaluation, which need no merge; show them: rageval-spec show whole"
    )
    Path("spec.yaml").rename("moved.yaml")
    asked, told = "the shards do not say where the spec is on this machine", "is not a file here; name it"
    merge = "rageval-spec merge spec.yaml parts"
    assert refuse("parts", code=SPEC_WRONG) == f"{asked}: spec.yaml {told}: {merge}"
    for number in (1, 2):
        change(shards / f"shard-{number}-of-2", spec="/elsewhere/spec.yaml")
    assert refuse("parts", code=SPEC_WRONG) == f"{asked}: /elsewhere/spec.yaml {told}: {merge}"
    shutil.rmtree(shards / "shard-2-of-2")
    told = "parts lacks shard 2/2; make it: rageval-spec run spec.yaml --shard 2/2 -o parts"
    assert refuse("parts") == told


def test_a_spec_by_its_absolute_path_is_found_on_another_machine(tmp_path: Path) -> None:
    write_spec(tmp_path, **BM25)
    for number in (1, 2):
        invoke("run", str(tmp_path / "spec.yaml"), "--shard", f"{number}/2", "-o", "parts", "-q")
    assert read_manifest(Path("parts/shard-1-of-2")).spec == "spec.yaml"
    assert invoke("merge", "parts", "-q").exit_code == PASSED


def test_more_shards_than_questions(tmp_path: Path) -> None:
    write_spec(tmp_path, **BM25)
    told = [invoke("run", "spec.yaml", "--shard", f"{number}/6", "-o", "parts").stderr for number in range(1, 7)]
    empty = [one for one in told if "of tiny: 0 of 4 questions, because they are dealt to 6 shards" in one]
    assert len(empty) == 2
    assert invoke("merge", "spec.yaml", "parts", "-q").exit_code == PASSED
    whole = invoke("run", "spec.yaml", "-q", "-o", "whole")
    assert whole.exit_code == PASSED
    merged = Path("rageval-results/values.parquet").read_bytes()
    assert merged == Path("whole/values.parquet").read_bytes()


def test_a_spec_that_came_with_the_shards_is_not_read(shards: Path) -> None:
    for number in (1, 2):
        change(shards / f"shard-{number}-of-2", spec="parts/evil.yaml")
    shutil.copy("spec.yaml", "parts/evil.yaml")
    assert "parts/evil.yaml is outside of this folder, or came with the shards; name it: " in (
        refuse("parts", code=SPEC_WRONG)
    )


def test_missing_doubled_and_unfinished_shards(shards: Path) -> None:
    second = shards / "shard-2-of-2"
    shutil.copytree(second, "again/shard-2-of-2")
    both = "parts/shard-2-of-2 and again/shard-2-of-2 are both shard 2/2"
    assert refuse("spec.yaml", "parts", "again") == f"{both}; move again/shard-2-of-2 elsewhere"
    change(second, began="2026-01-01T00:00:00+00:00")
    assert refuse("spec.yaml", "parts", "again") == f"{both}; move parts/shard-2-of-2, the older, elsewhere"
    change(second, is_complete=False)
    run = "rageval-spec run spec.yaml --shard"
    assert refuse("spec.yaml", "parts") == (
        f"parts/shard-2-of-2 (shard 2/2) is not finished; run it to its end: {run} 2/2 -o parts"
    )
    shutil.rmtree(second)
    assert refuse("spec.yaml", "parts") == f"parts lacks shard 2/2; make it: {run} 2/2 -o parts"
    invoke("run", "spec.yaml", "-q", "-o", "parts", "--shard", "3/7", "--limit", "3", "--only", "rr")
    assert refuse("spec.yaml", "parts") == (
        "parts/shard-3-of-7 (shard 3/7) is one of 7 shards, and parts/shard-1-of-2 (shard 1/2) one of 2; name only "
        "shards of one division: rageval-spec merge spec.yaml parts/shard-*-of-2"
    )
    assert refuse("spec.yaml", "parts/shard-3-of-7") == (
        f"parts lacks the shards 1/7, 2/7, 4/7, 5/7, 6/7 and 7/7; make each, as {run} 1/7 --limit 3 --only rr -o parts"
    )


def test_shards_made_where_another_embedded_model_is_installed_say_so(shards: Path) -> None:
    change(shards / "shard-2-of-2", models=["multilingual"])
    told = refuse("spec.yaml", "parts")
    assert "is of another evaluation: its models are multilingual, those of the spec none; what a block" in told
    assert "write 'model: NAME' into the spec; make it again: rageval-spec run spec.yaml --shard 2/2" in told


def test_shards_of_another_evaluation(shards: Path, tmp_path: Path) -> None:
    first, second = "parts/shard-1-of-2 (shard 1/2)", "parts/shard-2-of-2 (shard 2/2)"
    other, merge = f"{first} is of another evaluation:", "rageval-spec merge spec.yaml parts/shard-*-of-2"
    again = "make it again: rageval-spec run spec.yaml --shard 2/2 -o parts"
    told = refuse("spec.yaml", "parts", "--set", "systems.bm25.k1=0.5")
    settings = f"{other} the step 'retrieve bm25 x fruit' has other settings"
    assert told == f"{settings}; write the same --set options as for the shards: {merge} --set PATH=VALUE"
    told = refuse("spec.yaml", "parts", "--set", "statistics.seed=7")
    seed = f"{other} its statistics.seed is 20240601, and that of the spec is 7"
    assert told == f"{seed}; write: {merge} --set statistics.seed=20240601"
    write_spec(tmp_path, "other.yaml", systems={"good": {"use": "file", "path": "data/good.run"}})
    told = refuse("other.yaml", "parts")
    lone = f"{other} only the spec has the step 'retrieve good x fruit'"
    assert told == f"{lone}; name the spec of the shards: {merge}"
    invoke("run", "spec.yaml", "-q", "-o", "parts", "--shard", "2/2", "--set", "statistics.seed=7")
    seed = f"{second} is of another evaluation: its statistics.seed is 7, and that of the spec is 20240601"
    assert refuse("spec.yaml", "parts") == f"{seed}; {again}"
    invoke("run", "spec.yaml", "-q", "-o", "parts", "--shard", "2/2", "--limit", "3", "--only", "rr")
    told = f"{second} was made with --limit 3 --only rr, and {first} with no --limit or --only; {again}"
    assert refuse("spec.yaml", "parts") == told
    invoke("run", "spec.yaml", "-q", "-o", "parts", "--shard", "2/2")
    with (tmp_path / "data" / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q8\td6\t1\n")
    files = f"{other} the step 'open fruit' reads other files; make all shards again from the files that are here"
    assert refuse("spec.yaml", "parts") == f"{files}, as rageval-spec run spec.yaml --shard 1/2 -o parts"
    change(shards / "shard-2-of-2", version="0.0.1")
    told = refuse("spec.yaml", "parts")
    assert told.startswith(f"{second} is of version 0.0.1 of rageval-spec, and this is ") and told.endswith(again)


def test_shards_of_two_commits(shards: Path) -> None:
    change(shards / "shard-1-of-2", commit="a" * 40)
    change(shards / "shard-2-of-2", commit="b" * 40)
    told = f"was made at the commit {'b' * 40}, and parts/shard-1-of-2 (shard 1/2) at {'a' * 40}; make it again: "
    assert told in refuse("spec.yaml", "parts")


def test_damaged_files_are_named(shards: Path) -> None:
    folder = shards / "shard-1-of-2"
    table, manifest = folder / "0.parquet", folder / MANIFEST
    whole = table.read_bytes()
    table.write_bytes(whole[:-1])
    again = "make the shard again: rageval-spec run spec.yaml --shard 1/2 -o parts"
    told = f"parts/shard-1-of-2/0.parquet is damaged: it has changed since it was written; {again}"
    assert refuse("spec.yaml", "parts") == told
    table.unlink()
    told = f"parts/shard-1-of-2/0.parquet: No such file or directory; {again}"
    assert refuse("spec.yaml", "parts") == told
    for content, told in (
        (b"", "is not the description of a shard: Expecting value"),
        (b"{}", "is not the description of a shard of format_version 1: it has no format_version"),
        (b'{"format_version": 2}', "its format_version is 2"),
        (b'{"format_version": 1}', "is not the description of a shard: shard: Field required"),
        (manifest.read_bytes()[:-9], "is not the description of a shard"),
        (
            manifest.read_bytes().replace(b'"shard":1', b'"shard":"x"').replace(b'"shard": 1', b'"shard": "x"'),
            "shard: ",
        ),
        (b"[" * 100_000, "is not the description of a shard"),
    ):
        manifest.write_bytes(content)
        refused = refuse("spec.yaml", "parts")
        assert refused.startswith("parts/shard-1-of-2/shard.json") and told in refused
        assert refused.endswith(again)
    shards.joinpath("shard-1-of-2").rename(shards / "first")
    assert refuse("spec.yaml", "parts").endswith("run the shard again")


def forge(folder: Path, table: pl.DataFrame) -> None:
    """Replace the table of a shard's first step, with the right digest."""
    from hashlib import sha256

    path = folder / "0.parquet"
    table.write_parquet(path)
    change(
        folder,
        files={
            **json.loads((folder / MANIFEST).read_text())["files"],
            path.name: sha256(path.read_bytes()).hexdigest(),
        },
    )


def test_forged_tables_are_refused(shards: Path) -> None:
    folder = shards / "shard-1-of-2"
    run = pl.read_parquet(folder / "0.parquet")
    forge(folder, run.rename({"score": "value"}))
    assert refuse("spec.yaml", "parts").startswith(
        "parts/shard-1-of-2/0.parquet is not a table of a shard: its columns"
    )
    forge(folder, run.cast({"score": pl.Int64}))
    assert refuse("spec.yaml", "parts").startswith(
        "parts/shard-1-of-2/0.parquet is not a table of a shard: its columns"
    )
    forge(folder, run.with_columns(query_id=pl.lit("q0")))
    again = "make the shard again: rageval-spec run spec.yaml --shard 1/2 -o parts"
    told = "parts/shard-1-of-2 is damaged: the result of the step 'retrieve bm25 x fruit' is of other questions"
    assert refuse("spec.yaml", "parts") == f"{told}; {again}"
    change(folder, steps=[])
    told = f"parts/shard-1-of-2 is damaged: it has no result of the step 'retrieve bm25 x fruit'; {again}"
    assert refuse("spec.yaml", "parts") == told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--shard", "0/8"], "--shard 0/8: shards are numbered from 1; write 1/8 to 8/8"),
        (["--shard", "3"], "--shard 3 is not a shard; write the shard's number and how many there are, such as 3/8"),
        (
            ["--shard", "1/2", "--save-as", "main"],
            "a shard has no numbers to save; leave out --save-as, and write it for `rageval-spec merge`",
        ),
    ],
)
def test_wrong_options_of_run(tmp_path: Path, words: list[str], told: str) -> None:
    write_spec(tmp_path)
    found = invoke("run", "spec.yaml", *words)
    assert (found.exit_code, found.stderr) == (SPEC_WRONG, f"rageval-spec: {told}\n")


def test_plan_is_that_of_the_shard(tmp_path: Path) -> None:
    rows = [{"id": f"r{row}", "question": f"Is it {row}?"} for row in range(10)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_spec(
        tmp_path,
        datasets={"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        systems={"app": {"use": "http", "url": "http://127.0.0.1:9"}},
        metrics=["latency"],
        limits={"max_calls": 40},
    )
    whole = json.loads(invoke("plan", "spec.yaml", "--format", "json").stdout)
    part = json.loads(invoke("plan", "spec.yaml", "--format", "json", "--shard", "1/4").stdout)
    assert part["steps"] == whole["steps"] and "shard" not in whole
    assert part["shard"] == {"number": 1, "of_shards": 4, "questions": 3, "of_questions": 10}
    assert invoke("plan", "spec.yaml", "--shard", "1/4").stdout.startswith("shard 1/4 of tiny: 3 of 10 questions\n")
    assert whole["to_ask"]["questions"] == {"app": 10}
    assert part["to_ask"]["questions"] == {"app": 3}
    limited = json.loads(invoke("plan", "spec.yaml", "--format", "json", "--shard", "4/4", "--limit", "3").stdout)
    assert limited["to_ask"]["questions"] in ({}, {"app": 0})


def test_a_shard_that_was_killed_is_known_and_continued(tmp_path: Path) -> None:
    rows = [{"id": f"r{row}", "question": f"Is it {row}?"} for row in range(20)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("slow_app.py").write_text(SLOW)
    write_spec(
        tmp_path,
        datasets={"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        systems={"app": {"use": "python", "function": "slow_app:answer", "concurrency": 1}},
        metrics=["latency"],
    )
    log = Path("asked.log")
    with start("run", "spec.yaml", "--shard", "1/2", "-o", "parts") as process:
        while process.poll() is None and (not log.exists() or len(log.read_text().splitlines()) < 3):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert not read_manifest(Path("parts/shard-1-of-2")).is_complete
    invoke("run", "spec.yaml", "--shard", "2/2", "-o", "parts", "-q")
    assert refuse("spec.yaml", "parts").startswith("parts/shard-1-of-2 (shard 1/2) is not finished; run ")
    assert invoke("run", "spec.yaml", "--shard", "1/2", "-o", "parts", "-q").exit_code == PASSED
    asked = log.read_text().splitlines()
    assert len(set(asked)) == 20
    assert len(asked) <= 21
    assert invoke("merge", "spec.yaml", "parts", "-q").exit_code == PASSED


def spoil(content: Any, random: Random) -> Any:
    """The content with another value somewhere."""
    if isinstance(content, dict) and content and random.random() < 0.95:
        key = random.choice(sorted(content))
        return {**content, key: spoil(content[key], random)}
    if isinstance(content, list) and content and random.random() < 0.95:
        place = random.randrange(len(content))
        return [*content[:place], spoil(content[place], random), *content[place + 1 :]]
    return random.choice([None, 1, -1.5, 2**70, "x", [], {}, [[]], {"a": 1}, True])


def test_spoiled_shards_are_refused_or_read_and_never_crash(shards: Path) -> None:
    path, random = shards / "shard-1-of-2" / MANIFEST, Random(0)
    whole = json.loads(path.read_text())
    for _ in range(25):
        path.write_text(json.dumps(spoil(whole, random)))
        found = invoke("merge", "spec.yaml", "parts", "-q", "--no-history")
        assert found.exit_code in (PASSED, GATE_FAILED, SPEC_WRONG, BROKEN)
        assert "internal error" not in found.output
