"""`python`: a function that answers questions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from functools import partial
from itertools import combinations
from numbers import Real
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import Field, field_validator

from rageval_spec.endpoints.tries import WORTH_ANOTHER_TRY
from rageval_spec.errors import DataError
from rageval_spec.plugin import Context, InputFile
from rageval_spec.recorded import questions_and_answers
from rageval_spec.recorded.answers_and_steps import AnswerRow, UnusableReplyError, read_amount, read_id
from rageval_spec.recorded.http_replies import STEP_KEYS, ReplyLayout
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.systems.shared.answering_system import AnsweringNode, AnsweringSystem
from rageval_spec.systems.shared.question_templates import ASKING, VARIABLES, AskError, Variables
from rageval_spec.user_functions import (
    NamedFunction,
    Workers,
    call_async,
    check_name,
    describe_error,
    find_beside,
    finish,
    is_async,
    list_imports,
)

_LAYOUT = ReplyLayout()
_NOT_ASKED = (
    "takes neither 'question' nor 'query_id', so it would not know the question; "
    f"its parameters can be {', '.join(VARIABLES)}"
)
_ATTRIBUTES = (
    *(*questions_and_answers.ANSWER_KEYS, *questions_and_answers.CONTEXT_KEYS, *STEP_KEYS, "content", "text"),
    *("context_ids", "retrieved_context_ids", "input_tokens", "output_tokens", "prompt_tokens", "completion_tokens"),
    *("cost", "response_metadata", "finish_reason", "stop_reason"),
)
_CONTEXTS = frozenset(questions_and_answers.CONTEXT_KEYS)
_RANKED_KEYS = ("context_ids", "retrieved_context_ids", "ids", *questions_and_answers.CONTEXT_KEYS, "results", "hits")
"""Where a retriever's dict has the list of what it found."""
_CONTEXT_ATTRIBUTES = tuple(
    name
    for name in (*questions_and_answers.TEXT_KEYS, *questions_and_answers.ID_KEYS, *questions_and_answers.SCORE_KEYS)
    if name.isidentifier()
)
_DOCUMENT_ATTRIBUTES = (*_CONTEXT_ATTRIBUTES, "metadata", "meta")


class PythonNode(AnsweringNode):
    """A function that answers or retrieves, sync or async. It is not imported before the first question."""

    function: str = Field(
        description=(
            "`module:function`. The module is looked up next to the spec first. The function gets the arguments that "
            "it has, by name: `question`, `query_id`, `contexts` (the dataset's reference contexts; omitted if there "
            "are none and the argument has a default). It returns the answer, or a dict or object with `answer`, "
            "`contexts`, `context_ids`, `input_tokens`, `output_tokens`, `cost`. Unless it is async, it is called "
            "from several threads; if it is not thread-safe, write `concurrency: 1`."
        )
    )
    retrieves: bool = Field(
        default=False,
        description="Whether the function is a retriever without answers. It then returns what it found, best first: "
        "ids, pairs of an id and a score, or documents with an id (LangChain, LlamaIndex, Haystack, dicts); or a dict "
        "of scores by id.",
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=100,
        description=(
            "How often to retry after a timeout, a ConnectionError, a TimeoutError or an exception whose `status_code` "
            "is 408, 409, 425, 429 or 5xx."
        ),
    )

    @field_validator("retrieves", mode="before")
    @classmethod
    def _refuse_path(cls, found: Any) -> Any:
        if isinstance(found, str) and found.startswith("$"):
            raise ValueError("a function returns the ids themselves; write 'retrieves: true'")
        return found

    @field_validator("function")
    @classmethod
    def _check_function(cls, text: str) -> str:
        return check_name(text, "'rag:answer' for the function answer in rag.py")


class Python(AnsweringSystem[PythonNode]):
    """Calls a function in threads; an async function runs in one event loop that lasts as long as the process.

    Stored answers depend on the content of the module's file. An evaluation that was interrupted is continued only if
    neither the modules beside it that it imports nor the commit changed either; files that the function reads are seen
    if git tracks them. A sync function that exceeds the timeout cannot be stopped, and
    keeps running in its thread.
    """

    known_as = ("langchain", "llama_index", "llamaindex", "haystack", "dspy", "function", "callable")
    later_keys = AnsweringSystem.later_keys | frozenset({"retrieves"})

    def __init__(self, node: PythonNode, context: Context) -> None:
        """Prepare to call the function; its module is imported with the first question."""
        super().__init__(node, context)
        self._named = NamedFunction(node.function, context.resolve("."), f"systems.{context.name}.function")
        self._function: Callable[..., Any] | None = None
        self._lock = Lock()
        self._workers = Workers()
        self._pending: set[Future[Any]] = set()

    def inputs(self) -> Sequence[InputFile]:
        return self._named.inputs()

    def list_code(self) -> Iterable[Path]:
        folder = self.context.resolve(".")
        script = find_beside(folder, self._named.module)
        return () if script is None else list_imports(script, folder)

    def check(self) -> str | None:
        """Check without importing: only modules next to the spec."""
        if self._function is not None:
            return None
        try:
            absence, parameters = self._named.explain_absence(), self._named.find_parameters()
        except DataError as error:
            return f"function: {error}"
        if absence is not None:
            return f"function: {absence}"
        return None if parameters is None or parameters & ASKING else f"function: {self.node.function} {_NOT_ASKED}"

    @property
    def variables(self) -> frozenset[str]:
        """The function's arguments that are variables; question and id if it takes any argument."""
        parameters = self._list_parameters()
        if parameters is None:
            return frozenset({"question"})
        takes = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        odd = [p.name for p in required if p.name not in takes & set(VARIABLES)]
        if odd:
            raise self._named.complain(f"needs the argument {odd[0]!r}; it is given {', '.join(VARIABLES)} by name")
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            takes |= {"question", "query_id"}
        if not takes & ASKING:
            raise self._named.complain(_NOT_ASKED)
        return frozenset(takes & set(VARIABLES))

    @property
    def dispensable_variables(self) -> frozenset[str]:
        parameters = self._list_parameters() or ()
        return frozenset({p.name for p in parameters if p.default is not p.empty} & set(VARIABLES))

    def _list_parameters(self) -> Sequence[inspect.Parameter] | None:
        """The function's parameters; None if it does not show them."""
        try:
            return [*inspect.signature(self._load()).parameters.values()]
        except (TypeError, ValueError):
            return None

    def guess_variables(self) -> Sequence[frozenset[str]]:
        """Before the import, all variables; after it, the function's variables without and with the optional ones."""
        if self._function is not None:
            return (self.variables - self.dispensable_variables, self.variables)
        candidates = self._list_candidates()
        counts = range(1, len(candidates) + 1)
        takes = (frozenset(names) for count in counts for names in combinations(candidates, count))
        return [names for names in takes if names & ASKING]

    def _list_candidates(self) -> Sequence[str]:
        """The variables that the function can take, as far as its source shows them."""
        try:
            parameters = self._named.find_parameters()
        except DataError:
            parameters = None
        if parameters is None or not parameters & ASKING:
            return VARIABLES
        return [name for name in VARIABLES if name in parameters | ASKING]

    def ask(self, told: Variables) -> AnswerRow:
        result = self._call(self._load(), told)
        try:
            return _read_retrieval(result) if self.node.retrieves else _LAYOUT.read(_as_content(result))
        except UnusableReplyError as error:
            raise AskError(f"{self.node.function}: {error}") from error

    def close(self, *, at_once: bool = False) -> None:  # noqa: ARG002 - nothing takes long
        with self._lock:
            pending = list(self._pending)
        for future in pending:
            future.cancel()

    def _call(self, function: Callable[..., Any], told: Variables) -> Any:
        future: Future[Any]
        call = partial(function, **told)
        future = call_async(function, told) if is_async(function) else self._workers.submit(lambda: finish(call()))
        with self._lock:
            self._pending.add(future)
        try:
            return self._result(future)
        finally:
            with self._lock:
                self._pending.discard(future)

    def _result(self, future: Future[Any]) -> Any:
        if not wait([future], self.node.timeout).done:
            future.cancel()
            message = f"{self.node.function} gave no answer within {self.node.timeout:g} s"
            # Retrying a call that was not cancelled and still runs would double the load.
            raise AskError(message, is_temporary=future.cancelled())
        try:
            return future.result()
        except CancelledError as error:
            raise AskError(f"{self.node.function} was cancelled") from error
        except BaseException as error:
            raise AskError(describe_error(self.node.function, error), is_temporary=_is_temporary(error)) from error

    def _load(self) -> Callable[..., Any]:
        with self._lock:
            if self._function is None:
                self._function = self._workers.submit(self._named.load).result()
            return self._function


def _is_temporary(error: BaseException) -> bool:
    status = getattr(error, "status_code", None)
    refused = isinstance(status, int) and (status in WORTH_ANOTHER_TRY or 500 <= status < 600)
    return refused or isinstance(error, (ConnectionError, TimeoutError))


def _as_content(result: Any) -> Any:
    """A result as JSON's types: objects become dicts of the attributes that an answer or a context may have."""
    plain = (str, bool, int, float, list, tuple)
    if result is None or isinstance(result, plain):
        return result
    content = dict(result) if isinstance(result, Mapping) else _attributes(result, _ATTRIBUTES)
    for key in _CONTEXTS & content.keys():
        if isinstance(content[key], (list, tuple)):
            content[key] = [
                item if item is None or isinstance(item, (*plain, Mapping)) else _attributes(item, _CONTEXT_ATTRIBUTES)
                for item in content[key]
            ]
    return content


_Retrieved = tuple[str, str | None, float | None]
"""The id of a document that was found, its text and its score."""


def _read_retrieval(result: Any) -> AnswerRow:
    """What a retriever's function returned. A list is a ranking as it is; a dict of scores is one by its scores."""
    items = result.tolist() if hasattr(result, "tolist") else result
    if isinstance(items, Mapping):
        named = questions_and_answers.find_named(items, _RANKED_KEYS)
        items = named if isinstance(named, (list, tuple)) else _rank_by_score(items)
    if not isinstance(items, (list, tuple)):
        what = "None" if result is None else f"a {type(result).__name__}"
        raise UnusableReplyError(f"it returned {what}; a retriever returns a list, which is empty if it found nothing")
    found = [_read_retrieved(item, f"[{place}]") for place, item in enumerate(items)]
    ids, texts, scores = zip(*found, strict=True) if found else ((), (), ())
    if None in scores and any(score is not None for score in scores):
        raise UnusableReplyError(f"[{scores.index(None)}] has no score, although others have one")
    return AnswerRow(
        contexts=None if None in texts else texts, context_ids=ids, scores=None if None in scores else scores
    )


def _rank_by_score(scores: Mapping[Any, Any]) -> list[tuple[str, float]]:
    """The pairs of a dict, best first. Equal scores as in trec_eval: the higher id first."""
    read = [(read_id(doc_id, "an id"), _read_score(score, f"[{doc_id!r}]")) for doc_id, score in scores.items()]
    return sorted(read, key=lambda pair: (pair[1], pair[0]), reverse=True)


def _read_retrieved(item: Any, what: str) -> _Retrieved:
    document, *scores = item if isinstance(item, (list, tuple)) else (item,)
    if len(scores) > 1:
        raise UnusableReplyError(f"{what} has {len(scores) + 1} items; write an id, or a pair of an id and a score")
    score = scores[0] if scores else None
    if isinstance(document, (str, Real)):
        return read_id(document, what), None, None if score is None else _read_score(score, what)
    content = document if isinstance(document, Mapping) else _attributes(document, _DOCUMENT_ATTRIBUTES)
    read = questions_and_answers.read_document(content)
    if read is None or read.doc_id is None:
        raise UnusableReplyError(f"{what} has no id; it has {list_keys(list(content))}")
    if score is None:
        opened = questions_and_answers.open_document(content)
        score = next((opened[key] for key in questions_and_answers.SCORE_KEYS if opened.get(key) is not None), None)
    return read.doc_id, read.text, read.score if score is None else _read_score(score, what)


def _read_score(score: Any, what: str) -> float:
    if isinstance(score, str):
        raise UnusableReplyError(f"the score of {what} must be a number, not text: {score[:60]!r}")
    return read_amount(score, f"the score of {what}", low=-math.inf)


def _attributes(found: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(found, name) for name in names if hasattr(found, name)}


PLUGIN = Python
