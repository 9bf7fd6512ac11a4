""""""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Thread, Timer

import pytest

from rageval_spec.data.chat import AskedModel, ReplyCounts
from rageval_spec.errors import RagevalError, StoreWarning
from rageval_spec.plugin import Answers
from rageval_spec.store.inventory import list_entries
from rageval_spec.store.replies import (
    CHAT_MODELS_FILE,
    CLAIMS_FILE,
    REPLIES_FILE,
    REPLIES_FOLDER,
    Claims,
    FileAnswers,
    add_asked,
    list_asked,
)
from rageval_spec.store.store import MemoryAnswers, PostgresStore, open_store

MODEL, OTHER = "a" * 64, "b" * 64


def open_file(folder: Path) -> FileAnswers:
    return FileAnswers(folder, lambda: folder.mkdir(parents=True, exist_ok=True))


@pytest.fixture(params=["memory", "file", "postgres"])
def answers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Answers]:
    if request.param == "memory":
        yield MemoryAnswers()
        return
    if request.param == "postgres":
        with closing(PostgresStore(tmp_path, request.getfixturevalue("database"))) as store:
            yield store.answers
        return
    kept = open_file(tmp_path / "answers")
    yield kept
    kept.close()


def test_an_answer_is_found_only_for_its_model(answers: Answers) -> None:
    assert answers.find(MODEL, [b"q1"]) == {}
    answers.keep(MODEL, {b"q1": b"one", b"q2": b"\x00\xff"})
    assert answers.find(MODEL, [b"q2", b"q3", b"q1"]) == {b"q1": b"one", b"q2": b"\x00\xff"}
    assert answers.find(OTHER, [b"q1"]) == {}


def test_whether_a_model_has_any_answer(answers: Answers) -> None:
    assert not answers.has_any(MODEL)
    answers.keep(MODEL, {b"q1": b"one"})
    assert (answers.has_any(MODEL), answers.has_any(OTHER)) == (True, False)


def test_a_later_answer_replaces_an_earlier_one(answers: Answers) -> None:
    answers.keep(MODEL, {b"q": b"old"})
    answers.keep(MODEL, {b"q": b"new"})
    assert answers.find(MODEL, [b"q"]) == {b"q": b"new"}


def test_dropped_answers_are_gone(answers: Answers) -> None:
    everything = {number.to_bytes(4, "big"): b"one" for number in range(10_000)}
    answers.keep(MODEL, everything | {b"kept": b"two"})
    answers.keep(OTHER, everything)
    answers.drop(MODEL, [*everything, b"absent"])
    assert answers.find(MODEL, [*everything, b"kept"]) == {b"kept": b"two"}
    answers.drop(MODEL, [b"kept"])
    assert (answers.has_any(MODEL), answers.has_any(OTHER)) == (False, True)
    answers.keep(MODEL, {b"q": b"again"})
    assert answers.find(MODEL, [b"q"]) == {b"q": b"again"}


def test_more_questions_than_one_query_takes(answers: Answers) -> None:
    everything = {number.to_bytes(4, "big"): str(number).encode() for number in range(10_000)}
    answers.keep(MODEL, everything)
    assert answers.find(MODEL, [*everything, b"absent"]) == everything


def test_nothing_is_written_before_something_is_kept(tmp_path: Path) -> None:
    assert not open_file(tmp_path / "answers").has_any(MODEL)
    open_file(tmp_path / "answers").find(MODEL, [b"q"])
    assert list(tmp_path.iterdir()) == []


def test_answers_survive_a_killed_process(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from rageval_spec.store.store import open_store\n"
        f"open_store(Path(sys.argv[1])).answers.keep({MODEL!r}, {{b'q': b'kept'}})\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program, tmp_path / "store"], check=False)
    assert ended.returncode == -signal.SIGKILL
    store = open_store(tmp_path / "store")
    assert store.answers.find(MODEL, [b"q"]) == {b"q": b"kept"}
    store.close()


def test_several_threads_and_connections_can_write(tmp_path: Path) -> None:
    opened = [open_file(tmp_path) for _ in range(2)]

    def keep(number: int) -> None:
        for step in range(50):
            opened[number % 2].keep(MODEL, {f"{number}-{step}".encode(): b"x"})

    threads = [Thread(target=keep, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    questions = [f"{number}-{step}".encode() for number in range(4) for step in range(50)]
    assert len(opened[0].find(MODEL, questions)) == 200
    for answers in opened:
        answers.close()


def test_a_damaged_file_is_set_aside_and_kept(tmp_path: Path) -> None:
    (tmp_path / REPLIES_FILE).write_bytes(b"this is no database" * 100)
    answers = open_file(tmp_path)
    with pytest.warns(StoreWarning, match="is damaged .* it was renamed to answers"):
        assert answers.find(MODEL, [b"q"]) == {}
    answers.keep(MODEL, {b"q": b"new"})
    assert answers.find(MODEL, [b"q"]) == {b"q": b"new"}
    answers.close()
    (aside,) = tmp_path.glob("*.damaged-*")
    assert aside.read_bytes().startswith(b"this is no database")


def test_a_full_disk_is_reported_and_stored_answers_stay(tmp_path: Path) -> None:
    answers = open_file(tmp_path)
    answers.keep(MODEL, {b"q": b"kept"})
    answers.close()
    with sqlite3.connect(tmp_path / REPLIES_FILE) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.close()
    answers._use(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages + 2}"))
    with pytest.raises(RagevalError, match=r"answers\.sqlite cannot be used: database or disk is full; choose another"):
        answers.keep(MODEL, {b"big": bytes(1_000_000)})
    assert answers.find(MODEL, [b"q", b"big"]) == {b"q": b"kept"}
    answers.close()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(RagevalError, match="cannot be used"):
        FileAnswers(folder, lambda: None).keep(MODEL, {b"q": b"a"})


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("in the way")
    with pytest.raises(RagevalError, match=r"cannot be used: .*choose another folder with --store"):
        open_file(tmp_path / "answers").keep(MODEL, {b"q": b"a"})


def hold(path: Path) -> sqlite3.Connection:
    """A second process that is about to write to a file that has just been created."""
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("CREATE TABLE of_somebody_else (x)")
    holder.execute("BEGIN IMMEDIATE")
    return holder


def test_opening_waits_for_a_process_that_is_creating_the_file(tmp_path: Path) -> None:
    holder = hold(tmp_path / REPLIES_FILE)
    release = Timer(0.2, lambda: holder.execute("COMMIT"))
    release.start()
    answers = open_file(tmp_path)
    answers.keep(MODEL, {b"q": b"a"})
    release.join()
    holder.close()
    assert answers.find(MODEL, [b"q"]) == {b"q": b"a"}
    answers.close()


def test_a_file_that_stays_locked_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.store.replies.PATIENCE", 0.05)
    holder = hold(tmp_path / REPLIES_FILE)
    with pytest.raises(
        RagevalError, match=r"answers\.sqlite cannot be used: database is locked; choose another folder"
    ):
        open_file(tmp_path).keep(MODEL, {b"q": b"a"})
    holder.close()


def damage_behind_the_back_of(answers: FileAnswers, path: Path) -> list[bytes]:
    """Damage an open file, except for its first page, and return the questions whose answers are lost."""
    questions = [number.to_bytes(4, "big") for number in range(3000)]
    before = open_file(path.parent)
    before.keep(MODEL, dict.fromkeys(questions, b"x" * 500))
    before.close()
    answers.find(OTHER, [b"q"])
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (len(content) - 4096))
    return questions


def test_a_process_with_the_damaged_file_open_switches_to_the_new_one(tmp_path: Path) -> None:
    late = open_file(tmp_path)
    questions = damage_behind_the_back_of(late, tmp_path / REPLIES_FILE)
    early = open_file(tmp_path)
    with pytest.warns(StoreWarning, match="is damaged"):
        assert early.find(MODEL, questions) == {}
    early.keep(MODEL, {b"new": b"early"})
    late.keep(MODEL, {b"newer": b"late"})
    assert late.find(MODEL, [b"new", *questions]) == {b"new": b"early"}
    assert early.find(MODEL, [b"newer"]) == {b"newer": b"late"}
    early.close()
    late.close()
    assert len([*tmp_path.glob("*.damaged-*")]) == 1


def test_two_processes_that_find_a_damaged_file_set_it_aside_once(tmp_path: Path) -> None:
    late = open_file(tmp_path)
    questions = damage_behind_the_back_of(late, tmp_path / REPLIES_FILE)
    early = open_file(tmp_path)
    counts: list[int] = []

    def count_late(connection: sqlite3.Connection) -> int:
        if not counts:
            counts.append(len(early.find(MODEL, questions)))
            early.keep(MODEL, {b"new": b"early"})
        return int(connection.execute("SELECT count(DISTINCT answer) FROM answers").fetchone()[0])

    with pytest.warns(StoreWarning, match="is damaged") as warned:
        assert late._use(count_late) == 1
    assert len(warned) == 1
    late.keep(MODEL, {b"newer": b"late"})
    assert early.find(MODEL, [b"new", b"newer"]) == {b"new": b"early", b"newer": b"late"}
    early.close()
    late.close()
    assert len([*tmp_path.glob("*.damaged-*")]) == 1


CLAIMED_MODEL, QUESTION = "a" * 64, b"why?"
HOLDER = """
import sys
import time
from pathlib import Path
from rageval_spec.store.replies import Claims
claims = Claims(Path(sys.argv[1]), lambda: None)
print(claims.claim("a" * 64, b"why?"), flush=True)
sys.stdin.readline()
claims.release("a" * 64, b"why?")
print("released", flush=True)
sys.stdin.readline()
"""


def start_holder(folder: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    return holder


def say(holder: subprocess.Popen[str]) -> str:
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    return holder.stdout.readline()


def test_a_folder_that_cannot_be_written_is_not_taken_for_a_claim_of_another_process(tmp_path: Path) -> None:
    """Waiting for its release would never end: both are the error EACCES."""

    def refuse() -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    assert Claims(tmp_path, refuse).claim(CLAIMED_MODEL, QUESTION)


def test_a_claimed_question_is_free_when_the_other_process_ends(tmp_path: Path) -> None:
    claims = Claims(tmp_path, lambda: None)
    with start_holder(tmp_path) as holder:
        assert not claims.claim(CLAIMED_MODEL, QUESTION)
        assert claims.claim(CLAIMED_MODEL, b"another?")
        assert claims.claim("b" * 64, QUESTION)
        assert say(holder) == "released\n"
        assert claims.claim(CLAIMED_MODEL, QUESTION)
        holder.kill()
    claims.close()


def test_a_killed_process_holds_no_claim(tmp_path: Path) -> None:
    claims = Claims(tmp_path, lambda: None)
    with start_holder(tmp_path) as holder:
        assert not claims.claim(CLAIMED_MODEL, QUESTION)
        holder.kill()
    assert claims.claim(CLAIMED_MODEL, QUESTION)
    claims.close()


def test_claims_are_granted_if_the_file_cannot_be_locked(tmp_path: Path) -> None:
    (tmp_path / CLAIMS_FILE).mkdir()
    claims = Claims(tmp_path, lambda: None)
    assert claims.claim(CLAIMED_MODEL, QUESTION)
    claims.release(CLAIMED_MODEL, QUESTION)
    claims.close()


FAST = AskedModel("fast", "http://a/v1", 40, 20.0, ReplyCounts(38, 1, 1, 3))
SLOW = AskedModel("slow", "http://a/v1", 2, 9.0, ReplyCounts(2))


def test_evaluations_add_up_for_each_model_and_endpoint(tmp_path: Path) -> None:
    elsewhere = AskedModel("fast", "http://b/v1", 1, 0.5, ReplyCounts(1))
    assert add_asked(tmp_path, [FAST, SLOW])
    assert add_asked(tmp_path, [FAST, elsewhere])
    twice = AskedModel("fast", "http://a/v1", 80, 40.0, ReplyCounts(76, 2, 2, 6))
    assert list_asked(tmp_path) == [twice, elsewhere, SLOW]
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_a_store_that_does_not_exist_knows_no_model_and_stays_absent(tmp_path: Path) -> None:
    assert list_asked(tmp_path / "none") == []
    assert add_asked(tmp_path / "none", [])
    assert not (tmp_path / "none").exists()


def test_a_damaged_file_is_ignored(tmp_path: Path) -> None:
    add_asked(tmp_path, [FAST])
    (tmp_path / REPLIES_FOLDER / CHAT_MODELS_FILE).write_bytes(b"no database" * 100)
    assert list_asked(tmp_path) == []
    assert not add_asked(tmp_path, [FAST])


def test_a_folder_that_cannot_be_made_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not add_asked(tmp_path / "file", [FAST])


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: add_asked(tmp_path, [SLOW]), range(20)))
    (found,) = list_asked(tmp_path)
    assert (found.calls, found.seconds, found.replies.first) == (40, 180.0, 40)


def test_it_is_no_reply_in_the_list_of_what_a_store_holds(tmp_path: Path) -> None:
    add_asked(tmp_path, [FAST])
    assert list_entries(tmp_path) == []


def test_a_thread_does_for_those_that_wait_what_they_wait_for(tmp_path: Path) -> None:
    """While the file is in use, threads wait with answers to keep and to find; one of them does it for all."""
    answers = FileAnswers(tmp_path, lambda: tmp_path)
    answers.keep("model", {b"first": b"0"})
    begun: list[str] = []
    with ThreadPoolExecutor(8) as pool:
        with answers._lock:
            kept = [pool.submit(answers.keep, f"model {n % 2}", {b"%d" % n: b"answer"}) for n in range(4)]
            found = [pool.submit(answers.find, "model", (b"first", b"absent")) for _ in range(4)]
            while len(answers._kept) + len(answers._wanted) < 8:
                time.sleep(0.001)
            assert answers._connection is not None
            answers._connection.set_trace_callback(begun.append)
        assert [one.result() for one in kept] == [None] * 4
        assert [dict(one.result()) for one in found] == [{b"first": b"0"}] * 4
    assert sum(statement == "COMMIT" for statement in begun) == 1
    assert sum(statement.startswith("SELECT question") for statement in begun) == 1
    assert answers.find("model 1", (b"1", b"2", b"3")) == {b"1": b"answer", b"3": b"answer"}
    answers.close()


def test_what_cannot_be_kept_is_not_kept_for_another(tmp_path: Path) -> None:
    answers = FileAnswers(tmp_path, lambda: tmp_path)
    answers.keep("model", {b"first": b"0"})
    with pytest.raises(RagevalError, match="cannot be used"):
        answers.keep("model", {b"wrong": None})  # type: ignore[dict-item]
    answers.keep("model", {b"second": b"2"})
    assert answers.find("model", (b"first", b"wrong", b"second")) == {b"first": b"0", b"second": b"2"}
    answers.close()
