from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.data.tables import UNFINISHED
from rageval_spec.plugin.secrets import Secret
from rageval_spec.store.store import MemoryAnswers
from tests.systems.asking import Call, Said, Service, answers_of, build, collection, questions_with_columns

Serve = Callable[[Callable[[Call], Said]], Service]


@pytest.fixture
def serve() -> Iterator[Serve]:
    services: list[Service] = []

    def start(script: Callable[[Call], Said]) -> Service:
        services.append(Service(script))
        return services[-1]

    yield start
    for service in services:
        service.close()


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.endpoints.tries.draw_wait", lambda tries: 0.0)


def reply(content: Any, status: int = 200) -> Callable[[Call], Said]:
    return lambda call: (status, content)


def ask_one(service: Service, question: str = "why?", **keys: Any) -> dict[str, Any]:
    return answers_of(build("http", url=service.url, **keys), {"q1": question})["q1"]


def test_a_question_is_posted_and_the_answer_read(serve: Serve) -> None:
    service = serve(lambda call: (200, {"answer": call.json["question"].upper(), "contexts": ["a", "b"]}))
    rows = answers_of(build("http", url=service.url), {"q1": "why?", "q2": 'wie: "ü" \U0001f600 \\ {{ x }} \x07?'})
    assert rows["q1"].pop("seconds") > 0
    assert rows["q1"] == {"answer": "WHY?", "contexts": ["a", "b"]}
    assert rows["q2"]["answer"] == 'WIE: "Ü" \U0001f600 \\ {{ X }} \x07?'
    assert {call.method for call in service.calls} == {"POST"}
    assert service.calls[0].headers["content-type"] == "application/json"


OPENAI = {
    "choices": [{"message": {"role": "assistant", "content": "because"}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3},
}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("because", {"answer": "because"}),
        ({"answer": ""}, {"answer": ""}),
        ({"answer": 42}, {"answer": "42"}),
        (OPENAI, {"answer": "because", "input_tokens": 7, "output_tokens": 3}),
        ({"message": {"content": "because"}, "prompt_eval_count": 5}, {"answer": "because", "input_tokens": 5}),
        ({"response": "x", "retrieved_contexts": []}, {"answer": "x", "contexts": []}),
        ({"actualOutput": "x", "retrievalContext": ["a"]}, {"answer": "x", "contexts": ["a"]}),
        ({"result": "x", "source_documents": [{"page_content": "a"}]}, {"answer": "x", "contexts": ["a"]}),
        (
            {"answer": "x", "contexts": [{"id": 1, "text": "a", "score": 0.5}, {"id": 2, "text": "b", "score": 0}]},
            {"answer": "x", "contexts": ["a", "b"], "context_ids": ["1", "2"], "scores": [0.5, 0.0]},
        ),
        ({"answer": "x", "usage": {"prompt_tokens": "many"}}, {"answer": "x"}),
    ],
)
def test_usual_replies_need_no_paths(serve: Serve, content: Any, expected: dict[str, Any]) -> None:
    row = ask_one(serve(reply(content)))
    row.pop("seconds")
    assert row == expected


def test_paths_lead_into_other_replies(serve: Serve) -> None:
    content = {
        "data": [{"text": "because"}],
        "sources": [{"body": "a", "key": "d1"}, {"body": "b", "key": "d2"}],
        "meta": {"in": 5, "out": 2, "usd": 0.25},
    }
    row = ask_one(
        serve(reply(content)),
        answer="$.data[0].text",
        contexts="sources[*].body",
        context_ids="$['sources'][*].key",
        input_tokens="meta.in",
        output_tokens="meta.out",
        cost="meta.usd",
    )
    row.pop("seconds")
    assert row == {
        "answer": "because",
        "contexts": ["a", "b"],
        "context_ids": ["d1", "d2"],
        "input_tokens": 5,
        "output_tokens": 2,
        "cost": 0.25,
    }


@pytest.mark.parametrize(
    ("content", "keys", "message"),
    [
        ({"answer": None}, {}, "answered 200, but the reply has no answer: it is null"),
        (None, {}, "answered 200, but the reply has no answer: it is null"),
        ({"text": None, "x": 1}, {"answer": "text"}, "answered 200, but text is null"),
        (
            {"answer": "<generator object f at 0x7f00>"},
            {},
            "no answer: 'answer' is JSON or a printed object, '<generator object f at 0x7f00>'; send the text of the "
            "answer there",
        ),
        ({"answer": ["a"]}, {}, "the reply has no answer: it is a list of 1, not text"),
        (["a"], {}, "the reply is a list of 1, not an object with an answer"),
        ({"foo": 1, "bar": 2}, {}, "has no answer at any usual place; it has 'foo', 'bar'"),
        (
            {"data": {"foo": 1}},
            {"answer": "$.data.text"},
            "$.data.text finds nothing: 'data' has no 'text'; it has 'foo'",
        ),
        ({"data": []}, {"answer": "data[0]"}, "data[0] finds nothing: 'data' is a list of 0, which has no 0"),
        ({"answer": "x"}, {"contexts": "docs"}, "docs finds nothing: the reply has no 'docs'; it has 'answer'"),
        (
            {"answer": "x", "docs": [{"t": "a"}, {"u": "b"}]},
            {"contexts": "docs[*].t"},
            "docs[*].t finds nothing: 'docs'[1] has no 't'; it has 'u'",
        ),
        ({"answer": "x", "contexts": [1]}, {}, "contexts[0] must be text or an object, not a number"),
        ({"answer": "x", "contexts": ["a"], "context_ids": ["d1", "d2"]}, {}, "it has 1 contexts and 2 context_ids"),
        ({"answer": "x", "contexts": [{"id": 1, "text": "a"}, {"text": "b"}]}, {}, "contexts[1] has no 'id'"),
        ({"answer": "x", "n": float("nan")}, {"input_tokens": "n"}, "n must be a number of at least 0, not NaN"),
        ({"answer": "x", "n": 1.5}, {"output_tokens": "n"}, "n must be a whole number, not 1.5"),
        ({"answer": "x", "n": -1}, {"cost": "n"}, "n must be a number of at least 0, not -1"),
        (b'{"answer": "\\ud83d"}', {}, "the answer has half a surrogate pair"),
        (b"<html>sorry</html>", {}, "answered 200 with something that is not JSON: <html>sorry</html>"),
        (b"\xff\xfe", {}, "answered 200 with something that is not JSON"),
        (b"", {}, "answered 200 with something that is not JSON"),
        (b"[" * 100_000, {}, "answered 200 with something that is not JSON"),
    ],
)
def test_a_reply_without_an_answer_is_an_error_that_says_why(
    serve: Serve, content: Any, keys: dict[str, Any], message: str
) -> None:
    service = serve(reply(content))
    row = ask_one(service, **keys)
    assert set(row) == {"error"}
    assert message in row["error"] and service.url in row["error"]


def test_a_refused_request_affects_only_its_query_and_is_retried_next_time(serve: Serve) -> None:
    def script(call: Call) -> Said:
        return (400, {"detail": "too hard"}) if call.json["question"] == "b" else (200, {"answer": "x"})

    service, kept = serve(script), MemoryAnswers()
    questions = {"q1": "a", "q2": "b", "q3": "c"}
    rows = answers_of(build("http", url=service.url, answers=kept), questions)
    assert rows["q2"]["error"] == f'{service.url} answered 400 Bad Request: {{"detail": "too hard"}}'
    assert rows["q1"]["answer"] == rows["q3"]["answer"] == "x"
    assert service.questions() == ["a", "b", "c"]
    again = answers_of(build("http", url=service.url, answers=kept), questions)
    assert again == rows
    assert service.questions() == ["a", "b", "b", "c"]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_temporary_failure_is_retried(serve: Serve, status: int) -> None:
    def script(call: Call) -> Said:
        return (status, b"later") if len(service.calls) < 3 else (200, {"answer": "x"})

    service = serve(script)
    assert ask_one(service)["answer"] == "x"
    assert len(service.calls) == 3


def test_a_failure_that_stays_says_how_often_it_was_tried(serve: Serve) -> None:
    service = serve(reply(b"broken", 500))
    error = ask_one(service, retries=1)["error"]
    assert error == f"{service.url} answered 500 Internal Server Error: broken (after 2 tries)"
    assert len(service.calls) == 2


def test_retry_after_is_honoured(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("rageval_spec.endpoints.pacing.Clock.sleep", lambda clock, seconds: waits.append(seconds))

    def script(call: Call) -> Said:
        return (429, b"", {"Retry-After": "30"}) if len(service.calls) == 1 else (200, {"answer": "x"})

    service = serve(script)
    assert ask_one(service)["answer"] == "x"
    assert [wait for wait in waits if 20 < wait <= 30]


def test_a_silent_service_times_out(serve: Serve) -> None:
    def script(call: Call) -> Said:
        time.sleep(0.5)
        return 200, {"answer": "x"}

    service = serve(script)
    assert ask_one(service, timeout=0.1, retries=0)["error"] == f"{service.url} gave no complete reply within 0.1 s"


def test_an_unreachable_service_is_given_up_after_some_questions() -> None:
    questions = {f"q{number}": f"question {number}" for number in range(50)}
    system = build("http", url="http://127.0.0.1:9/", retries=0, concurrency=1)
    answering = system.answer(collection(questions))
    errors = answering.answers["error"].to_list()
    assert sum(error.startswith("http://127.0.0.1:9/ refuses connections (is it running?)") for error in errors) == 10
    assert sum(error.startswith("not asked after 10 failed calls in a row") for error in errors) == 40
    assert answering.answers[UNFINISHED].sum() == 40


def test_get_puts_the_question_into_the_url(serve: Serve) -> None:
    service = serve(reply({"answer": "x"}))
    system = build("http", url=f"{service.url}?k=5", method="GET", params={"q": "{{ question }}", "n": "{{query_id}}"})
    assert answers_of(system, {"id 1": "a & b?"})["id 1"]["answer"] == "x"
    assert service.calls[0].path == "/answer?k=5&q=a+%26+b%3F&n=id+1"
    assert service.calls[0].content == b""


def test_the_body_is_a_template_that_keeps_types(serve: Serve) -> None:
    service = serve(reply({"answer": "x"}))
    body = {
        "messages": [{"role": "user", "content": "Answer: {{ question }} ({{ query_id }})"}],
        "docs": "{{ contexts }}",
        "text": "<{{ contexts }}>",
        "stream": False,
        "top_k": 3,
    }
    system = build("http", url=service.url, method="PUT", body=body)
    rows = answers_of(system, collection({"q1": "{{ query_id }}", "q2": "x"}, {"q1": ["a", "b"], "q2": None}))
    assert service.calls[0].method == "PUT"
    assert service.calls[0].json == {
        "messages": [{"role": "user", "content": "Answer: {{ query_id }} (q1)"}],
        "docs": ["a", "b"],
        "text": "<a\n\nb>",
        "stream": False,
        "top_k": 3,
    }
    assert rows["q1"]["contexts"] == ["a", "b"]  # the contexts it was given, because the reply names no others
    assert rows["q2"] == {"error": "was not asked: the dataset has no reference contexts for this query"}
    assert len(service.calls) == 1


def test_literal_keys_in_params_and_body_are_masked_in_replies(serve: Serve) -> None:
    key, token = "4f9aB71cE0d25Qz8Lm3xT6vR", "Zk27pQ91vXc4Lw83tYb6Rm5N"
    service = serve(lambda call: (200, {"answer": f"{call.path} {call.content.decode()} documents"}))
    body = {"question": "{{ question }}", "auth": [{"token": token}], "key": "documents"}
    answer = ask_one(service, params={"api_key": key}, body=body)["answer"]
    assert key in service.calls[0].path
    assert token in service.calls[0].content.decode()
    assert key not in answer
    assert token not in answer
    assert answer.endswith(" documents")


def test_secrets_are_sent_and_shown_nowhere(serve: Serve) -> None:
    service = serve(lambda call: (403, {"you sent": call.headers["authorization"], "and": call.headers["x-key"]}))
    system = build(
        "http",
        url=service.url,
        api_key=Secret("hush-hush", "${secret:RAG_KEY}"),
        headers={"X-Key": Secret("top-secret", "${secret:OTHER}")},
    )
    error = answers_of(system, {"q1": "a"})["q1"]["error"]
    assert service.calls[0].headers["authorization"] == "Bearer hush-hush"
    assert service.calls[0].headers["x-key"] == "top-secret"
    for text in (error, str(system.content())):
        assert "hush" not in text and "top-secret" not in text
    assert "answered 403" in error


def test_a_corrected_path_sends_no_new_requests(serve: Serve) -> None:
    service = serve(lambda call: (200, {"data": call.json["question"].upper(), "sources": [{"text": "a"}], "usd": 2}))
    kept = MemoryAnswers()
    questions = {"q1": "why?", "q2": "who?"}

    def ask(**keys: Any) -> dict[str, dict[str, Any]]:
        return answers_of(build("http", answers=kept, url=service.url, **keys), questions)

    assert "answr finds nothing" in ask(answer="answr")["q1"]["error"] and len(service.calls) == 2
    plain = ask(answer="data")
    assert plain["q1"].pop("seconds") > 0 and plain["q1"] == {"answer": "WHY?", "contexts": ["a"]}
    sourced = ask(answer="data", contexts="$.sources[*].text", cost="usd")["q2"]
    assert (sourced["answer"], sourced["contexts"], sourced["cost"]) == ("WHO?", ["a"], 2.0)
    known = build("http", answers=kept, url=service.url, answer="data").find_answers(collection(questions))
    assert known["answer"].to_list() == ["WHY?", "WHO?"]
    assert len(service.calls) == 2


def test_a_reply_without_an_answer_is_asked_for_again_by_the_same_paths(serve: Serve) -> None:
    contents = iter([{"detail": "overloaded"}, {"answer": "because"}])
    service = serve(lambda call: (200, next(contents)))
    kept = MemoryAnswers()
    first, second, third = (
        answers_of(build("http", answers=kept, url=service.url), {"q1": "why?"})["q1"] for _ in range(3)
    )
    assert "has no answer" in first["error"]
    assert second["answer"] == "because" and third == second and len(service.calls) == 2


def test_only_the_answer_of_a_large_reply_is_stored_for_its_paths(serve: Serve) -> None:
    service = serve(reply({"data": "because", "other": "so", "trace": "x" * 2**20}))
    kept = MemoryAnswers()

    def ask(path: str) -> dict[str, Any]:
        return answers_of(build("http", answers=kept, url=service.url, answer=path), {"q1": "why?"})["q1"]

    assert "finds nothing" in ask("nowhere")["error"]
    first = ask("data")
    assert first["answer"] == "because" and ask("data") == first and len(service.calls) == 2
    assert ask("other")["answer"] == "so" and len(service.calls) == 3


def test_a_stored_reply_keeps_the_contexts_that_were_sent(serve: Serve) -> None:
    service = serve(reply({"answer": "because"}))
    kept = MemoryAnswers()
    asked = collection({"q1": "why?"}, {"q1": ["a"]})
    body = {"q": "{{ question }}", "c": "{{ contexts }}"}
    rows = [answers_of(build("http", answers=kept, url=service.url, body=body), asked)["q1"] for _ in range(2)]
    assert rows[0] == rows[1] and rows[0]["contexts"] == ["a"] and len(service.calls) == 1


def key_of(**keys: Any) -> str:
    system: Any = build("http", **{"url": "http://rag.test/", **keys})
    return str(system.key)


@pytest.mark.parametrize(
    "keys",
    [
        {"version": "2"},
        {"url": "http://rag.test/2"},
        {"method": "PUT"},
        {"body": {"q": "{{ question }}"}},
        {"params": {"top": "5"}},
        {"headers": {"X-Index": Secret("new")}},
    ],
)
def test_what_an_answer_depends_on_is_in_the_key(keys: dict[str, Any]) -> None:
    assert key_of(**keys) != key_of(**({"headers": {"X-Index": Secret("old")}} if "headers" in keys else {}))


@pytest.mark.parametrize(
    "keys",
    [
        {"timeout": 1},
        {"retries": 9},
        {"concurrency": 2},
        {"requests_per_minute": 5},
        {"api_key": Secret("x")},
        {"answer": "text"},
        {"contexts": "$.sources[*].text"},
        {"retrieves": "$.ids", "scores": "$.scores"},
        {"last_event": "end"},
    ],
)
def test_settings_of_asking_and_reading_are_not_in_the_key(keys: dict[str, Any]) -> None:
    assert key_of(**keys) == key_of()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"url": "rag.example.org"}, "write a URL such as"),
        ({"url": "http://x/{{ question }}"}, "write variables in params or body"),
        ({"url": "http://me:pw@x/"}, "this URL has credentials"),
        ({"answer": "a..b"}, "is not a valid path"),
        ({"contexts": "$.a[?(@.x)]"}, "is not a valid path"),
        ({"body": {"q": "{{ quest }}"}}, "the system would not know the question"),
        ({"body": {"q": "{{ }}"}}, "holds no name; write one of question, query_id, contexts, messages, history"),
        ({"body": {"q": 1}}, "the system would not know the question"),
        ({"body": {"q": "{{ question }}", "t": float("inf")}}, "JSON has neither NaN nor infinity"),
        ({"method": "GET"}, "the system would not know the question"),
        ({"method": "DELETE"}, "GET"),
        ({"timeout": 0}, "greater than 0"),
        ({"requests_per_minute": float("nan")}, "finite"),
    ],
)
def test_a_wrong_block_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        build("http", **{"url": "http://rag.test/", **keys})
    assert message in str(caught.value)


def test_it_answers_every_dataset_and_has_no_input_files(tmp_path: Path) -> None:
    system = build("http", tmp_path, url="http://rag.test/")
    assert system.answers_on("any") and system.needs == {"queries"} and not system.inputs()


def test_columns_of_the_questions_are_variables_of_the_body_and_of_parameters(serve: Serve) -> None:
    service = serve(lambda call: (200, {"answer": "x"}))
    body = {"q": "{{ question }}", "filter": {"category": "{{ category }}", "level": "{{ level }}"}}
    params = {"tag": "{{ tags }}", "l": "{{ level }}", "c": "in {{ category }}"}
    rows = [{"id": "q1", "question": "a", "category": "law", "level": 2, "tags": ["x", "y&z"]}]
    system = build("http", url=service.url, body=body, params=params)
    assert answers_of(system, questions_with_columns(rows))["q1"]["answer"] == "x"
    (call,) = service.calls
    assert call.json == {"q": "a", "filter": {"category": "law", "level": 2}}
    assert call.path == "/answer?tag=x&tag=y%26z&l=2&c=in+law"


def test_a_query_without_a_column_that_the_body_names_is_not_asked(serve: Serve) -> None:
    service = serve(lambda call: (200, {"answer": str(call.json["c"])}))
    rows: list[dict[str, Any]] = [
        {"id": "q1", "question": "a", "category": "law"},
        {"id": "q2", "question": "b", "category": None},
        {"id": "q3", "question": "c"},
    ]
    system = build("http", url=service.url, body={"q": "{{ question }}", "c": "{{ category }}"})
    answers = answers_of(system, questions_with_columns(rows))
    assert [answers[name].get("answer") for name in ("q1", "q2")] == ["law", "None"]
    assert answers["q3"] == {"error": "was not asked: the query has no column 'category'"}
    assert len(service.calls) == 2


def test_equal_questions_with_other_columns_are_asked_separately(serve: Serve) -> None:
    service = serve(lambda call: (200, {"answer": call.json["c"]}))
    rows = [{"id": f"q{number}", "question": "a", "category": name} for number, name in enumerate(("x", "y", "x"))]
    system = build("http", url=service.url, body={"q": "{{ question }}", "c": "{{ category }}"})
    answers = answers_of(system, questions_with_columns(rows))
    assert [row["answer"] for row in answers.values()] == ["x", "y", "x"]
    assert len(service.calls) == 2


HITS = {"hits": [{"id": 7, "score": 0.9, "text": "a"}, {"id": "d2", "score": 0.4, "text": "b"}]}


def test_a_retriever_gives_documents_and_no_answer(serve: Serve) -> None:
    service = serve(reply(HITS))
    row = ask_one(service, retrieves="$.hits[*].id", scores="$.hits[*].score", contexts="$.hits[*].text")
    row.pop("seconds")
    assert row == {"context_ids": ["7", "d2"], "scores": [0.9, 0.4], "contexts": ["a", "b"]}
    row = ask_one(serve(reply({"ids": [["d1", "d2"]], "distances": [[0.1, 0.2]]})), retrieves="ids", scores="distances")
    assert (row["context_ids"], row["scores"]) == (["d1", "d2"], [0.1, 0.2])
    assert ask_one(serve(reply({"hits": []})), retrieves="$.hits[*].id")["context_ids"] == []


@pytest.mark.parametrize(
    ("content", "keys", "message"),
    [
        ({"results": []}, {}, "$.hits[*].id finds nothing: the reply has no 'hits'; it has 'results'"),
        ({"hits": [{"_id": 1}]}, {}, "$.hits[*].id finds nothing: 'hits'[0] has no 'id'; it has '_id'"),
        ({"hits": None}, {"retrieves": "hits"}, "hits is null"),
        ({"hits": {"n": 1}}, {"retrieves": "hits"}, "hits must be a list of ids, not an object; it has 'n'"),
        ({"hits": [{"id": None}]}, {}, "$.hits[*].id[0] must be text or a whole number, not null"),
        (HITS, {"scores": "$.hits[*].rank"}, "$.hits[*].rank finds nothing: 'hits'[0] has no 'rank'"),
        ({**HITS, "s": [1]}, {"scores": "s"}, "it has 2 ids and 1 scores"),
        ({**HITS, "s": ["x", 1]}, {"scores": "s"}, 's[0] must be a number, not "x"'),
    ],
)
def test_a_retrieval_that_cannot_be_read_says_why(serve: Serve, content: Any, keys: Any, message: str) -> None:
    assert message in ask_one(serve(reply(content)), **{"retrieves": "$.hits[*].id", **keys})["error"]


def test_answers_and_retrievals_exclude_each_other() -> None:
    with pytest.raises(ValidationError, match="gives no answers; remove 'answer' or 'retrieves'"):
        build("http", url="http://rag.test/", retrieves="$.ids", answer="$.text")
    with pytest.raises(ValidationError, match="'scores' belong to the ids of 'retrieves'"):
        build("http", url="http://rag.test/", scores="$.ids")


def stream(*events: Any) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


PIECES = [{"choices": [{"delta": {"content": text}}]} for text in ("Be", "cause")]
USAGE = {"choices": [], "usage": {"prompt_tokens": 7}}


def test_a_stream_of_events_is_read(serve: Serve) -> None:
    sources = {"sources": [{"id": "d1", "text": "a"}]}
    content = stream(sources, *PIECES, USAGE) + b"data: [DONE]\n\n"
    keys = {"contexts": "$.sources[*].text", "context_ids": "$.sources[*].id"}
    row = ask_one(serve(reply(content)), **keys)
    row.pop("seconds")
    assert row == {"answer": "Because", "contexts": ["a"], "context_ids": ["d1"], "input_tokens": 7}


def test_a_stream_that_breaks_off_is_asked_again_and_else_an_error(serve: Serve) -> None:
    done = stream(*PIECES) + b"data: [DONE]\n\n"
    service = serve(lambda call: (200, stream(*PIECES) if len(service.calls) < 2 else done))
    assert ask_one(service)["answer"] == "Because"
    assert len(service.calls) == 2
    row = ask_one(serve(reply(stream(*PIECES))))
    assert set(row) == {"error"}
    assert "its stream of 2 events has no last event, such as [DONE], so the answer may be cut off" in row["error"]
    assert row["error"].endswith("(after 3 tries)")
    short = serve(lambda call: (200, done, {"Content-Length": str(len(done) + 10), "Connection": "close"}))
    assert "broke the connection: IncompleteRead" in ask_one(short)["error"]


def test_naming_the_last_event_later_asks_nothing_again(serve: Serve) -> None:
    service, kept = serve(reply(stream({"t": "Be"}, {"t": "cause"}))), MemoryAnswers()
    keys: dict[str, Any] = {"url": service.url, "answers": kept, "retries": 0, "answer": "$.t"}
    assert "error" in answers_of(build("http", **keys), {"q1": "why?"})["q1"]
    row = answers_of(build("http", **keys, last_event="close"), {"q1": "why?"})["q1"]
    assert row["answer"] == "Because"
    assert len(service.calls) == 1


def test_an_error_in_a_stream_is_told(serve: Serve) -> None:
    row = ask_one(serve(reply(stream(*PIECES, {"error": {"message": "no tokens left"}}))))
    assert "answered 200, but its stream reports an error: no tokens left" in row["error"]


STEPS = [
    {"type": "thought", "text": "hm"},
    {"tool": "search", "input": "Rome", "output": [{"id": "d1", "text": "Rome is in Italy.", "score": 0.5}]},
]


@pytest.mark.parametrize(("content", "keys"), [({"steps": STEPS}, {}), ({"a": {"b": STEPS}}, {"steps": "$.a.b"})])
def test_steps_of_an_agent_are_kept_and_what_they_retrieved_is_its_contexts(
    serve: Serve, content: dict[str, Any], keys: dict[str, str]
) -> None:
    row = ask_one(serve(reply({"answer": "x", **content})), **keys)
    assert [step["kind"] for step in json.loads(row["steps"])] == ["model", "retrieval"]
    assert (row["contexts"], row["context_ids"], row["scores"]) == (["Rome is in Italy."], ["d1"], [0.5])
    own = ask_one(serve(reply({"answer": "x", "contexts": ["mine"], **content})), **keys)
    assert own["contexts"] == ["mine"] and "context_ids" not in own


def test_steps_that_are_none_are_ignored_at_a_usual_place_and_an_error_at_a_path(serve: Serve) -> None:
    assert "steps" not in ask_one(serve(reply({"answer": "x", "steps": 5})))
    error = ask_one(serve(reply({"answer": "x", "steps": 5})), steps="$.steps")["error"]
    assert "$.steps must be a list of steps, not a number" in error


CHAT = [
    {"role": "user", "content": "Rome?"}, {"role": "assistant", "content": "Italy."},
    {"role": "user", "content": "Paris?"}, {"role": "assistant", "content": "the gold answer"},
]  # fmt: skip


def test_a_conversation_is_sent_up_to_the_question(serve: Serve) -> None:
    service = serve(lambda call: (200, {"answer": "x"}))
    body = {"messages": "{{ messages }}", "history": "{{ history }}", "q": "{{ question }}"}
    rows: list[dict[str, Any]] = [
        {"id": "q1", "question": "Paris?", "messages": CHAT},
        {"id": "q2", "question": "Oslo?"},
    ]
    answers_of(build("http", url=service.url, body=body), questions_with_columns(rows))
    sent = {call.json["q"]: call.json for call in service.calls}
    assert sent["Paris?"]["messages"] == CHAT[:3]
    assert sent["Paris?"]["history"] == CHAT[:2]
    assert sent["Oslo?"]["messages"] == [{"role": "user", "content": "Oslo?"}]
    assert sent["Oslo?"]["history"] == []


def test_columns_with_the_names_of_conversations_keep_what_they_hold(serve: Serve) -> None:
    service = serve(lambda call: (200, {"answer": "x"}))
    rows = [{"id": "q1", "question": "a", "messages": "three", "history": "long"}]
    body = {"q": "{{ question }}", "m": "{{ messages }}", "h": "{{ history }}"}
    answers_of(build("http", url=service.url, body=body), questions_with_columns(rows))
    assert service.calls[0].json == {"q": "a", "m": "three", "h": "long"}


@pytest.mark.parametrize(
    ("ending", "said"),
    [(b"0\r\n\r\n", "its stream of 1 event has no last"), (b"", "broke the connection")],
)
def test_a_stream_in_chunks_is_cut_off_wherever_it_ends(ending: bytes, said: str) -> None:
    piece = stream(PIECES[0])
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(head + b"%x\r\n%s\r\n%s" % (len(piece), piece, ending))

        thread = threading.Thread(target=answer)
        thread.start()
        system = build("http", url=f"http://127.0.0.1:{server.getsockname()[1]}/", retries=0)
        assert said in answers_of(system, {"q1": "why?"})["q1"]["error"]
        thread.join()


DELTA = {"index": 0, "delta": {"content": "half"}, "finish_reason": None}
USED = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


@pytest.mark.parametrize(
    "events",
    [
        [{"choices": [DELTA]}, {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}, USED],
        [
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "half"}},
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
            {"type": "message_stop"},
        ],
    ],
)
def test_answers_that_were_cut_off_say_so(serve: Serve, events: list[dict[str, Any]]) -> None:
    whole = {"choices": [{"message": {"content": "half"}, "finish_reason": "length"}]}
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    for content in (whole, stream.encode()):
        row = ask_one(serve(reply(content)))
        assert (row["answer"], row["truncated"]) == ("half", True)
    assert "truncated" not in ask_one(serve(reply(json.loads(json.dumps(whole).replace("length", "stop")))))
