"""Finds the question, the answer, the documents and the tokens in what a program recorded, in any known shape.

What is recorded has no fixed form: plain text, JSON as text, objects as Python prints them, arguments of functions,
chat messages, a pipeline's state, the reply of a server. The tables below name the places of each part, for files, for
HTTP replies and for all tools alike; `messages` reads the forms of messages. Nothing here fails: what is not found is
None. JSON of no known form, printed objects and generators are never a question or an answer.

Names are compared without capitals and underscores: `actual_output` is `actualOutput`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from rageval_spec.libraries import compile_later
from rageval_spec.recorded import messages, values

if TYPE_CHECKING:
    from rageval_spec.data.traces import Document
    from rageval_spec.recorded.json_path import JsonPath

QUESTION_KEYS = (
    *("question", "query", "user_input", "user_query", "user_question", "user_message", "user_msg", "query_str"),
    *("query_text", "search_query", "question_text", "task", "input_text", "human_input", "messages", "chat_history"),
    *("input", "inputs", "prompt"),
)
"""Where a question is in an input, best place first."""
ANSWER_KEYS = (
    *("answer", "final_answer", "final_output", "final_result", "actual_output", "generation", "response", "reply"),
    *("output_text", "completion", "messages", "output", "outputs", "result", "return_value", "generated_text"),
    *("results", "choices", "candidates", "generations", "replies", "answers"),
)
"""Where an answer is in an output or a reply, best place first."""
_LATER_KEYS = {
    QUESTION_KEYS: ("message", "text", "content", "contents", "q", "topic", "goal"),
    ANSWER_KEYS: ("message", "content", "text", "raw", "data"),
}
"""Where else they are, if nothing holds the parts under names of its own: `{"message": "ok", "data": {...}}`."""
_PLAIN_TEXTS = frozenset({"answer", "finalanswer", "question", "query", "userinput", "userquery", "userquestion"})
"""Names whose text is the part as it is, even if it is JSON."""
CONTEXT_KEYS = (
    *("contexts", "retrieved_contexts", "retrieval_context", "context", "source_documents", "documents"),
    *("source_nodes", "retrieved_documents"),
)
"""Where an answer names the documents that it is based on."""
_CITED_KEYS = (*CONTEXT_KEYS[4:], "sources", "citations")
"""Where it may also name titles, addresses or its own words: only objects with a text each are contexts there."""
UNREAD_KEYS = tuple(dict.fromkeys((*CONTEXT_KEYS, *_CITED_KEYS)))
DOCUMENT_KEYS = (
    *CONTEXT_KEYS,
    *("docs", "sources", "nodes", "results", "matches", "hits", "chunks", "passages", "points", "objects", "data"),
    *("retrieval_results", "output", "outputs", "result", "artifact", "update", "value", "structured_content"),
    "content",
)
"""Where a retriever's output has its documents."""
TEXT_KEYS = (
    *("text", "page_content", "content", "contents", "passage", "chunk", "body", "document", "snippet"),
    *("chunk_text", "output_text"),
)
ID_KEYS = ("doc_id", "document_id", "id", "_id", "docid", "chunk_id", "id_", "node_id", "uuid", "file_id", "key")
SCORE_KEYS = ("score", "relevance_score", "similarity", "similarity_score", "_score", "rerank_score", "@search.score")
_SOURCE_KEYS = ("doc_id", "doc_uri", "source", "id", "url", "uri", "file_name")
"""Where the metadata of a document name it."""
_INNER_KEYS = ("document", "node", "kwargs", "payload", "_source", "properties", "init_parameters", "fields", "chunk")
"""Keys whose object holds a document, beside its score."""
_METADATA_KEYS = ("metadata", "meta", "extra_info")
_WRAPPERS = (
    *("inputs", "outputs", "output", "data", "kwargs", "args", "update", "value", "init_parameters", "state", "body"),
    *("_data", "_store", "arguments", "result", "response"),
)
"""Keys whose object or list holds the parts; a text under them means nothing."""
_ASIDE = frozenset(
    {"metadata", "meta", "tags", "config", "usage", "additionalkwargs", "responsemetadata", "callbacks", "raw",
     "usagemetadata", "llmoutput", "generationinfo", *(re.sub(r"[_\W]", "", key) for key in DOCUMENT_KEYS[:11])}
)  # fmt: skip
"""Keys of objects that hold neither a question nor an answer, whatever is in them."""
_SEVERAL = frozenset({"choices", "candidates", "generations", "replies", "answers", "results"})
"""Keys of lists whose first item is the answer; other lists of several texts are none."""
_NAMES = ("name", "id", "type", "model", "version", "status")
"""Keys whose text says what an object is."""
_INPUT_TOKENS = ("input_tokens", "prompt_tokens", "prompt_token_count", "prompt_eval_count", "input_token_count")
_OUTPUT_TOKENS = (
    *("output_tokens", "completion_tokens", "candidates_token_count", "eval_count", "output_token_count"),
    "generated_tokens",
)
_USAGE_KEYS = (
    *("usage", "usage_metadata", "token_usage", "response_metadata", "llm_output", "raw", "additional_kwargs"),
    *("meta", "message", "kwargs", "data", "response", "generations", "billed_units", "tokens", "output", "replies"),
)
"""Keys whose object has the tokens, or has what has them."""
_MESSAGE_KEYS = ("messages", "chathistory", "inputs", "input")
_WORD = compile_later(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SEARCHING = compile_later(r"(?<!re)search|retriev|look ?up|rerank")
_GETTING = frozenset(
    {"find", "fetch", "get", "load", "read", "query", "ask", "pull", "gather", "collect", "select", "browse", "visit",
     "consult", "match", "finder", "fetcher", "getter", "loader", "reader"}
)  # fmt: skip
_OTHER_VERBS = frozenset(
    {"generate", "rewrite", "write", "make", "create", "build", "plan", "format", "summarize", "summarise", "grade",
     "evaluate", "judge", "decide", "should", "route", "save", "log", "clear", "delete", "remove", "update", "set",
     "count", "parse", "validate", "is", "has", "needs", "need", "expand", "transform", "rephrase", "refine", "improve",
     "init", "configure", "add", "send", "draft", "answer", "classify", "explain", "close", "stop", "cancel"}
)  # fmt: skip
"""First words of names that make something of a search or of documents: `generate_search_query`, `grade_documents`."""
_DOCUMENTS = frozenset(
    {"document", "doc", "passage", "chunk", "context", "article", "paragraph", "snippet", "excerpt", "evidence", "page",
     "knowledge", "kb", "faq", "wiki", "wikipedia", "library", "corpus", "handbook", "manual", "policy", "webpage",
     "website", "vector", "vectorstore", "vectordb", "docstore", "knowledgebase", "arxiv", "pubmed"}
)  # fmt: skip
_AROUND = frozenset({"tool", "base", "store", "db", "database", "engine", "internal", "company", "product", "support",
                     "help", "center", "api", "the", "my", "our", "local"})  # fmt: skip
"""Words that may stand beside documents in the name of a place that has them: `company_knowledge_base`."""
_MOST_DEPTH, _SHOWN = 8, 60
T = TypeVar("T")


@lru_cache(maxsize=4096)
def _plain(key: str) -> str:
    return re.sub(r"[_\-\s]", "", key).lower() or key


_TABLES = (
    *(QUESTION_KEYS, ANSWER_KEYS, *_LATER_KEYS.values(), CONTEXT_KEYS, DOCUMENT_KEYS, TEXT_KEYS, ID_KEYS, SCORE_KEYS),
    *(_CITED_KEYS, _SOURCE_KEYS, _INNER_KEYS, _METADATA_KEYS, _WRAPPERS, _INPUT_TOKENS, _OUTPUT_TOKENS, _USAGE_KEYS),
)
_PLAIN = {keys: tuple(map(_plain, keys)) for keys in _TABLES}


def retrieves(name: str) -> bool:
    """Whether the name of a step or a tool says that it finds documents.

    It searches, or looks up; or it gets something that is a document (`fetch_articles`, `query_kb`); or it is called
    like a place with documents (`knowledge_base`). A name that begins with what is made of them says something else, as
    `rewrite_search_query` does; of several steps in one name (`rewrite_and_search`), one is enough.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    return any(_says_retrieval(part.split()) for part in re.split(r" (?:and|then) ", " ".join(words)))


def _says_retrieval(words: Sequence[str]) -> bool:
    if not words or words[0] in _OTHER_VERBS:
        return False
    if _SEARCHING.search(" ".join(words)):
        return True
    named = [word for word in words if word in _DOCUMENTS or word.removesuffix("s") in _DOCUMENTS or word == "policies"]
    return bool(named) and (words[0] in _GETTING or words[-1] in _GETTING or {*words} - {*named} <= _AROUND)


def find_question(content: Any) -> str | None:
    """The question in a recorded input; of chat messages, the last one of the user."""
    return _clean(_guard(_find, content, QUESTION_KEYS))


def find_answer(content: Any) -> str | None:
    """The answer in a recorded output or a reply; "" if one is there and empty.

    Of chat messages, the model's text after the last one of the user: a model that only called tools gave no answer.
    """
    return _clean(_guard(_find, content, ANSWER_KEYS))


def find_reply(content: Any) -> str | None:
    """The answer in the reply of a server, with halves of surrogate pairs as they are.

    Nothing beside the reply says what the answer is. So a text under one of the names counts even if it is JSON.
    """
    found: str | None = _guard(_find, content, ANSWER_KEYS)
    if found is None and isinstance(content, Mapping):
        named = _by_plain_name(content)
        texts = (named.get(key) for key in (*_PLAIN[ANSWER_KEYS], *_PLAIN[_LATER_KEYS[ANSWER_KEYS]]))
        found = next((text for text in texts if isinstance(text, str) and not _is_object(text)), None)
    return found


def find_named(content: Any, keys: tuple[str, ...]) -> Any:
    """The first value under one of the names, in an object or in what it wraps, such as `data`; None without any."""
    named = _by_plain_name(content) if isinstance(content, Mapping) else {}
    wrapped = (named[key] for key in _PLAIN[_WRAPPERS] if isinstance(named.get(key), Mapping))
    for place in (named, *map(_by_plain_name, wrapped)):
        for key in map(_plain, keys):
            if place.get(key) is not None:
                return place[key]
    return None


def names_answer(key: str) -> bool:
    """Whether an object's key is one of those under which answers are looked for."""
    return _plain(key) in (*_PLAIN[ANSWER_KEYS], *_PLAIN[_LATER_KEYS[ANSWER_KEYS]])


def find_documents(content: Any) -> tuple[Document, ...] | None:
    """The documents that a retriever recorded as its output, best first; None if it holds no list of them."""
    return _guard(_find_documents, content)


def find_contexts(content: Any) -> tuple[Document, ...] | None:
    """The documents that a whole answer names under a key such as `contexts`; None without such a key."""
    from rageval_spec.data.traces import Document

    content = values.open_text(content)
    found = {} if not isinstance(content, Mapping) else _by_plain_name(content)
    for key in _PLAIN[CONTEXT_KEYS]:
        listed = values.open_text(found.get(key))
        if isinstance(listed, list) and (documents := _guard(_find_documents, listed)) is not None:
            return documents
        if is_passage(listed):
            return (Document(values.clean_text(listed)),)
    return find_cited(content)


def find_cited(content: Any) -> tuple[Document, ...] | None:
    """The documents under a key such as `sources`, if each of them is an object with a text; None without them."""
    for key in _CITED_KEYS:
        listed = values.open_text(find_named(content, (key,)))
        items = listed if isinstance(listed, list) else [listed]
        cited = [one for item in items for one in _list_references(item)]
        read = [read_document(item) for item in cited if isinstance(item, Mapping)]
        if cited and len(read) == len(cited) and all(one is not None and one.text for one in read):
            return tuple(one for one in read if one is not None)
    return None


def _list_references(item: Any) -> list[Any]:
    """What a citation cites: itself, what Bedrock says that it refers to, or None if its text is of the answer."""
    named = _by_plain_name(item) if isinstance(item, Mapping) else {}
    if isinstance(listed := named.get("retrievedreferences"), list):
        return listed
    return [None if {"start", "end"} <= named.keys() else item]


def find_unread(content: Any) -> Iterator[tuple[str, str]]:
    """What stands under keys of contexts, where no contexts could be read: each key and the beginning of its text."""
    for key in UNREAD_KEYS:
        if (found := find_named(content, (key,))) not in (None, "", [], {}):
            yield key, (values.dump_text(found) or "")[:_SHOWN]


def find_listed_documents(content: Any) -> tuple[Document, ...] | None:
    """As `find_documents`, but only if each has more than a text: what any function gives can be a list of texts."""
    items: list[Any] = []
    found = _guard(_find_documents, content, 0, items)
    return found if found and all(map(is_document, items)) else None


_SAYS_NOTHING = frozenset({"null", "none", "true", "false", "nan"})


def is_passage(text: Any) -> TypeGuard[str]:
    """Whether the whole reply of a tool that retrieves can be a text for people: it has words, and is no JSON."""
    if not isinstance(text, str) or text.strip().lower() in _SAYS_NOTHING:
        return False
    return any(letter.isalpha() for letter in text) and not values.is_dump(text)


def find_passages(reply: Mapping[str, Any]) -> tuple[Document, ...] | None:
    """The documents in an object that a tool gave which retrieves: it is one, has a list of them, or has one text."""
    from rageval_spec.data.traces import Document

    if is_document(reply) or values.CLASS in reply:
        document = read_document(reply)
        return None if document is None or document.text is None else (document,)
    if (listed := find_documents(reply)) is not None:
        return listed
    named = _by_plain_name(reply)
    texts = (named.get(key) for key in (*_PLAIN[DOCUMENT_KEYS], *_PLAIN[ANSWER_KEYS], *_PLAIN[TEXT_KEYS]))
    return next(((Document(values.clean_text(text)),) for text in texts if is_passage(text)), None)


def is_document(item: Any) -> bool:
    """Whether a value is a text with an id, a score, or metadata beside it."""
    item = values.open_text(item)
    if isinstance(item, list | tuple):
        return len(item) == 2 and is_document(item[0]) and values.read_number(item[1]) is not None
    if not isinstance(item, Mapping) or messages.is_message(item) or "additional_kwargs" in item:
        return False
    found = read_document(item)
    if found is None or found.text is None:
        return False
    return found.doc_id is not None or found.score is not None or bool(found.metadata)


def find_messages(content: Any) -> tuple[dict[str, Any], ...]:
    """The chat messages in a recorded input; () if it holds no more than a question."""
    return _guard(_find_messages, content) or ()


def find_tokens(content: Any) -> tuple[int | None, int | None]:
    """The tokens of input and output that a model's reply says it used; None for those that it does not name."""
    return _guard(_find_tokens, content) or (None, None)


def join_documents(lists: Iterable[Sequence[Document]]) -> tuple[Document, ...]:
    """The documents of several lists, each once, in order: one without an id is that with the same text and an id."""
    found: list[Document] = []
    places: dict[tuple[str | None, str | None], int] = {}
    for document in (one for listed in lists for one in listed):
        text, name = document.text, document.doc_id
        place = places.get((name, text))
        if place is None and text is not None:
            place = places.get((None, text)) if name is not None else places.get(("", text))
        if place is None:
            place = len(found)
            found.append(document)
        elif found[place].doc_id is None:
            found[place] = document if name is not None else found[place]
        places.setdefault((found[place].doc_id, text), place)
        places.setdefault(("", text), place)
    return tuple(found)


def choose_documents(
    named: Sequence[Document] | None, retrieved: Sequence[Document] | None
) -> tuple[Document, ...] | None:
    """The documents that an answer is based on: those that it names, with what its retrievals know of them.

    Where it names only titles or ids that no retrieval gave, and where it names none, all that were retrieved.
    """
    if named is None:
        return None if retrieved is None else tuple(retrieved)
    if not retrieved:
        return tuple(named)
    texts = {one.text: one for one in reversed(retrieved) if one.text is not None}
    ids = {one.doc_id: one for one in reversed(retrieved) if one.doc_id is not None}
    known = [texts.get(one.text) if one.text is not None else ids.get(str(one.doc_id)) for one in named]
    filled = [one if two is None or (two.doc_id is None and one.text is not None) else two
              for one, two in zip(named, known, strict=True)]  # fmt: skip
    has_own = any(
        two is not None or one.doc_id is not None or one.metadata for one, two in zip(named, known, strict=True)
    )
    is_whole = all(one.text is not None for one in filled) and (has_own or not named)
    return join_documents([filled]) if is_whole else tuple(retrieved)


def outermost(chosen: Iterable[str], parents: Mapping[str, str | None]) -> list[str]:
    """The chosen steps that are not part of another chosen one, so that what two layers record of one counts once."""
    known = list(chosen)
    among = set(known)
    return [name for name in known if among.isdisjoint(list_above(name, parents))]


def list_above(name: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    """The steps that a step is part of, from the inside out; a step that is part of itself ends the list."""
    seen = {name}
    while (above := parents.get(name)) is not None and above not in seen:
        seen.add(above)
        yield above
        name = above


def _guard(find: Callable[..., T], *given: Any) -> T | None:
    """What is found, or None if the content nests so deeply that nobody meant it to be read."""
    try:
        return find(*given)
    except RecursionError:
        return None


def _by_plain_name(found: Mapping[Any, Any]) -> dict[str, Any]:
    return {_plain(key) if isinstance(key, str) else str(key): value for key, value in found.items()}


def _find(content: Any, keys: tuple[str, ...], depth: int = 0, *, is_named: bool = False) -> str | None:
    """The question or the answer in a value; `is_named` if a key said that the value is one."""
    opened = values.open_text(content)
    if isinstance(opened, str):
        is_text = bool(opened) or keys is ANSWER_KEYS
        return opened if is_text and not values.is_opaque(opened) else None
    if isinstance(opened, int | float):
        return json.dumps(opened) if is_named else None
    if depth > _MOST_DEPTH or not opened:
        return None
    if isinstance(opened, list | tuple):
        return _find_in_list(opened, keys, depth, is_named=is_named)
    return _find_in_mapping(opened, keys, depth) if isinstance(opened, Mapping) else None


def _find_in_list(content: Sequence[Any], keys: tuple[str, ...], depth: int, *, is_named: bool) -> str | None:
    said = [content] if messages.is_message(content) else [item for item in content if messages.is_message(item)]
    if said:
        return _find_said(said, keys)
    if all(map(messages.is_part, content)):
        return messages.join_parts(content)
    kept = [item for item in content if not (isinstance(item, str) and values.is_opaque(item))]
    if keys is QUESTION_KEYS:
        kept = [item for item in kept if not is_document(item)]
        if len(kept) > 1 and all(isinstance(item, str) for item in kept) and not is_named:
            asked = [item for item in kept if item.rstrip().endswith("?")] or [item for item in kept if " " in item]
            return asked[0] if len(asked) == 1 else None  # of several arguments, the one that is a question or a text
        return _first(_find(item, keys, depth + 1, is_named=is_named) for item in kept)
    if (len(kept) == 1 and not isinstance(kept[0], str)) or (kept and is_named):
        return None if is_document(kept[0]) else _find(kept[0], keys, depth + 1, is_named=is_named)
    return _agree([item for item in kept if not isinstance(item, str)], keys, depth)


def _find_in_mapping(content: Mapping[str, Any], keys: tuple[str, ...], depth: int) -> str | None:
    if messages.is_message(content):
        return _find_said([content], keys)
    if isinstance(content.get("parts"), list):
        return messages.join_parts(content)
    named = _by_plain_name(content)
    if (found := _find_named(named, keys, depth)) is not None:
        return found
    settings = ("kwargs",) if "inputs" in named else ()
    inner = [key for key in _PLAIN[_WRAPPERS]
             if key not in _PLAIN[keys] and key not in settings and _is_container(named.get(key))]  # fmt: skip
    if (found := _first(_find(named[key], keys, depth + 1) for key in inner)) is not None:
        return found
    if (found := _find_named(named, _LATER_KEYS[keys], depth, keys)) is not None:
        return found
    seen = {*_PLAIN[keys], *_PLAIN[_LATER_KEYS[keys]], *_PLAIN[_WRAPPERS], *_ASIDE}
    others = [value for key, value in named.items() if key not in seen and _is_container(value)]
    if (found := _agree(others, keys, depth)) is not None:
        return found
    return _find_only_text(content, named, keys)


def _find_named(
    named: Mapping[str, Any], places: tuple[str, ...], depth: int, keys: tuple[str, ...] = ()
) -> str | None:
    for key in _PLAIN[places]:
        value = named.get(key)
        if value is None or value == "" or value == [] or value == {}:
            continue
        if key in _PLAIN_TEXTS and isinstance(value, str) and not _is_object(value):
            return value
        is_named = not isinstance(value, list | tuple) or key in _SEVERAL or (keys or places) is QUESTION_KEYS
        if (found := _find(value, keys or places, depth + 1, is_named=is_named)) is not None:
            return found
    return None


def _is_object(text: str) -> bool:
    """Whether a text is a printed object, or messages as JSON, which no key can make a text of its own."""
    opened = values.open_text(text)
    first = opened[0] if isinstance(opened, list) and opened else opened
    return values.is_printed(text) or messages.is_message(first) or messages.is_part(first)


def _find_said(said: Sequence[Any], keys: tuple[str, ...]) -> str | None:
    read = messages.read_messages(said)
    text = messages.last_of(read, "user") if keys is QUESTION_KEYS else messages.last_answer(read)
    return None if text is None or values.is_opaque(text) else text


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) or (isinstance(value, str) and values.is_dump(value))


def _first(found: Iterable[str | None]) -> str | None:
    return next((text for text in found if text is not None), None)


def _agree(found: Sequence[Any], keys: tuple[str, ...], depth: int) -> str | None:
    """The text in objects under names that a program chose, such as a pipeline's components; None if they differ."""
    texts = [text for value in found if (text := _find(value, keys, depth + 1)) is not None]
    return texts[0] if len(set(texts)) == 1 else None


def _find_only_text(content: Mapping[str, Any], named: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """The only text of an input, beside numbers and flags; "" if an answer is there and empty.

    The only text of an output can be anything: `{"detail": "overloaded"}`.
    """
    if keys is ANSWER_KEYS:
        return "" if any(named.get(key) == "" for key in _PLAIN[ANSWER_KEYS]) else None
    texts = [value for key, value in named.items() if isinstance(value, str) and value and key not in _NAMES]
    settings = sum(value is None or isinstance(value, int | float) for value in content.values())
    is_alone = len(texts) == 1 and len(texts) + settings == len(content) and values.CLASS not in content
    return texts[0] if is_alone and not values.is_dump(texts[0]) else None


def _clean(text: str | None) -> str | None:
    return None if text is None else values.clean_text(text)


def _find_documents(content: Any, depth: int = 0, seen: list[Any] | None = None) -> tuple[Document, ...] | None:
    content = values.open_text(content)
    if isinstance(content, list | tuple):
        return _list_documents(content, depth, seen)
    if not isinstance(content, Mapping) or depth > 4:
        return None
    if messages.is_part(content) and (inner := content.get("text")) is not None:
        return _find_documents(inner, depth + 1, seen)
    named = _by_plain_name(content)
    others = [value for key, value in named.items() if isinstance(value, Mapping) and key not in ("metadata", "meta")]
    for value in (*(named[key] for key in _PLAIN[DOCUMENT_KEYS] if named.get(key) is not None), *others):
        if (found := _find_documents(value, depth + 1, seen)) is not None:
            return found
    return None


def _list_documents(content: Sequence[Any], depth: int, seen: list[Any] | None) -> tuple[Document, ...] | None:
    if len(content) == 1 and isinstance(content[0], list) and read_document(content[0]) is None:
        content = content[0]
    is_chat = any(map(messages.is_message, content))
    if is_chat or (content and all(map(messages.is_part, content))):
        parts = [item for item in content if _is_of_tool(item)] if is_chat else content
        found = [one for part in parts if (one := _find_documents(part, depth + 1, seen)) is not None]
        if found or is_chat:
            return join_documents(found) if found else None
    read = [document for item in content if (document := read_document(item)) is not None]
    if seen is not None:
        seen.extend(content)
    return tuple(read) if read or not content else None


def _is_of_tool(item: Any) -> bool:
    return any(message["role"] == "tool" for message in messages.read_messages([item])[:1])


def read_document(item: Any) -> Document | None:
    """A document: a text, an object with a text or an id, or a pair of one and its score; None for anything else."""
    from rageval_spec.data.traces import Document

    if isinstance(item, str):
        opened = values.open_text(item)
        if isinstance(opened, Mapping) and values.CLASS in opened:
            return read_document(opened)
        return None if values.is_opaque(item) else Document(text=values.clean_text(item))
    if isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], str | Mapping):
        document, score = read_document(item[0]), values.read_number(item[1])
        return document and Document(document.text, document.doc_id, score, document.metadata)
    if not isinstance(item, Mapping):
        return None
    places = [*_list_places(item)]
    metadata: Mapping[str, Any] = next(
        (found for place in places if (found := _pick([place], _METADATA_KEYS, _open_mapping)) is not None), {}
    )
    text = _pick([*places, metadata], TEXT_KEYS, _read_passage)
    doc_id = _pick([*places, metadata], ID_KEYS, values.read_text) or _pick(
        [_by_plain_name(metadata), *places], _SOURCE_KEYS, values.read_text
    )
    if text is None and doc_id is None:
        return None
    score = _pick([*places, metadata], SCORE_KEYS, values.read_number)
    return Document(text, doc_id, score, values.clean(metadata))


def open_document(item: Mapping[str, Any]) -> dict[str, Any]:
    """An object with a document as one object: what holds it, and the keys beside that."""
    found = dict(item)
    while (inner := next((item[key] for key in _INNER_KEYS if isinstance(item.get(key), Mapping)), None)) is not None:
        item, found = inner, {**inner, **found}
    return found


def _list_places(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """An object with a document, and the objects inside that hold it: `{node: {...}, score}`, `document.id`."""
    named = {key.removeprefix("document."): value for key, value in item.items() if isinstance(key, str)}
    yield (own := _by_plain_name(named))
    for key in _PLAIN[_INNER_KEYS]:
        if isinstance(own.get(key), Mapping):
            yield from _list_places(own[key])
            return


def _open_mapping(found: Any) -> Mapping[str, Any] | None:
    found = values.open_text(found)
    return found if isinstance(found, Mapping) else None


def _read_passage(found: Any) -> str | None:
    if isinstance(found, str):
        return values.clean_text(found)
    return _clean(messages.join_parts(found, "user")) if isinstance(found, list | Mapping) else None


def _pick(places: Iterable[Mapping[str, Any]], keys: tuple[str, ...], read: Callable[[Any], Any]) -> Any:
    for place in places:
        for key in _PLAIN[keys] if place else ():
            if key in place and (found := read(place[key])) is not None:
                return found
    return None


def _find_messages(content: Any) -> tuple[dict[str, Any], ...]:
    content = values.open_text(content)
    for _ in range(_MOST_DEPTH):
        if not isinstance(content, Mapping) or messages.is_message(content):
            break
        named = _by_plain_name(content)
        content = next((values.open_text(named[key]) for key in _MESSAGE_KEYS if named.get(key)), None)
    if not isinstance(content, list) or not content:
        return ()
    items = content[0] if len(content) == 1 and isinstance(content[0], list) else content
    if not all(map(messages.is_message, items)):
        return ()
    read = [{"content": "", **message} for message in messages.read_messages(items)]
    return tuple(map(values.clean, read)) if len(read) > 1 else ()


def _find_tokens(content: Any, depth: int = 0) -> tuple[int | None, int | None] | None:
    content = values.open_text(content)
    while isinstance(content, list | tuple) and content:
        content = values.open_text(content[-1])
    if not isinstance(content, Mapping) or depth > _MOST_DEPTH:
        return None
    named = _by_plain_name(content)
    given, made = (_pick([named], keys, values.read_count) for keys in (_INPUT_TOKENS, _OUTPUT_TOKENS))
    if given is not None or made is not None:
        return given, made
    inner = (named[key] for key in _PLAIN[_USAGE_KEYS] if named.get(key) is not None)
    return next((found for one in inner if (found := _find_tokens(one, depth + 1))), None)


_GOLD = ("reference", "ground_truth", "expected_answer", "expected_output", "expected")
_RELEVANT = ("relevant_doc_ids", "relevant_ids", "relevant", "doc_ids", "reference_context_ids")


class RecordedPaths:
    """Finds the question in an input and the answer in an output."""

    def __init__(self, question: JsonPath | None = None, answer: JsonPath | None = None) -> None:
        """Look at the usual places for what has no path."""
        self._question = question
        self.answer_path = answer

    def question(self, *found: Any) -> str | None:
        """The question in the first of some inputs that has one; of a path, only the first input counts."""
        if self._question is not None:
            return _follow(self._question, found[0])
        return next((text for one in found if one is not None and (text := find_question(one))), None)

    def answer(self, *found: Any) -> str | None:
        """The answer in the first of some outputs that has one; of a path, only the first output counts."""
        if self.answer_path is not None:
            return _follow(self.answer_path, found[0])
        return next((text for one in found if one is not None and (text := find_answer(one)) is not None), None)

    def references(self, expected: Any) -> tuple[str, ...]:
        """The gold answers in an expected output; an unknown form as JSON text."""
        expected = values.open_text(expected)
        if expected is None or expected in ("", {}, []):
            return ()
        if isinstance(expected, list) and all(isinstance(one, str) for one in expected):
            return tuple(expected)
        if isinstance(expected, Mapping):
            for key in _GOLD:
                if (text := values.read_text(expected.get(key))) is not None:
                    return (text,)
        found = self.answer(expected)
        text = found if found is not None else values.dump_text(expected)
        return () if text is None else (text,)


def read_relevant(*places: Any) -> tuple[str, ...] | None:
    """The ids of relevant documents in the first of some mappings that names them; None if none does."""
    for place in places:
        for key in _RELEVANT if isinstance(place, Mapping) else ():
            if isinstance(place.get(key), list):
                return tuple(str(one) for one in place[key])
    return None


def _follow(path: JsonPath, found: Any) -> str | None:
    from rageval_spec.recorded.json_path import PathError

    try:
        value = path.find(values.open_text(found))
    except PathError:
        return None
    value = value[0] if path.is_plural and isinstance(value, list) and len(value) == 1 else value
    return value if isinstance(value, str) else values.dump_text(value)
