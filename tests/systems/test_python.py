from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.errors import UsageError
from rageval_spec.store.store import MemoryAnswers
from tests.systems.asking import answers_of, build, collection


@pytest.fixture(autouse=True)
def clean_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("rageval_spec.endpoints.tries.draw_wait", lambda tries: 0.0)
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("rag_", "shared_rag")):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


COUNT = iter(range(10**6))


def write_module(folder: Path, source: str, name: str | None = None) -> str:
    """A module with a name that no other test uses."""
    name = name or f"rag_{next(COUNT)}"
    (folder / f"{name}.py").write_text(dedent(source))
    return name


def ask(folder: Path, source: str, function: str = "answer", **keys: Any) -> dict[str, Any]:
    module = write_module(folder, source)
    row = answers_of(build("python", folder, function=f"{module}:{function}", **keys), {"q1": "why?"})["q1"]
    row.pop("seconds", None)
    return row


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return question.upper()", {"answer": "WHY?"}),
        ("return ''", {"answer": ""}),
        ("return {'answer': 'x', 'contexts': ('a', 'b')}", {"answer": "x", "contexts": ["a", "b"]}),
        ("return {'answer': 'x', 'context_ids': [1, 2]}", {"answer": "x", "context_ids": ["1", "2"]}),
        (
            "import types as t; d = t.SimpleNamespace(page_content='a', id='d1', metadata={});"
            "return t.SimpleNamespace(answer='x', contexts=[d], cost=0.5)",
            {"answer": "x", "contexts": ["a"], "context_ids": ["d1"], "cost": 0.5},
        ),
        (
            "import types as t; return t.SimpleNamespace(content='x', response_metadata={'finish_reason': 'length'})",
            {"answer": "x", "truncated": True},
        ),
        (
            "import numpy as np; return {'answer': np.str_('x'), 'input_tokens': np.int64(3), 'cost': np.float32(0.5)}",
            {"answer": "x", "input_tokens": 3, "cost": 0.5},
        ),
    ],
)
def test_a_function_can_return_text_a_dict_or_an_object(folder: Path, body: str, expected: dict[str, Any]) -> None:
    assert ask(folder, f"def answer(question):\n    {body}\n") == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('no\\nluck')", ":answer raised ValueError: no\\nluck"),
        ("raise SystemExit(3)", ":answer called sys.exit(3); it must return or raise an exception"),
        ("assert False", ":answer raised AssertionError"),
        ("return None", ":answer: the reply has no answer: it is null"),
        ("return {'contexts': []}", "has no answer at any usual place; it has 'contexts'"),
        ("return ['x']", "the reply is a list of 1, not an object with an answer"),
        ("return {'answer': 'x', 'contexts': [3]}", "contexts[0] must be text or an object, not a number"),
        ("return object()", "the reply has no answer at any usual place; it has nothing"),
        ("return '\\ud83d'", "half a surrogate pair"),
    ],
)
def test_a_failure_becomes_the_error_of_its_query(folder: Path, body: str, message: str) -> None:
    row = ask(folder, f"def answer(question):\n    {body}\n")
    assert set(row) == {"error"} and message in row["error"]


FOUND = """
from types import SimpleNamespace as New
import numpy as np
def lang(name, **metadata):
    return New(page_content=f"text of {name}", id=name, metadata=metadata, type="Document")
def llama(name, score):
    node = New(node_id=name, text="t", metadata={})
    return New(node=node, node_id=name, id_=name, text="t", metadata={}, score=score)
def hay(name, score=None):
    return New(id=name, content=f"text of {name}", blob=None, meta={}, score=score, embedding=None)
def answer(question):
    return """
RANKED = {"context_ids": ["d2", "d1"]}
SCORED = {**RANKED, "scores": [0.9, 0.5]}


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("['d2', 'd1']", RANKED),
        ("('d2', 'd1')", RANKED),
        ("np.array(['d2', 'd1'])", RANKED),
        ("[7, np.int64(8)]", {"context_ids": ["7", "8"]}),
        ("[('d2', 0.9), ('d1', 0.5)]", SCORED),
        ("[['d2', np.float64(0.9)], ['d1', 0.5]]", SCORED),
        ("[('d2', 0.1), ('d1', 0.5)]", {**RANKED, "scores": [0.1, 0.5]}),
        ("[('d2', None), ('d1', None)]", RANKED),
        ("{'d1': 0.5, 'd2': 0.9}", SCORED),
        ("{'d1': 1, 'd2': 1}", {**RANKED, "scores": [1.0, 1.0]}),
        ("[{'id': 'd2', 'score': 0.9}, {'id': 'd1', 'score': 0.5}]", SCORED),
        ("[{'doc_id': 'd2', 'text': 'a'}, {'doc_id': 'd1', 'text': 'b'}]", {**RANKED, "contexts": ["a", "b"]}),
        ("{'context_ids': ['d2', 'd1']}", RANKED),
        ("[lang('d2'), lang('d1')]", {**RANKED, "contexts": ["text of d2", "text of d1"]}),
        ("[(lang('d2'), 0.9), (lang('d1'), 0.5)]", {**SCORED, "contexts": ["text of d2", "text of d1"]}),
        ("[lang(None, source='d2'), lang(None, source='d1')]", {**RANKED, "contexts": ["text of None"] * 2}),
        ("[llama('d2', 0.9), llama('d1', 0.5)]", {**SCORED, "contexts": ["t", "t"]}),
        ("[llama('d2', None), llama('d1', None)]", {**RANKED, "contexts": ["t", "t"]}),
        (
            "{'documents': [hay('d2', 0.9), hay('d1', 0.5)]}",
            {**SCORED, "contexts": ["text of d2", "text of d1"]},
        ),
        ("['d2', 'd1', 'd2']", {"context_ids": ["d2", "d1", "d2"]}),
        ("[]", {"context_ids": []}),
        ("{}", {"context_ids": []}),
        ("{'documents': []}", {"context_ids": []}),
    ],
)
def test_a_retriever_can_return_what_search_libraries_return(
    folder: Path, returned: str, expected: dict[str, Any]
) -> None:
    found = ask(folder, f"{FOUND}{returned}\n", retrieves=True)
    assert found == expected | ({} if found["context_ids"] else {"contexts": [], "scores": []})


def test_a_function_that_retrieves_needs_no_path() -> None:
    with pytest.raises(ValidationError, match="a function returns the ids themselves; write 'retrieves: true'"):
        build("python", function="rag:find", retrieves="$.hits[*].id")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("None", "it returned None; a retriever returns a list, which is empty if it found nothing"),
        ("'d1'", "it returned a str; a retriever returns a list"),
        ("{'d1', 'd2'}", "it returned a set; a retriever returns a list"),
        ("(name for name in 'ab')", "it returned a generator; a retriever returns a list"),
        ("['d1', None]", "[1] has no id; it has nothing"),
        ("['d1', ' ']", "[1] is empty"),
        ("[0.5]", "[0] must be text or a whole number, not 0.5"),
        ("[True]", "[0] must be text or a whole number, not true"),
        ("[{'text': 'a'}]", "[0] has no id; it has 'text'"),
        ("[lang(None)]", "[0] has no id; it has 'page_content', 'id', 'metadata'"),
        ("[('d1', float('nan'))]", "the score of [0] must be a number, not NaN"),
        ("[('d1', 'd2')]", "the score of [0] must be a number, not text: 'd2'"),
        ("[('d1', 0.5), ('d2', None)]", "[1] has no score, although others have one"),
        ("[('d1', 0.5, 1)]", "[0] has 3 items; write an id, or a pair of an id and a score"),
        ("[llama('d1', float('nan'))]", "the score of [0] must be a number, not NaN"),
        ("{'d1': float('inf')}", "the score of ['d1'] must be a number, not Infinity"),
        ("{'d1': None}", "the score of ['d1'] must be a number, not null"),
        ("{'answer': 'x'}", "the score of ['answer'] must be a number, not text: 'x'"),
    ],
)
def test_what_is_no_ranking_is_an_error(folder: Path, returned: str, message: str) -> None:
    row = ask(folder, f"{FOUND}{returned}\n", retrieves=True)
    assert set(row) == {"error"} and message in row["error"]


def test_the_function_gets_the_arguments_that_it_has(folder: Path) -> None:
    module = write_module(
        folder,
        """
        def plain(question, k=3): return f"{question} {k}"
        def all_of_them(*, contexts, query_id, question): return f"{query_id} {question} {contexts}"
        def any_of_them(**told): return ",".join(sorted(told))
        """,
    )
    asked = collection({"q1": "why?"}, {"q1": ["a"]})
    answers = [
        answers_of(build("python", folder, function=f"{module}:{name}"), asked)["q1"]["answer"]
        for name in ("plain", "all_of_them", "any_of_them")
    ]
    assert answers == ["why? 3", "q1 why? ['a']", "query_id,question"]


def test_an_argument_with_a_default_is_left_out_if_the_dataset_does_not_have_it(folder: Path) -> None:
    module = write_module(folder, "def opt(question, contexts=None, k=5): return f'{question} {contexts} {k}'\n")
    asked = collection({"q1": "why?", "q2": "who?"}, {"q1": ["a"], "q2": None})
    kept = MemoryAnswers()
    system = build("python", folder, answers=kept, function=f"{module}:opt")
    rows = answers_of(system, asked)
    assert [row["answer"] for row in rows.values()] == ["why? ['a'] 5", "who? None 5"]
    imported, fresh = system, build("python", folder, answers=kept, function=f"{module}:opt")
    for known in (imported.find_answers(asked), fresh.find_answers(asked)):
        assert sorted(known["answer"]) == ["who? None 5", "why? ['a'] 5"]


def test_an_argument_without_a_default_is_not_left_out(folder: Path) -> None:
    module = write_module(folder, "def answer(question, contexts): return 'x'\n")
    row = answers_of(build("python", folder, function=f"{module}:answer"), {"q1": "why?"})["q1"]
    assert "the dataset has no reference contexts for this query" in row["error"]


def test_async_functions_run_at_the_same_time_in_one_loop(folder: Path) -> None:
    module = write_module(
        folder,
        """
        import asyncio
        waiting, loops = [], set()
        async def answer(question):
            loops.add(asyncio.get_running_loop())
            waiting.append(question)
            while len(waiting) < 4:
                await asyncio.sleep(0.001)
            return f"{len(loops)}"
        """,
    )
    system = build("python", folder, function=f"{module}:answer", concurrency=4, timeout=20)
    rows = answers_of(system, {f"q{number}": str(number) for number in range(4)})
    assert {row["answer"] for row in rows.values()} == {"1"}


def test_sync_functions_run_at_the_same_time_up_to_the_limit(folder: Path) -> None:
    module = write_module(
        folder,
        """
        import threading
        barrier = threading.Barrier(3)
        now, most, lock = 0, 0, threading.Lock()
        def answer(question):
            global now, most
            with lock:
                now += 1
                most = max(most, now)
            barrier.wait(20)
            with lock:
                now -= 1
            return str(most)
        """,
    )
    system = build("python", folder, function=f"{module}:answer", concurrency=3)
    rows = answers_of(system, {f"q{number}": str(number) for number in range(9)})
    assert max(row["answer"] for row in rows.values()) == "3"


def test_one_question_at_a_time_is_one_thread_with_the_import(folder: Path) -> None:
    source = """
        import threading
        home = threading.get_ident()
        def answer(question):
            return str(threading.get_ident() == home)
        """
    system = build("python", folder, function=f"{write_module(folder, source)}:answer", concurrency=1)
    rows = answers_of(system, {"q1": "a", "q2": "b"}) | answers_of(system, {"q3": "c"})
    assert [row["answer"] for row in rows.values()] == ["True"] * 3


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_that_takes_too_long_times_out(folder: Path, kind: str) -> None:
    wait = "await asyncio.sleep(30)" if kind == "async def" else "time.sleep(1)"
    source = f"import asyncio, time\n{kind} answer(question):\n    {wait}\n"
    row = ask(folder, source, timeout=0.1, retries=0)
    assert row["error"].endswith(":answer gave no answer within 0.1 s")


@pytest.mark.parametrize(
    ("error", "tries"),
    [("ConnectionError()", 3), ("TimeoutError()", 3), ("Refused(429)", 3), ("Refused(400)", 1), ("KeyError('x')", 1)],
)
def test_only_transient_failures_are_retried(folder: Path, error: str, tries: int) -> None:
    source = f"""
        calls = []
        class Refused(Exception):
            def __init__(self, code): self.status_code = code
        def answer(question):
            calls.append(question)
            if len(calls) <= 2:
                raise {error}
            return str(len(calls))
        """
    row = ask(folder, source, retries=2)
    assert row.get("answer") == ("3" if tries == 3 else None)
    assert ("error" in row) == (tries == 1)


def test_nothing_is_imported_before_the_first_question(folder: Path) -> None:
    module = write_module(
        folder, "from pathlib import Path\nPath(__file__).with_name('seen').touch()\ndef f(question): ...\n"
    )
    system: Any = build("python", folder, function=f"{module}:f")
    assert [file.path.name for file in system.inputs()] == [f"{module}.py"]
    assert system.answers_on("any") and system.check() is None and system.key
    assert system.find_answers(collection({"q1": "a"})).height == 0
    assert not (folder / "seen").exists() and module not in sys.modules


def test_the_module_next_to_the_spec_wins_over_others_of_its_name(tmp_path: Path) -> None:
    answers = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        module = write_module(tmp_path / name, f"def answer(question): return '{name}'\n", "shared_rag")
        system = build("python", tmp_path / name, function=f"{module}:answer")
        answers.append(answers_of(system, {"q1": "a"})["q1"]["answer"])
    assert answers == ["one", "two"]


def test_a_package_and_a_method_can_be_named(folder: Path) -> None:
    (folder / "rag_package").mkdir()
    (folder / "rag_package" / "__init__.py").touch()
    (folder / "rag_package" / "chain.py").write_text(
        "class Chain:\n    async def answer(self, question): return question + '!'\nchain = Chain()\n"
    )
    system = build("python", folder, function="rag_package.chain:chain.answer")
    assert [file.path.name for file in system.inputs()] == ["chain.py"]
    assert answers_of(system, {"q1": "a"})["q1"]["answer"] == "a!"


def test_an_installed_module_can_be_named(folder: Path) -> None:
    system = build("python", folder, function="json:dumps")
    assert [file.path.parts[-2:] for file in system.inputs()] == [("json", "__init__.py")]
    with pytest.raises(UsageError, match=r"systems\.tested\.function: needs the argument 'obj'"):
        system.answer(collection({"q1": "a"}))


def test_a_module_that_does_not_exist_is_a_missing_file(folder: Path) -> None:
    (file,) = build("python", folder, function="rag_nowhere.chain:answer").inputs()
    assert file.path == folder / "rag_nowhere" / "chain.py"
    assert file.hint == "nor is a module 'rag_nowhere.chain' installed"


@pytest.mark.parametrize(
    ("source", "function", "message"),
    [
        ("import rag_not_there_either", "answer", "raised ModuleNotFoundError: No module named"),
        ("1/0", "answer", "raised ZeroDivisionError"),
        ("raise SystemExit(0)", "answer", " called sys.exit(0); it must return"),
        ("def f(: ...", "answer", "raised SyntaxError"),
        ("x = 1", "answer", "there is no 'answer' in"),
        ("answer = 1", "answer", "is not a function; its type is int"),
        ("def answer(prompt): ...", "answer", "needs the argument 'prompt'; it is given question, query_id, contexts"),
        ("def answer(question, /): ...", "answer", "needs the argument 'question'"),
        ("def answer(): ...", "answer", "takes neither 'question' nor 'query_id', so it would not know the question"),
        ("def answer(q='?'): ...", "answer", "its parameters can be question, query_id, contexts"),
        ("def answer(contexts): ...", "answer", "takes neither 'question' nor 'query_id'"),
    ],
)
def test_a_function_that_cannot_be_called_stops_before_any_question(
    folder: Path, source: str, function: str, message: str
) -> None:
    module = write_module(folder, source + "\n")
    with pytest.raises(UsageError) as caught:
        build("python", folder, function=f"{module}:{function}").answer(collection({"q1": "a"}))
    assert str(caught.value).startswith("systems.tested.function: ") and message in str(caught.value)


def test_questions_are_asked_again_only_if_the_module_changed(folder: Path) -> None:
    kept = MemoryAnswers()
    source = "calls = []\ndef answer(question):\n    calls.append(question)\n    return str(len(calls))\n"
    module = write_module(folder, source)

    def answer() -> dict[str, Any]:
        return answers_of(build("python", folder, answers=kept, function=f"{module}:answer"), {"q1": "a"})["q1"]

    first = answer()
    assert first["answer"] == "1" and answer() == first  # with the seconds that it took the first time
    (folder / f"{module}.py").write_text(source + "# changed\n")
    assert answer()["answer"] == "2"


@pytest.mark.parametrize("arguments", ["question", "question, query_id", "**told", "*, contexts, question"])
def test_kept_answers_are_found_without_an_import(folder: Path, arguments: str) -> None:
    kept = MemoryAnswers()
    module = write_module(folder, f"def answer({arguments}): return 'x'\n")
    asked = collection({"q1": "why?"}, {"q1": ["a"]})
    first = build("python", folder, answers=kept, function=f"{module}:answer").answer(asked).answers
    del sys.modules[module]
    found = build("python", folder, answers=kept, function=f"{module}:answer").find_answers(asked)
    assert found.equals(first) and module not in sys.modules


@pytest.mark.parametrize("function", ["rag.py", "rag", "rag:", ":f", "rag:f()", "a b:c", "../rag:f"])
def test_a_function_is_named_with_its_module(function: str) -> None:
    with pytest.raises(ValidationError, match="write 'module:function'"):
        build("python", function=function)


def test_unfinished_work_does_not_delay_the_end(folder: Path) -> None:
    before = set(threading.enumerate())
    ask(folder, "import time\ndef answer(question):\n    time.sleep(0.5)\n", timeout=0.05, retries=0)
    left = set(threading.enumerate()) - before
    assert left and all(thread.daemon for thread in left)


@pytest.mark.parametrize(
    ("source", "function", "fault"),
    [
        ("def answer(question): ...", "answer", None),
        ("class Chain: ...\nchain = Chain()", "chain.answer", None),
        ("from rag_elsewhere import *", "answer", None),
        ("def anwser(question): ...", "answer", "function: there is no 'answer' in {}.py; did you mean 'anwser'?"),
        ("def run(question): ...\n_x = 1", "answer", "function: there is no 'answer' in {}.py; it has run"),
        ("def answer(q=1): ...", "answer", "function: {}:answer takes neither 'question' nor 'query_id'"),
        ("raise SystemExit\ndef f(: ...", "f", ":2: "),
    ],
)
def test_errors_visible_in_a_modules_text_are_reported_before_a_run(
    folder: Path, source: str, function: str, fault: str | None
) -> None:
    module = write_module(folder, source)
    found = build("python", folder, function=f"{module}:{function}").check()
    assert found is None if fault is None else fault.format(module) in (found or "")
    assert module not in sys.modules


def test_a_module_elsewhere_is_not_read(folder: Path) -> None:
    assert build("python", folder, function="json:no_such_name").check() is None


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_that_exits_fails_only_for_that_question(folder: Path, kind: str) -> None:
    module = write_module(
        folder,
        f"""
        import sys

        {kind} answer(question):
            if question == 'leave':
                sys.exit(0)
            return question
        """,
    )
    asked = {"q1": "leave", "q2": "stay", "q3": "on"}
    rows = answers_of(build("python", folder, function=f"{module}:answer", timeout=20), asked)
    assert rows["q1"]["error"] == f"{module}:answer called sys.exit(0); it must return or raise an exception"
    assert [rows[name]["answer"] for name in ("q2", "q3")] == ["stay", "on"]
