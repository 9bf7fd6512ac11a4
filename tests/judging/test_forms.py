from __future__ import annotations

from rageval_spec.endpoints.replies import describe_format
from rageval_spec.judging.forms import REMARK, TEXT, make_list_schema, make_schema


def test_an_object_has_its_keys_in_order_and_all_are_required() -> None:
    schema = make_schema(reason=REMARK, claim=TEXT)
    assert list(schema["properties"]) == schema["required"] == ["reason", "claim"]
    assert schema["additionalProperties"] is False
    assert describe_format(schema) == '{"reason": "<text>", "claim": "<text>"}'


def test_a_list_can_have_a_fixed_length() -> None:
    assert make_list_schema(TEXT) == {"type": "array", "items": TEXT}
    assert describe_format(make_list_schema(TEXT, 2)) == '["<text>", exactly 2 of them]'
