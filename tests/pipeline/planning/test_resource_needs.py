from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.pipeline.planning import resource_needs
from rageval_spec.pipeline.planning.resource_needs import find_available_memory, find_free_disk
from tests.command_line import invoke
from tests.tiny import write_spec

MEMINFO = "MemTotal: 16000 kB\nMemAvailable:   8000 kB\nSwapFree: 1000 kB\n"


def put(root: Path, name: str, content: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(content)


def test_memory_is_what_the_machine_has_left_with_swap(tmp_path: Path) -> None:
    put(tmp_path, "proc/meminfo", MEMINFO)
    assert find_available_memory(tmp_path) == 9000 << 10


def test_memory_is_what_the_narrowest_cgroup_allows(tmp_path: Path) -> None:
    put(tmp_path, "proc/meminfo", MEMINFO)
    put(tmp_path, "proc/self/cgroup", "0::/pods/one\n")
    put(tmp_path, "sys/fs/cgroup/pods/one/memory.max", "max\n")
    put(tmp_path, "sys/fs/cgroup/pods/memory.max", "5000000\n")
    put(tmp_path, "sys/fs/cgroup/pods/memory.current", "2000000\n")
    put(tmp_path, "sys/fs/cgroup/pods/memory.stat", "anon 1\ninactive_file 700000\n")
    assert find_available_memory(tmp_path) == 3_700_000


def test_memory_is_what_a_cgroup_of_version_1_allows(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "5:cpu:/job\n4:memory:/job\n")
    put(tmp_path, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000000\n")
    put(tmp_path, "sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000000\n")
    put(tmp_path, "sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 500000\n")
    assert find_available_memory(tmp_path) == 4_500_000


def test_memory_that_nobody_tells_is_not_known(tmp_path: Path) -> None:
    assert find_available_memory(tmp_path) is None


def test_the_disk_of_a_folder_that_is_not_there_yet_is_that_of_its_parent(tmp_path: Path) -> None:
    assert find_free_disk(tmp_path / "a" / "b") is not None


def test_plan_names_memory_and_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_spec(tmp_path, systems={"bm25": {"use": "bm25"}})
    monkeypatch.setattr(resource_needs, "find_available_memory", lambda: None)
    shown = invoke("plan", path).stdout
    assert "of memory, " in shown and "not known how much is available" in shown and "free\n" in shown
    needs = json.loads(invoke("plan", path, "--format", "json").stdout)["needs"]
    assert needs["memory"]["available"] is None and needs["memory"]["least"] < needs["memory"]["likely"]
    assert [step["title"] for step in needs["steps"]] == ["retrieve bm25 x fruit"]


@pytest.mark.parametrize(
    ("name", "found", "message"),
    [
        (
            "find_available_memory",
            lambda: 0,
            "retrieve bm25 x fruit needs at least ",
        ),
        ("find_free_disk", lambda _: 0, "disk in the store, and 0 bytes are free in "),
    ],
)
def test_run_refuses_what_cannot_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, found: object, message: str
) -> None:
    path = write_spec(tmp_path, systems={"bm25": {"use": "bm25"}})
    monkeypatch.setattr(resource_needs, name, found)
    done = invoke("run", path)
    assert done.exit_code == 2 and message in done.stderr
    monkeypatch.undo()
    assert invoke("run", path).exit_code in (0, 1)


def test_without_a_store_the_temporary_disk_is_what_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_spec(tmp_path, systems={"bm25": {"use": "bm25"}})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    monkeypatch.setattr(resource_needs, "find_free_disk", lambda folder: 0 if folder.name == "scratch" else 10**9)
    assert f"of temporary files in {tmp_path / 'scratch'}, 0 bytes free" in invoke("plan", path, "--no-store").stdout
    done = invoke("run", path, "--no-store")
    told = (
        f"of temporary disk, and 0 bytes are free in {tmp_path / 'scratch'}; name a folder on another disk with TMPDIR"
    )
    assert done.exit_code == 2 and told in done.stderr
    assert invoke("run", path).exit_code in (0, 1)


MEASURING = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the peak memory of a process is not told")
@pytest.mark.parametrize("documents", [100, 40_000])
def test_the_estimate_holds_the_memory_of_a_real_run(tmp_path: Path, documents: int) -> None:
    rows = ({"_id": f"d{n}", "text": " ".join(f"w{(n * k) % 4999}" for k in range(40))} for n in range(documents))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "w7 w8"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td7\t1\n")
    path = write_spec(tmp_path, datasets={"golden": {"use": "beir", "path": "."}}, systems={"s": {"use": "bm25"}})
    estimate, peak = measure(path)
    assert estimate["least"] < peak
    assert estimate["likely"] / 2 < peak < estimate["likely"] * 1.3, f"{peak:,} of {estimate}"


@pytest.mark.skipif(sys.platform == "win32", reason="the peak memory of a process is not told")
def test_the_estimate_holds_the_memory_and_the_results_of_answers(tmp_path: Path) -> None:
    text = " ".join(f"w{n * n % 997}" for n in range(120))
    rows = [
        {"id": f"q{n}", "question": f"Is it {n}?", "answer": f"{n} {text}", "reference": f"{text} {n}"}
        for n in range(4000)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    sections: dict[str, Any] = {
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
    }
    path = write_spec(tmp_path, metrics=["exact_match", "token_f1"], reports=["terminal"], **sections)
    plain, peak = measure(path)
    assert plain["likely"] / 1.7 < peak < plain["likely"] * 1.2, f"{peak:,} of {plain}"
    judged = [{"use": "faithfulness", "judge": "overlap"}]
    more = write_spec(tmp_path, "more.yaml", metrics=judged, reports=["html"], **sections)
    needs = [json.loads(invoke("plan", one, "--format", "json").stdout)["needs"] for one in (path, more)]
    assert needs[1]["memory"]["likely"] > needs[0]["memory"]["likely"]
    assert needs[1]["results"]["likely"] > needs[0]["results"]["likely"]


def measure(path: Path) -> tuple[dict[str, int], int]:
    """What `plan` says of the memory of an evaluation, and the most that it takes."""
    estimate = json.loads(invoke("plan", path, "--format", "json").stdout)["needs"]["memory"]
    # A process begins with the peak of the one that starts it, so a small one starts it.
    command = [sys.executable, "-m", "rageval_spec", "run", str(path)]
    done = subprocess.run([sys.executable, "-c", MEASURING, *command], capture_output=True, text=True, cwd=path.parent)
    returncode, units = map(int, done.stdout.split()[-2:])
    assert returncode in (0, 1)
    return estimate, units * (1 if sys.platform == "darwin" else 1024)
