from __future__ import annotations

import json
import pickle

from pydantic import BaseModel

from rageval_spec.plugin.secret import MARK, Secret


class Holder(BaseModel):
    key: Secret


def test_a_secret_is_shown_as_it_is_written_and_only_revealed_on_request() -> None:
    secret = Secret("sk-123", "${secret:KEY}")
    assert (str(secret), repr(secret), f"{secret}") == ("${secret:KEY}", "Secret('${secret:KEY}')", "${secret:KEY}")
    assert secret.reveal() == "sk-123"


def test_a_text_written_out_in_the_spec_is_masked() -> None:
    holder = Holder(key="sk-123")
    assert "sk-123" not in f"{holder!r} {holder.model_dump_json()} {json.dumps(holder.model_dump(mode='json'))}"
    assert holder.key.reveal() == "sk-123"


def test_secrets_are_equal_if_their_texts_and_spellings_are() -> None:
    assert Secret("a", "x") == Secret("a", "x") != Secret("b", "x")
    assert Secret("a", "x") != Secret("a", "y")
    assert Secret("a", "x") != "a"
    assert len({Secret("a", "x"), Secret("a", "x")}) == 1
    assert pickle.loads(pickle.dumps(Secret("a", "x"))) == Secret("a", "x")


def test_a_node_fills_secrets_in_and_dumps_how_they_are_written() -> None:
    marked = f"{MARK}${{secret:KEY}}"
    holder = Holder.model_validate({"key": marked}, context={marked: "abc"})
    assert holder.key.reveal() == "abc"
    assert holder.model_dump(mode="json") == {"key": "${secret:KEY}"}
    assert Holder.model_json_schema()["properties"]["key"]["type"] == "string"
