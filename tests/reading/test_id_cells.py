from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.id_cells import split_ids


@pytest.mark.parametrize(
    ("cell", "ids"),
    [
        ("d1", ["d1"]),
        ("d1, d2", ["d1", "d2"]),
        ("d1; d2,x", ["d1", "d2,x"]),
        ("d1\nd2;x", ["d1", "d2;x"]),
        ("d1 | d2", ["d1", "d2"]),
        ('["d1", "d,2"]', ["d1", "d,2"]),
        ("['d1', 'd2']", ["d1", "d2"]),
        ("['d1'\n 'd2']", ["d1", "d2"]),
        ("[1, 2]", ["1", "2"]),
        ("[1 2]", ["1", "2"]),
        ("[1.0, 2.]", ["1", "2"]),
        ("[7]", ["7"]),
        ('{"d1": 2}', {"d1": 2}),
        (7, 7),
        (None, None),
        ("", []),
        (" , ", []),
    ],
)
def test_ids_in_one_cell(cell: Any, ids: Any) -> None:
    assert split_ids("f:1", "'relevant'", cell) == ids


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ('{"d1": ', "f:1: 'relevant' is not JSON"),
        ("['d1', nan]", "f:1: 'relevant' begins like a list but is not one; write it as JSON"),
        ("('d1', 'd2')", "f:1: 'relevant' begins like a list but is not one; write it as JSON"),
        ("[d1, d2]", "f:1: 'relevant' begins like a list but is not one; write it as JSON"),
    ],
)
def test_a_list_that_is_none_is_an_error(cell: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        split_ids("f:1", "'relevant'", cell)
