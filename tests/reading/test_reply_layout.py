from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.tables import ANSWERS, LATER_ANSWERS
from rageval_spec.reading.answer_rows import AnswerRow, UnusableReplyError, table_of
from rageval_spec.reading.json_path import parse_path
from rageval_spec.reading.reply_layout import ReplyLayout
from tests.reading.any_json import ANY_JSON

LAYOUTS = [ReplyLayout(), ReplyLayout(**{part: parse_path(part) for part in ("answer", "contexts", "cost")})]


@given(content=ANY_JSON, layout=st.sampled_from(LAYOUTS))
def test_any_reply_is_a_row_that_can_be_kept_or_is_refused(content: Any, layout: ReplyLayout) -> None:
    try:
        row = layout.read(content)
    except UnusableReplyError as error:
        assert str(error)
        return
    assert row.answer is not None
    assert AnswerRow.unpack(row.pack()) == row
    table = table_of([("q1", row)])
    assert tuple(table.columns) == (*ANSWERS, *LATER_ANSWERS) and table["answer"].to_list() == [row.answer]
    for number in (row.input_tokens, row.output_tokens, row.cost):
        assert number is None or (math.isfinite(number) and number >= 0)
