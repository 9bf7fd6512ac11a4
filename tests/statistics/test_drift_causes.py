"""What moved, for each kind of evidence."""

from __future__ import annotations

from itertools import product

import pytest

from rageval_spec.statistics.drift_causes import Evidence, attribute_change

QUIET = Evidence(False, False, False, False, False, False)


@pytest.mark.parametrize(
    ("seen", "moved"),
    [
        (QUIET._replace(comparable=True), ("app",)),
        (QUIET._replace(comparable=True, anchors=True), ("judge",)),
        (QUIET._replace(traffic=True), ("traffic",)),
        (QUIET._replace(traffic=True, comparable=True), ("traffic", "app")),
        (QUIET._replace(comparable=True, model_version=True), ("model",)),
        (QUIET._replace(comparable=True, lengths=True), ("model",)),
        (QUIET._replace(comparable=True, lengths=True, app_version=True), ("app",)),
        (QUIET._replace(comparable=True, model_version=True, app_version=True), ("model", "app")),
        (QUIET._replace(comparable=None), ("app",)),
        (QUIET, ()),
        (Evidence(), ()),
    ],
)
def test_the_parts_that_moved(seen: Evidence, moved: tuple[str, ...]) -> None:
    assert tuple(attribute_change(seen)) == moved


def test_every_part_has_a_reason_and_the_judge_is_named_whenever_anchors_moved() -> None:
    for values in product((True, False, None), repeat=6):
        found = attribute_change(Evidence(*values))
        assert all(found.values())
        assert ("judge" in found) == (values[0] is True)
        assert ("traffic" in found) == (values[1] is True)
        assert "app" not in found or values[2] is not False
