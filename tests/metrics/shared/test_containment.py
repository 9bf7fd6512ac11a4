from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.metrics.comparing import answer_metric


@pytest.mark.parametrize("value", ["", [], ["a", ""]])
def test_an_empty_text_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="every answer contains an empty text"):
        answer_metric("contains", value=value)
