from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.inference.architectures.shared.sizes import read_size
from rageval_spec.inference.checkpoint_errors import DamagedFile


def test_a_size_or_its_default() -> None:
    assert read_size({"layers": 3}, "layers", 2) == 3
    assert read_size({}, "layers", 2) == 2


@pytest.mark.parametrize(("value", "found"), [(None, "is missing"), (0, "but is 0"), (True, "True"), (2.5, "2.5")])
def test_anything_else_is_refused_with_its_key(value: Any, found: str) -> None:
    with pytest.raises(DamagedFile, match=rf"config\.json: 'layers' .*{found}"):
        read_size({} if value is None else {"layers": value}, "layers")
