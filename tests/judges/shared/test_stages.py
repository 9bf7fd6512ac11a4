from __future__ import annotations

import pytest
from pydantic import ValidationError

from rageval_spec.judges.shared.stages import FaithfulnessStage, RelevanceStage, RetrievalStage, Stage


@pytest.mark.parametrize(
    ("stage", "keys", "message"),
    [
        (
            RetrievalStage,
            {"reject": 0.4},
            "reject (0.4) is above person (0.35): 0.35 is the default of 'person'; "
            "write 'person: 0.4' or more, or 'person: null' to disable it",
        ),
        (
            RetrievalStage,
            {"person": 0.1},
            "reject (0.15) is above person (0.1): 0.15 is the default of 'reject'; "
            "write 'reject: 0.1' or less, or 'reject: null' to disable it",
        ),
        (
            RelevanceStage,
            {"accept": 0.2},
            "person (0.3) is above accept (0.2): 0.3 is the default of 'person'; "
            "write 'person: 0.2' or less, or 'person: null' to disable it",
        ),
        (FaithfulnessStage, {"reject": 0.5, "person": 0.4}, "reject (0.5) is above person (0.4)"),
        (Stage, {"reject": 0.5, "accept": 0.4}, "reject (0.5) is above accept (0.4)"),
    ],
)
def test_bounds_in_the_wrong_order_are_refused_with_what_to_write(
    stage: type[Stage], keys: dict[str, float], message: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        stage.model_validate(keys)
    assert raised.value.errors()[0]["msg"] == f"Value error, {message}"


def test_bounds_that_the_message_advises_are_accepted() -> None:
    for person in (0.4, 0.9, None):
        assert RetrievalStage(reject=0.4, person=person).reject == 0.4
    assert RelevanceStage(accept=0.2, person=None).accept == 0.2
