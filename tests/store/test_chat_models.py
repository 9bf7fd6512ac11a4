from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rageval_spec.data.reply_counts import AskedModel, ReplyCounts
from rageval_spec.store.chat_models import FILE, add_asked, list_asked
from rageval_spec.store.inventory import list_entries
from rageval_spec.store.replies import FOLDER

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
    (tmp_path / FOLDER / FILE).write_bytes(b"no database" * 100)
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
