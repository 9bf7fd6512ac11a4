"""Nuggets made by a chat model from passages that are relevant to a question, as AutoNuggetizer makes them.

Pradeep et al., The great nugget recall, 2025 (arXiv:2504.15068): the model brings a list of facts up to date, ten
passages at a time, and then says of ten facts at a time whether each is vital or okay. The list has at most 30 facts
of 1 to 12 words. A reply that breaks these rules is asked for again.

The calls of one question depend on the replies before them. While they are foreseen, a full list stands for a reply
that is not there yet, so that the estimate is not below the bill.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from rageval_spec.data.chat import ChatReply, ChatRequest, Message
from rageval_spec.data.evidence.nuggets import Importance, Nugget, NuggetBank
from rageval_spec.data.findings import Estimate, Failed
from rageval_spec.dataclass import dataclass
from rageval_spec.endpoints import chat_questions
from rageval_spec.endpoints.replies import UnreadableReplyError, put_in_order
from rageval_spec.generation.model_requests import Steps, load, render
from rageval_spec.judging import prompts
from rageval_spec.judging.segments import count_words
from rageval_spec.plugin import ChatModel, Context

PASSAGES, MOST_NUGGETS, MOST_WORDS, LABELS = 10, 30, 12, 10
"""The passages of a call, the facts of a list, the words of a fact, and the facts that are labelled in one call."""
_FACT_TOKENS, _LABEL_TOKENS = 20, 18
"""The tokens that an estimate assumes for a fact and for a label."""
_SUPPOSED = tuple(
    f"Supposed nugget {number}, which has as many words as any may have." for number in range(MOST_NUGGETS)
)
_FACTS = prompts.make_schema(facts=prompts.make_list_schema(prompts.TEXT))


@dataclass(frozen=True, slots=True)
class Topic:
    """A question and the passages that are relevant to it, best first, with the ids of their documents or None."""

    query_id: str
    question: str
    passages: tuple[str, ...]
    documents: tuple[str | None, ...]

    @property
    def calls(self) -> int:
        """The calls that its nuggets take at most, if every reply can be read."""
        return -(-len(self.passages) // PASSAGES) + -(-MOST_NUGGETS // LABELS)


class _Call(NamedTuple):
    """One question to the model, what is supposed while its reply is not there, and the tokens of that reply."""

    question: chat_questions.ChatQuestion[Any]
    supposed: Sequence[str]
    tokens: int


_Calls: TypeAlias = Generator[_Call, Any, NuggetBank]


def _make(topic: Topic) -> _Calls:
    """The calls for one question, each of which is sent its reply; the bank in the end, vital nuggets first.

    The documents of a nugget are those of the passages in the call whose reply first had it.
    """
    facts: Sequence[str] = ()
    sources: dict[str, tuple[str, ...]] = {}
    for at in range(0, len(topic.passages), PASSAGES):
        asked = _ask_for_facts(topic.question, topic.passages[at : at + PASSAGES], facts)
        facts = yield _Call(asked, _SUPPOSED, _FACT_TOKENS * MOST_NUGGETS)
        read = tuple(dict.fromkeys(filter(None, topic.documents[at : at + PASSAGES])))
        sources = dict.fromkeys(facts, read) | sources
    labels = list[Importance]()
    for at in range(0, len(facts), LABELS):
        batch = facts[at : at + LABELS]
        labels += yield _Call(
            _ask_for_labels(topic.question, batch), ["vital"] * len(batch), _LABEL_TOKENS * len(batch)
        )
    ordered = sorted(zip(facts, labels, strict=True), key=lambda pair: pair[1] != "vital")
    nuggets = (Nugget(text, how, str(number), sources[text]) for number, (text, how) in enumerate(ordered, 1))
    return NuggetBank(topic.query_id, topic.question, tuple(nuggets))


def make_banks(
    model: ChatModel[Any], topics: Sequence[Topic], context: Context, steps: Steps
) -> list[NuggetBank | Failed]:
    """The nuggets of each question, in the order of the topics. The calls of different questions run in parallel.

    Replies come from the store where it has them.
    """

    def ask(call: _Call) -> Any:
        found = chat_questions.ask(model, call.question, context)
        steps.end()
        return found

    steps.expect(sum(topic.calls for topic in topics))
    tasks = [partial(_drive, topic, ask) for topic in topics]
    threads = chat_questions.threads_for(model, context)
    return chat_questions.run_all(tasks, threads, chat_questions.room_for(model, context))


def foresee_banks(model: ChatModel[Any], topics: Iterable[Topic], context: Context) -> Estimate:
    """The calls that `make_banks` would make at most, if every reply can be read. Makes none."""
    found = list[Estimate]()

    def suppose(call: _Call) -> Any:
        known = chat_questions.recall(model, call.question, context)
        if known.unanswered is None:
            return known.found
        name = model.context.name
        found.append(chat_questions.estimate_questions(model, name, [call.question], context, call.tokens))
        return call.supposed

    for topic in topics:
        _drive(topic, suppose)
    return chat_questions.join_estimates(found)


def _drive(topic: Topic, answer: Callable[[_Call], Any]) -> NuggetBank | Failed:
    """The bank that the replies come to, or the first reply that is missing."""
    calls = _make(topic)
    try:
        call = next(calls)
        while not isinstance(found := answer(call), Failed):
            call = calls.send(found)
    except StopIteration as ended:
        bank: NuggetBank = ended.value
        return bank
    return found


def _ask_for_facts(
    question: str, passages: Sequence[str], known: Sequence[str]
) -> chat_questions.ChatQuestion[tuple[str, ...]]:
    asked = render(
        "nuggets",
        question=prompts.fence("question", question),
        known=prompts.fence_all("fact", known) if known else "",
        passages=prompts.fence_all("passage", passages),
        words=MOST_WORDS,
        most=MOST_NUGGETS,
    )
    return chat_questions.ChatQuestion(_request(asked, _FACTS), _read_facts)


def _ask_for_labels(question: str, facts: Sequence[str]) -> chat_questions.ChatQuestion[list[Importance]]:
    label = prompts.make_schema(
        fact={"type": "integer", "minimum": 1, "maximum": len(facts)},
        importance={"type": "string", "enum": ["vital", "okay"]},
    )
    asked = render(
        "nugget_importance",
        question=prompts.fence("question", question),
        facts=prompts.fence_all("fact", facts),
        count=len(facts),
    )
    schema = prompts.make_schema(labels=prompts.make_list_schema(label, len(facts)))
    return chat_questions.ChatQuestion(_request(asked, schema), _read_labels)


def _request(asked: str, schema: Mapping[str, Any]) -> ChatRequest:
    rules = Message("system", load("nugget_rules").render())
    return ChatRequest((rules, Message("user", asked)), schema)


def _read_facts(value: Mapping[str, Any], _: ChatReply) -> tuple[str, ...]:
    facts: dict[str, str] = {}
    for text in value["facts"]:
        fact = " ".join(text.split())
        if not fact:
            raise UnreadableReplyError("a fact is empty")
        if (words := count_words(fact)) > MOST_WORDS:
            raise UnreadableReplyError(f"a fact has {words} words, more than {MOST_WORDS}: '{fact}'")
        facts.setdefault(fact.casefold(), fact)
    if len(facts) > MOST_NUGGETS:
        raise UnreadableReplyError(f"the list has {len(facts)} facts, more than {MOST_NUGGETS}")
    return tuple(facts.values())


def _read_labels(value: Mapping[str, Any], _: ChatReply) -> list[Importance]:
    return [one["importance"] for one in put_in_order(value["labels"], "fact", "importance")]
