from __future__ import annotations

import pytest

from rageval_spec.systems.shared.templates import fill_in, find_unknown, list_variables


def test_templates_keep_types_and_fill_in_texts_once() -> None:
    told = {"question": "{{ query_id }}", "query_id": "q1", "contexts": ["a", "b"]}
    template = {"k {{query_id}}": ["{{ question }}", "<{{  question  }}>", "{{contexts}}", "{{ contexts }}!"], "n": 3}
    filled = {"k q1": ["{{ query_id }}", "<{{ query_id }}>", ["a", "b"], "a\n\nb!"], "n": 3}
    assert fill_in(template, told) == filled
    assert list_variables(template) == {"question", "query_id", "contexts"}
    with pytest.raises(
        ValueError,
        match="holds no name; write one of question, query_id, contexts, messages, history, or a column's name",
    ):
        list_variables({"x": "{{ }}"})


def test_columns_keep_their_types_and_become_text_inside_a_text() -> None:
    told = {"tags": ["a", "b"], "level": 3, "is open": True, "note": None, "filter": {"lang": "de", "ü": "ß"}}
    template = {"all": ["{{ tags }}", "{{level}}", "{{ is open }}", "{{note}}", "{{ filter }}"], 1: "n"}
    assert fill_in(template, told) == {"all": [["a", "b"], 3, True, None, {"lang": "de", "ü": "ß"}], 1: "n"}
    text = "{{tags}}|{{level}}|{{is open}}|{{note}}|{{filter}}"
    assert fill_in(text, told) == 'a\n\nb|3|true||{"lang": "de", "ü": "ß"}'


def test_an_unknown_variable_has_the_path_of_its_text_and_the_names_to_write() -> None:
    template = {"q": "{{ question }}", "filter": {"any": ["{{ category }}", "x {{ categry }}"]}}
    (fault,) = find_unknown(template, "body", ["category", "tags"])
    assert fault.key == ("body", "filter", "any", 1)
    assert fault.message == "unknown variable 'categry'"
    known = "question, query_id, contexts, messages, history, category, tags"
    assert fault.hint == f"did you mean 'category'? The variables are {known}"
    (other,) = find_unknown("{{ 7*7 }}", "input", ["category", "tags"])
    assert other.hint == f"the variables are {known}"
