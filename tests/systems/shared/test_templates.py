from __future__ import annotations

import pytest

from rageval_spec.systems.shared.templates import fill_in, list_variables


def test_templates_keep_types_and_fill_in_texts_once() -> None:
    told = {"question": "{{ query_id }}", "query_id": "q1", "contexts": ["a", "b"]}
    template = {"k {{query_id}}": ["{{ question }}", "<{{  question  }}>", "{{contexts}}", "{{ contexts }}!"], "n": 3}
    filled = {"k q1": ["{{ query_id }}", "<{{ query_id }}>", ["a", "b"], "a\n\nb!"], "n": 3}
    assert fill_in(template, told) == filled
    assert list_variables(template) == {"question", "query_id", "contexts"}
    with pytest.raises(ValueError, match=r"'{{ 7\*7 }}' is not a variable"):
        list_variables({"x": "{{ 7*7 }}"})
