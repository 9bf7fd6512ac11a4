from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.errors import RagevalError
from rageval_spec.spec import load
from rageval_spec.store.store import MemoryAnswers
from tests.systems.asking import answers_of, build, collection
from tests.tiny import write_spec

HEAD = """\
import json, os, sys, time
def said():
    for line in sys.stdin:
        yield json.loads(line)
def say(content):
    print(content if isinstance(content, str) else json.dumps(content), flush=True)
"""
ECHO = "for asked in said(): say({'answer': asked['question'].upper(), 'contexts': [str(os.getpid())]})\n"


def program(folder: Path, body: str) -> list[str]:
    (folder / "rag.py").write_text(HEAD + dedent(body))
    return [sys.executable, "rag.py"]


def ask(folder: Path, body: str, *questions: str, **keys: Any) -> list[dict[str, Any]]:
    """The rows in the order of the questions, without `seconds`."""
    system = build("command", folder, command=program(folder, body), **keys)
    asked = {f"q{number}": question for number, question in enumerate(questions or ["why?"])}
    rows = answers_of(system, asked)
    return [{key: value for key, value in rows[name].items() if key != "seconds"} for name in asked]


def find_kept(folder: Path, kept: MemoryAnswers, *questions: str) -> list[str]:
    """The questions whose answers are kept, so they would not be asked again."""
    system = build("command", folder, command=[sys.executable, "rag.py"], answers=kept)
    asked = {f"q{number}": question for number, question in enumerate(questions)}
    return system.find_answers(collection(asked))["answer"].to_list()


def wait_until(is_true: Callable[[], bool], seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_one_program_answers_all_questions(tmp_path: Path) -> None:
    hostile = "quotes \" ' \\ \n newline \U0001f600 {{ x }} \x00"
    rows = ask(tmp_path, ECHO, "a", hostile, "c")
    assert [row["answer"] for row in rows] == ["A", hostile.upper(), "C"]
    assert len({row["contexts"][0] for row in rows}) == 1


HITS = "for asked in said(): say({'hits': [{'id': 'd2', 's': 2, 't': 'a'}, {'id': 1, 's': 0.5, 't': 'b'}]})"


def test_a_program_can_be_a_retriever(tmp_path: Path) -> None:
    (row,) = ask(tmp_path, HITS, retrieves="$.hits[*].id", scores="$.hits[*].s", contexts="$.hits[*].t")
    assert row == {"context_ids": ["d2", "1"], "scores": [2.0, 0.5], "contexts": ["a", "b"]}
    (row,) = ask(tmp_path, "for asked in said(): say([])", retrieves="$[*].id")
    assert row == {"context_ids": []}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("{'hits': None}", "is not a retrieval: $.hits[*].id finds nothing: 'hits' is null, but '*' needs a list"),
        ("{'hits': [{'key': 'd1'}]}", "$.hits[*].id finds nothing: 'hits'[0] has no 'id'; it has 'key'"),
        ("{'hits': [{'id': None}]}", "$.hits[*].id[0] must be text or a whole number, not null"),
        ("{'hits': [{'id': 'd1', 's': float('nan')}]}", "$.hits[*].s[0] must be a number, not NaN"),
        ("{'answer': 'x'}", "$.hits[*].id finds nothing: the reply has no 'hits'; it has 'answer'"),
    ],
)
def test_a_line_without_a_ranking_is_an_error(tmp_path: Path, said: str, message: str) -> None:
    keys = {"retrieves": "$.hits[*].id", "scores": "$.hits[*].s"}
    (row,) = ask(tmp_path, f"for asked in said(): say({said})", **keys)
    assert set(row) == {"error"} and message in row["error"]


def test_keys_of_retrievers_need_the_path_of_the_ids() -> None:
    with pytest.raises(ValidationError, match="'scores' belong to the ids of 'retrieves'; add it"):
        build("command", command=["x"], scores="$.hits[*].s")
    with pytest.raises(ValidationError, match="'contexts' belong to the ids of 'retrieves'; add it"):
        build("command", command=["x"], contexts="$.hits[*].t")
    with pytest.raises(ValidationError, match="write the path of the ids in the reply, such as 'retrieves: "):
        build("command", command=["x"], retrieves=True)
    with pytest.raises(ValidationError, match="is not a valid path"):
        build("command", command=["x"], retrieves="$.hits[")


def test_a_program_can_be_started_for_each_question(tmp_path: Path) -> None:
    rows = ask(tmp_path, "say({'answer': str(len(sys.stdin.read().splitlines()))})", "a", "b", per="query")
    assert [row["answer"] for row in rows] == ["1", "1"]


def test_several_processes_share_the_questions(tmp_path: Path) -> None:
    body = """
    import pathlib
    for asked in said():
        pathlib.Path(f"here-{os.getpid()}").touch()
        while len(list(pathlib.Path().glob("here-*"))) < 3:
            time.sleep(0.01)
        say({"answer": str(os.getpid())})
    """
    rows = ask(tmp_path, body, *"abcdef", concurrency=3)
    assert len({row["answer"] for row in rows}) == 3


def test_plain_text_in_json_is_an_answer(tmp_path: Path) -> None:
    assert ask(tmp_path, "for asked in said(): say('\"because\"')") == [{"answer": "because"}]


def test_the_command_can_be_one_text_with_quotes(tmp_path: Path) -> None:
    program(tmp_path, ECHO)
    system = build("command", tmp_path, command=f'"{sys.executable}" "rag.py"')
    assert answers_of(system, {"q1": "a"})["q1"]["answer"] == "A"


def test_a_word_too_long_for_a_path_is_no_file(tmp_path: Path) -> None:
    code = f"import sys\nfor line in sys.stdin: print({'word ' * 1_000!r}, flush=True)"
    for command, shell in (([sys.executable, "-c", code], False), (shlex.join([sys.executable, "-c", code]), True)):
        path = write_spec(tmp_path, systems={"made": {"use": "command", "command": command, "shell": shell}})
        load(path)


def test_a_shell_runs_it_only_on_request(tmp_path: Path) -> None:
    program(tmp_path, ECHO)
    command = f"touch seen; exec '{sys.executable}' rag.py"
    system = build("command", tmp_path, command=command, shell=True)
    assert answers_of(system, {"q1": "a"})["q1"]["answer"] == "A"
    assert (tmp_path / "seen").exists()
    rows = ask(tmp_path, "for asked in said(): say({'answer': sys.argv[1]})")
    assert "error" in rows[0]
    system = build("command", tmp_path, command=[*program(tmp_path, "say({'answer': sys.argv[1]})"), "$(touch no)"])
    assert answers_of(system, {"q1": "a"})["q1"]["answer"] == "$(touch no)"
    assert not (tmp_path / "no").exists()


def test_the_line_of_a_question_is_a_template(tmp_path: Path) -> None:
    body = "for asked in said(): say({'answer': json.dumps(asked, sort_keys=True)})"
    template = {"id": "{{ query_id }}", "q": "{{ question }}", "docs": "{{ contexts }}", "k": 3}
    system = build("command", tmp_path, command=program(tmp_path, body), input=template)
    row = answers_of(system, collection({"q1": "why?"}, {"q1": ["a"]}))["q1"]
    assert row["answer"] == '{"docs": ["a"], "id": "q1", "k": 3, "q": "why?"}'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for asked in said(): say('thinking...')", "the program wrote a line that is not JSON: thinking..."),
        ("for asked in said(): say({'other': 1})", "no answer at any usual place; it has 'other'"),
        ("for asked in said(): say({'answer': None})", "the reply has no answer: it is null"),
        ("for asked in said(): say([1, 2])", "the reply is a list of 2"),
        ("for asked in said(): sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()", "a line that is not JSON"),
        ("sys.exit('no \\x1b[1mmodel')", "ended with exit code 1 before it answered: no \\x1b[1mmodel"),
        ("os.close(1); time.sleep(30)", "closed its output before it answered"),
        ("os.kill(os.getpid(), 9)", "was ended by signal 9 before it answered"),
        ("for asked in said(): raise KeyError('x')", "KeyError: 'x'"),
        (
            "print(file=sys.stderr); print('warm', file=sys.stderr, flush=True); time.sleep(30)",
            "no answer within 0.5 s",
        ),
    ],
)
def test_a_failure_becomes_the_error_of_its_query(tmp_path: Path, body: str, message: str) -> None:
    timeout = 0.5 if "sleep" in body and "close" not in body else 20
    (row,) = ask(tmp_path, body, timeout=timeout)
    assert set(row) == {"error"} and message in row["error"]


def test_the_next_question_gets_a_fresh_program(tmp_path: Path) -> None:
    body = """
    for asked in said():
        if asked["question"] == "bad":
            say("oops"); say({"answer": "too late"})
        elif asked["question"] == "crash":
            sys.exit(3)
        else:
            say({"answer": asked["question"]})
    """
    rows = ask(tmp_path, body, "a", "bad", "b", "crash", "c")
    assert [row.get("answer") for row in rows] == ["a", None, "b", None, "c"]
    assert "exit code 3" in rows[3]["error"]


def test_a_second_line_is_never_taken_for_the_next_answer(tmp_path: Path) -> None:
    body = """
    for asked in said():
        sys.stdout.write(json.dumps({"answer": "one"}) + "\\n" + json.dumps({"answer": "two"}) + "\\n")
        sys.stdout.flush()
    """
    kept = MemoryAnswers()
    rows = ask(tmp_path, body, "a", "b", "c", "d", answers=kept)
    assert [set(row) for row in rows] == [{"error"}] * 4
    assert any("wrote a second line for an earlier answer" in row["error"] for row in rows)
    assert any("more answers than it was asked questions" in row["error"] for row in rows)
    assert find_kept(tmp_path, kept, "a", "b", "c", "d") == []


@pytest.mark.parametrize("pause", [0.05, 0.3])
def test_answers_that_lag_one_behind_are_taken_back(tmp_path: Path, pause: float) -> None:
    body = f"""
    for asked in said():
        say({{"answer": asked["question"]}})
        time.sleep({pause})
        say({{"answer": "and " + asked["question"]}})
    """
    kept = MemoryAnswers()
    rows = ask(tmp_path, body, "a", "b", "c", "d", answers=kept)
    assert [set(row) for row in rows] == [{"error"}] * 4
    assert find_kept(tmp_path, kept, "a", "b", "c", "d") == []
    rows = ask(tmp_path, ECHO, "a", "b", answers=kept)
    assert [row["answer"] for row in rows] == ["A", "B"]


def test_an_answer_that_names_its_query_counts_only_for_that_query(tmp_path: Path) -> None:
    body = """
    for asked in said():
        say({"answer": asked["question"], "query_id": asked["id"]})
        time.sleep(0.05)
        say({"answer": "and " + asked["question"], "query_id": asked["id"]})
    """
    keys: dict[str, Any] = {"input": {"id": "{{ query_id }}", "question": "{{ question }}"}}
    rows = ask(tmp_path, body, "a", "b", "c", "d", **keys)
    assert [row.get("answer") for row in rows] == ["a", None, "c", None]
    assert rows[1]["error"].startswith("the program answered another query than 'q1': ")
    rows = ask(tmp_path, body.replace("and ", "").replace("time.sleep(0.05)", "continue"), "a", "b", **keys)
    assert [row["answer"] for row in rows] == ["a", "b"]


def test_a_last_line_that_is_not_an_answer_retracts_nothing(tmp_path: Path) -> None:
    kept = MemoryAnswers()
    rows = ask(tmp_path, ECHO + "say('goodbye')\nsay({'done': 2})\n", "a", "b", answers=kept)
    assert [row["answer"] for row in rows] == ["A", "B"]
    assert find_kept(tmp_path, kept, "a", "b") == ["A", "B"]


def test_a_program_that_answers_once_says_what_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.systems.command._PATIENCE", 0.2)
    body = "asked = next(said()); say({'answer': 'x'}); os.close(1); time.sleep(30)"
    rows = ask(tmp_path, body, "a", "b", timeout=10)
    assert rows[0] == {"answer": "x"}
    assert rows[1] == {"answer": "x"} or "write 'per: query'" in rows[1]["error"]


def test_errors_quote_the_end_of_the_error_stream(tmp_path: Path) -> None:
    body = """
    for number in range(1000):
        print("line", number, file=sys.stderr)
    sys.exit(2)
    """
    (row,) = ask(tmp_path, body)
    assert row["error"].startswith("the program ended with exit code 2 before it answered: ")
    assert row["error"].endswith("line 998 | line 999") and len(row["error"]) < 600


def test_a_full_error_stream_does_not_block(tmp_path: Path) -> None:
    body = """
    for asked in said():
        sys.stderr.write("x" * 1_000_000 + "\\n")
        say({"answer": "x"})
    """
    assert ask(tmp_path, body, "a", "b", timeout=20) == [{"answer": "x"}] * 2


def test_a_huge_line_is_read(tmp_path: Path) -> None:
    (row,) = ask(tmp_path, "for asked in said(): say({'answer': 'x' * 5_000_000})")
    assert len(row["answer"]) == 5_000_000


@pytest.mark.skipif(os.name != "posix", reason="process groups")
def test_a_timeout_ends_the_program_and_its_children(tmp_path: Path) -> None:
    body = """
    import pathlib, subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    pathlib.Path("pids.part").write_text(f"{os.getpid()} {child.pid}")
    pathlib.Path("pids.part").rename("pids")
    for asked in said():
        time.sleep(300)
    """
    system = build("command", tmp_path, command=program(tmp_path, body), timeout=3)
    rows = answers_of(system, {"q1": "a"})
    assert rows["q1"]["error"].startswith("the program gave no answer within 3 s and was ended; it must flush")
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert wait_until(lambda: not any(map(is_alive, pids)))


@pytest.mark.skipif(os.name != "posix", reason="sessions")
@pytest.mark.parametrize("per", ["run", "query"])
def test_a_child_that_outlives_the_program_does_not_block(tmp_path: Path, per: str) -> None:
    body = """
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], start_new_session=True)
    with open("pids", "a") as file:
        file.write(f"{child.pid}\\n")
    for asked in said():
        say({"answer": "x"})
    """
    try:
        assert ask(tmp_path, body, "a", "b", per=per, timeout=20) == [{"answer": "x"}] * 2
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert all(map(is_alive, pids)), "the program's streams were waited for"
    finally:
        for pid in (tmp_path / "pids").read_text().split():
            os.kill(int(pid), 9)


EVALUATE = """
import sys
from pathlib import Path
import polars as pl
from rageval_spec import registry
from rageval_spec.spec import load
from rageval_spec.store.replies import FileAnswers
from rageval_spec.plugin import Context
from rageval_spec.data.tables import Collection

folder = Path(sys.argv[1])
plugin = registry.load("systems", "command")
node = plugin.node_type(use="command", command=[sys.executable, "rag.py"])
queries = pl.DataFrame({"query_id": list("abcdefgh"), "text": list("ABCDEFGH")})
context = Context("tested", folder, answers=FileAnswers(folder, lambda: None))
print(plugin(node, context).answer(Collection("golden", load_queries=lambda: queries)).answers.write_json())
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_killed_evaluation_resumes_and_leaves_no_program_behind(tmp_path: Path) -> None:
    body = """
    import pathlib
    for asked in said():
        with open("asked", "a") as log:
            log.write(asked["question"])
        if asked["question"] == "E" and not pathlib.Path("resumed").exists():
            pathlib.Path("pid.part").write_text(str(os.getpid()))
            pathlib.Path("pid.part").rename("pid")
            next(said())
        say({"answer": asked["question"].lower()})
    """
    program(tmp_path, body)
    command = [sys.executable, "-c", EVALUATE, str(tmp_path)]
    evaluation = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    assert wait_until((tmp_path / "pid").exists, 60)
    evaluation.kill()
    evaluation.wait()
    assert wait_until(lambda: not is_alive(int((tmp_path / "pid").read_text())))
    (tmp_path / "resumed").touch()
    again = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert [row["answer"] for row in again] == list("abcdefgh")
    assert (tmp_path / "asked").read_text() == "ABCDE" + "EFGH"
    assert [row.pop("asked") is not None for row in again] == [True] * 4 + [False] * 4
    later = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert all(row.pop("asked") for row in later) and later == again


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_program_that_does_not_read_ends_with_a_killed_evaluation_as_do_its_children(
    tmp_path: Path, number: int
) -> None:
    body = """
    import pathlib, signal, subprocess, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path("pids.part").write_text(f"{os.getpid()} {child.pid}")
    pathlib.Path("pids.part").rename("pids")
    time.sleep(600)
    """
    program(tmp_path, body)
    evaluation = subprocess.Popen([sys.executable, "-c", EVALUATE, str(tmp_path)], stdout=subprocess.DEVNULL)
    assert wait_until((tmp_path / "pids").exists, 60)
    evaluation.send_signal(number)
    evaluation.wait()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert wait_until(lambda: not any(map(is_alive, pids)), 60)


def test_the_program_ends_with_the_questions(tmp_path: Path) -> None:
    body = ECHO + "open('ended', 'w').close()\n"
    ask(tmp_path, body)
    assert (tmp_path / "ended").exists()


def test_a_program_that_does_not_exit_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.systems.command._PATIENCE", 0.2)
    body = ECHO + "time.sleep(300)\n"
    (row,) = ask(tmp_path, body)
    assert wait_until(lambda: not is_alive(int(row["contexts"][0])))


def test_a_missing_program_stops_the_evaluation(tmp_path: Path) -> None:
    system = build("command", tmp_path, command=["no-such-program", "x"])
    with pytest.raises(
        RagevalError, match=r"systems\.tested\.command: cannot start 'no-such-program': there is no such program"
    ):
        system.answer(collection({"q1": "a"}))


@pytest.mark.skipif(os.name != "posix", reason="executable scripts")
def test_a_program_next_to_the_spec_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "bin" / "rag"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\n{HEAD}{ECHO}")
    script.chmod(0o755)
    monkeypatch.chdir("/")
    system = build("command", tmp_path, command=["bin/rag"])
    assert [file.path for file in system.inputs()] == [script]
    assert answers_of(system, {"q1": "a"})["q1"]["answer"] == "A"


def test_its_files_are_inputs_and_part_of_the_key(tmp_path: Path) -> None:
    command = [*program(tmp_path, ECHO), "--index", "index.bin", "more.sh", "-x.py"]
    (tmp_path / "index.bin").write_bytes(b"1")
    (tmp_path / "more.sh").touch()
    system: Any = build("command", tmp_path, command=command)
    assert [(file.path.name, file.key) for file in system.inputs()] == [
        ("rag.py", ("command", 1)),
        ("index.bin", ("command", 3)),
        ("more.sh", ("command", 4)),
    ]
    first = system.key
    (tmp_path / "index.bin").write_bytes(b"2")
    assert system.key != first
    missing: Any = build("command", tmp_path, command="python gone.py")
    assert [(file.path.name, file.key) for file in missing.inputs()] == [("gone.py", ("command",))]


def test_files_in_a_shell_command_are_part_of_the_key(tmp_path: Path) -> None:
    program(tmp_path, ECHO)
    for name in ("index.bin", "my notes.txt", "out.log", "err.log", "more.log"):
        (tmp_path / name).write_bytes(b"1")
    command = "cd .;python3 rag.py<index.bin|cat - 'my notes.txt' 2>err.log >>more.log > out.log && ls gone.py rag.py"
    system: Any = build("command", tmp_path, command=command, shell=True)
    assert [file.path.name for file in system.inputs()] == ["rag.py", "index.bin", "my notes.txt"]
    assert {file.key for file in system.inputs()} == {("command",)}
    first = system.key
    (tmp_path / "rag.py").write_text("changed")
    assert system.key != first


def test_answered_questions_are_not_asked_again(tmp_path: Path) -> None:
    kept = MemoryAnswers()
    command = program(tmp_path, "for asked in said(): say({'answer': str(os.getpid())})")
    first = answers_of(build("command", tmp_path, command=command, answers=kept), {"q1": "a"})
    assert answers_of(build("command", tmp_path, command=command, answers=kept), {"q9": "a"})["q9"] == first["q1"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"command": []}, "at least 1"),
        ({"command": ["python", "a\0b"]}, "write the program to run"),
        ({"command": " "}, "write the program to run"),
        ({"command": "python 'rag.py"}, "its quotes do not match"),
        ({"command": ["python"], "shell": True}, "a shell needs the command as one text"),
        ({"command": "python", "input": {"q": 1}}, "it does not contain '{{ question }}'"),
        ({"command": "python", "per": "line"}, "'run' or 'query'"),
    ],
)
def test_a_wrong_block_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        build("command", **keys)
    assert message in str(caught.value)


def test_a_program_that_reads_all_before_it_answers_says_what_to_write(tmp_path: Path) -> None:
    body = "lines = sys.stdin.readlines()\nfor line in lines: say({'answer': line})"
    (row,) = ask(tmp_path, body, "a", timeout=2)
    assert row["error"].startswith("the program gave no answer within 2 s and was ended; it must flush its output")
    assert "write 'per: query'" in row["error"]
    (row,) = ask(tmp_path, body, "a", per="query")
    assert "a" in row["answer"]


def test_a_missing_program_is_reported_before_a_run(tmp_path: Path) -> None:
    def check(*command: str, **keys: Any) -> str | None:
        return build("command", tmp_path, command=command, **keys).check()

    assert check(sys.executable, "x") is None
    assert check("sh") is None
    assert check("no-such-program") == "command: there is no program 'no-such-program' on the PATH"
    (tmp_path / "rag").touch()
    assert (check("rag") or "").endswith("on the PATH; write ./rag for the one next to the spec")
    assert check("./rag") == "command: './rag' is not executable; run chmod +x on it"
    (tmp_path / "rag").chmod(0o755)
    assert check("./rag") is None
    assert check(str(tmp_path / "gone")) == f"command: there is no program '{tmp_path / 'gone'}'"
    for gone in ("bin/gone", "./gone"):  # missing inputs, which are reported elsewhere
        assert check(gone) is None
        assert [file.path for file in build("command", tmp_path, command=[gone]).inputs()] == [tmp_path / gone]
    assert build("command", tmp_path, command="no-such-program | cat", shell=True).check() is None


def test_code_that_a_command_names_without_being_a_word_of_it_is_found(tmp_path: Path) -> None:
    for name in ("run.py", "steps.py", "prompt.txt", "unused.py"):
        (tmp_path / name).write_text("import steps\n" if name == "run.py" else "")
    for command in (["python", "run.py", "--prompt=prompt.txt"], ["python", "-m", "run", "--prompt=prompt.txt"]):
        system: Any = build("command", tmp_path, command=command)
        assert {path.name for path in system.list_code()} - {"run.py"} == {"steps.py", "prompt.txt"}
    shell: Any = build("command", tmp_path, command="python -m run --prompt=prompt.txt > out.txt", shell=True)
    assert {path.name for path in shell.list_code()} == {"run.py", "steps.py", "prompt.txt"}
