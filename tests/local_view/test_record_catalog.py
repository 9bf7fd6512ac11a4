from pathlib import Path

from rageval_spec.history.evaluation_lookup import SearchPlaces
from rageval_spec.local_view.record_catalog import KnownRecord, RecordCatalog
from tests.answered_evaluation import bridges
from tests.history.records import NOON, make_id
from tests.local_view.viewing import save


def describe(record: str) -> KnownRecord:
    """A record of which nothing but the id is known."""
    return KnownRecord(record, NOON)


def test_a_record_is_called_by_its_label_else_its_folder_else_its_id(tmp_path: Path) -> None:
    assert describe(make_id(3)).title == make_id(3)[:8]
    save(bridges(), tmp_path / "here", 1, "main")
    save(bridges(), tmp_path / "there", 2, "x")
    (tmp_path / "there" / "record.json").unlink()
    places = SearchPlaces(tmp_path / "labels", None, tmp_path)
    records, has_older = RecordCatalog(places, [tmp_path / "here", tmp_path / "there"]).list_records()
    assert {one.title for one in records} == {"main", "there"}
    assert not has_older
