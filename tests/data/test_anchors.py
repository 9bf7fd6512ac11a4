"""Frozen anchors are read back as they were written, or refused with the reason."""

from __future__ import annotations

import pytest

from rageval_spec.data.anchors import Anchor, AnchorSet
from rageval_spec.errors import DataError

ANCHOR = Anchor("golden", "v1", "q1", "Who?", "Ada.\u202e", 1.0, 0.75, ("A.",), None, ("Ada",), None, {"topic": "x"})
SET = AnchorSet(1, "fast", "faithfulness", "c1", {"use": "overlap"}, "d1", 0.5, (ANCHOR,))


def test_anchors_survive_writing_and_reading() -> None:
    assert AnchorSet.parse(SET.dump(), "anchors.json") == SET
    assert SET.dump().decode().replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (SET.dump()[:-30], "anchors.json is not JSON: .*; is it complete"),
        (b"[]", "anchors.json is not a set of anchors of format_version 1; make one with: rageval-spec calibrate"),
        (b'{"format_version": 1, "judges": []}', "is not a set of anchors"),
        (b'{"format_version": 2, "anchors": []}', "is not a set of anchors of format_version 1"),
        (SET.dump().replace(b"0.75", b'"x"'), r"anchors\.0\.value: "),
        (AnchorSet(1, "a", "b", "c", {}, "d", 0.5, ()).dump(), "anchors.json has no anchors"),
    ],
)
def test_what_is_no_set_of_anchors_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        AnchorSet.parse(content, "anchors.json")
