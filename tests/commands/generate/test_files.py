from pathlib import Path

import pytest

from rageval_spec.commands.generate.files import Places, check_output, write_rows, write_sides
from rageval_spec.errors import UsageError


def test_files_lie_beside_the_questions() -> None:
    assert Places(Path("sets/my.golden.jsonl"), None).beside("rejected") == Path("sets/my.golden.rejected.jsonl")


def test_a_file_that_exists_is_replaced_only_on_demand(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "golden.jsonl", [{"question": "é"}])
    assert path.read_text("utf-8") == '{"question": "é"}\n'
    with pytest.raises(UsageError, match="people may have edited it"):
        check_output(path, force=False)
    check_output(path, force=True)
    check_output(path, force=False, dry_run=True)
    with pytest.raises(UsageError, match=r"name a file that ends in \.jsonl"):
        check_output(tmp_path / "golden.csv", force=False)


def test_each_set_of_a_split_has_its_file_and_sets_of_an_earlier_one_are_removed(tmp_path: Path) -> None:
    places = Places(tmp_path / "golden.jsonl", None)
    rows = [{"split": "test", "n": 1}, {"split": "validation", "n": 2}, {"split": "test", "n": 3}]
    assert [path.name for path in write_sides(rows, places)] == ["golden.validation.jsonl", "golden.test.jsonl"]
    assert places.beside("test").read_text() == '{"split": "test", "n": 1}\n{"split": "test", "n": 3}\n'
    assert [*write_sides([{"n": 1}], places)] == []
    assert not places.beside("test").exists()
