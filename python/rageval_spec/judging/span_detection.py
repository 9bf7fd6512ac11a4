"""Writes the prompts of span detectors, and turns what they say about tokens into spans and claims.

The prompts are those that span detectors were trained to read before an answer: the question and the numbered
passages. They are LettuceDetect's own (github.com/KRLabsOrg/LettuceDetect, MIT licence, `lettucedetect/prompts` of
version 0.2.3), byte for byte, because a detector reads another prompt worse. Without a question, LettuceDetect asks
for a summary of the passages.

A model must be able to read each prompt whole. If everything fits into one prompt, it is one. Otherwise passages go
whole into as few prompts as they fit into; a passage that is too long for one is cut into windows of whole sentences,
and only a sentence that is too long by itself is cut between words. The answer is cut only if it takes more than half
of a prompt and does not fit otherwise.

What a detector says about the tokens of an answer becomes spans of it, and the claims between the spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple

from rageval_spec.data.findings import Failed
from rageval_spec.dataclass import dataclass
from rageval_spec.judging.segments import Segment, join_segments, list_runs, split_segments
from rageval_spec.libraries import compile_later, np

if TYPE_CHECKING:
    from numpy.typing import NDArray


_ENDING_MARKS = " \t\n,;:.!?…)]}»”’。、，"


@dataclass(frozen=True, slots=True)
class TaggedAnswer:
    """The tokens of an answer, and how likely each is unsupported.

    Attributes:
        text: the answer.
        offsets: int64 [tokens, 2]: the characters of each token.
        unsupported: float64 [windows, tokens]: the probability that a token is unsupported, by what was read with it.
    """

    text: str
    offsets: NDArray[np.int64]
    unsupported: NDArray[np.float64]

    @property
    def lowest(self) -> NDArray[np.float64]:
        """The probability of each token [tokens]: the lowest of all windows.

        What supports a token stands in one window or another; the windows without it cannot support it. So a token is
        as well supported as in the window that supports it best.
        """
        lowest: NDArray[np.float64] = self.unsupported.min(axis=0)
        return lowest

    def share_supported(self, threshold: float) -> float | None:
        """The share of tokens below the threshold, of those with a letter or a digit; None if there are none."""
        counted = np.array([_says_something(self.text[start:end]) for start, end in self.offsets], np.bool_)
        if not counted.any():
            return None
        return float((self.lowest[counted] < threshold).mean())


class AnswerSpan(NamedTuple):
    """A part of an answer.

    Attributes:
        is_supported: whether all its tokens are below the threshold; otherwise none of them is.
        probability: the highest probability of its tokens.
        window: the number of the window that supports its tokens best.
    """

    segment: Segment
    is_supported: bool
    probability: float
    window: int


def join_pieces(
    text: str, plan: WindowPlan, offsets: Sequence[NDArray[np.int64]], unsupported: Sequence[NDArray[np.float64]]
) -> TaggedAnswer:
    """The tokens of a whole answer. What two pieces share counts as in the first, where more of the answer precedes it.

    Args:
        text: the answer.
        plan: what was read.
        offsets: for each of its pairs [tokens, 2], in the piece of the answer.
        unsupported: for each of its pairs [tokens].
    """
    windows, end = len(plan.windows), 0
    places, probabilities = [], []
    for number, piece in enumerate(plan.pieces):
        pairs = slice(number * windows, (number + 1) * windows)
        placed = offsets[pairs][0] + piece.start
        new = placed[:, 0] >= end
        places.append(placed[new])
        probabilities.append(np.stack(unsupported[pairs])[:, new])
        end = piece.end
    return TaggedAnswer(text, np.concatenate(places), np.concatenate(probabilities, axis=1))


def list_spans(answer: TaggedAnswer, threshold: float) -> list[AnswerSpan]:
    """The answer in spans: runs of unsupported tokens, and the rest of each sentence between them, in order.

    A token from `threshold` up is unsupported. White space at the ends of a span is left out, and so are spans without
    a letter or a digit, and text that the model has no token for.
    """
    flagged = answer.lowest >= threshold
    unsupported = [segment for segment in _list_tag_runs(answer, flagged) if _says_something(segment.text)]
    rest = _list_rest(answer.text, unsupported)
    spans = [_describe(answer, segment, flagged, is_supported=False) for segment in unsupported]
    spans += [_describe(answer, segment, ~flagged, is_supported=True) for segment in rest]
    return sorted(filter(None, spans), key=lambda span: span.segment.start)


def _list_tag_runs(answer: TaggedAnswer, flagged: NDArray[np.bool_]) -> Iterator[Segment]:
    """The runs of flagged tokens. Two that share a character, because it has several tokens, are one."""
    places: list[tuple[int, int]] = []
    was_flagged = False
    for (start, end), is_flagged in zip(answer.offsets.tolist(), flagged.tolist(), strict=True):
        if is_flagged:
            joins = bool(places) and (was_flagged or start < places[-1][1])
            places[-1:] = [(places[-1][0], max(places[-1][1], end))] if joins else [*places[-1:], (start, end)]
        was_flagged = is_flagged
    for start, end in places:
        yield _trim(answer.text, start, end)


def _list_rest(text: str, spans: Sequence[Segment]) -> Iterator[Segment]:
    """What is left of each sentence between the spans."""
    for sentence in split_segments(text):
        at = sentence.start
        for span in spans:
            if span.start < sentence.end and span.end > at:
                yield from _trim_claim(text, at, span.start)
                at = max(at, span.end)
        yield from _trim_claim(text, at, sentence.end)


def _trim_claim(text: str, start: int, end: int) -> Iterator[Segment]:
    """The claim between two places, without the marks that end what is before it; nothing if it says nothing."""
    part = text[start:end]
    if _says_something(part):
        yield _trim(text, start + len(part) - len(part.lstrip(_ENDING_MARKS)), end)


def _trim(text: str, start: int, end: int) -> Segment:
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return Segment(part.strip(), start, start + len(part.strip()))


def _describe(
    answer: TaggedAnswer, segment: Segment, counted: NDArray[np.bool_], *, is_supported: bool
) -> AnswerSpan | None:
    """The span, by those of its tokens that are `counted`; None if there are none."""
    inside = counted & (answer.offsets[:, 0] < segment.end) & (answer.offsets[:, 1] > segment.start)
    if not inside.any():
        return None
    window = int(answer.unsupported[:, inside].mean(axis=1).argmin())
    return AnswerSpan(segment, is_supported, float(answer.lowest[inside].max()), window)


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text))


DetectorLanguage = Literal["en", "de", "es", "fr", "hu", "it", "pl", "zh"]
"""The languages that there are prompts for, by their ISO 639-1 codes; LettuceDetect calls Chinese `cn`."""


class DetectorPrompt(NamedTuple):
    """The prompts of a language.

    Attributes:
        passage: the word before a passage's number.
        question: the template with a question: `{question}`, `{count}` (of passages) and `{passages}`.
        summary: the template without one: `{passages}`.
    """

    passage: str
    question: str
    summary: str

    def fill(self, passages: Sequence[str], question: str) -> str:
        """The prompt with the passages numbered from 1, each on a line of its own; a blank question counts as none."""
        lines = "\n".join(f"{self.passage} {number}: {text}" for number, text in enumerate(passages, start=1))
        if not question.strip():
            return self.summary.format(passages=lines)
        return self.question.format(question=question, count=len(passages), passages=lines)


PROMPTS: Mapping[DetectorLanguage, DetectorPrompt] = {
    "en": DetectorPrompt(
        "passage",
        "Briefly answer the following question:\n{question}\n"
        "Bear in mind that your response should be strictly based on the following {count} passages:\n{passages}\n"
        "In case the passages do not contain the necessary information to answer the question, please reply with: "
        '"Unable to answer based on given passages."\noutput:',
        "Summarize the following text:\n{passages}\noutput:",
    ),
    "de": DetectorPrompt(
        "Passage",
        "Beantworte die folgende Frage kurz:\n{question}\n"
        "Beachte, dass deine Antwort nur auf den folgenden {count} Passagen basieren soll:\n{passages}\n"
        "Falls die Passagen nicht die notwendigen Informationen zur Beantwortung der Frage enthalten, antworte "
        'bitte mit: "Kann aufgrund der gegebenen Passagen nicht beantwortet werden."\nAusgabe:',
        "Fasse den folgenden Text zusammen:\n{passages}\nAusgabe:\n",
    ),
    "es": DetectorPrompt(
        "pasaje",
        "Responde a la siguiente pregunta brevemente:\n{question}\n"
        "Ten en cuenta que tu respuesta debe basarse únicamente en los siguientes {count} pasajes:\n{passages}\n"
        "Si los pasajes no contienen la información necesaria para responder a la pregunta, por favor responde "
        'con: "No se puede responder con base en los pasajes proporcionados."\nSalida: ',
        "Resume el siguiente texto:\n{passages}\nSalida: ",
    ),
    "fr": DetectorPrompt(
        "passage",
        "Réponds brièvement à la question suivante :\n{question}\n"
        "Note que ta réponse doit être basée uniquement sur les {count} passages suivants :\n{passages}\n"
        "Si les passages ne contiennent pas les informations nécessaires pour répondre à la question, réponds "
        's\'il te plaît par : "Impossible de répondre sur la base des passages fournis."\nSortie : ',
        "Résume le texte suivant :\n{passages}\nSortie : ",
    ),
    "hu": DetectorPrompt(
        "szövegrészlet",
        "Röviden válaszolj az alábbi kérdésre:\n{question}\n"
        "Vedd figyelembe, hogy a válaszod kizárólag az alábbi {count} szövegrészletre támaszkodjon:\n{passages}\n"
        "Ha a szövegrészletek nem tartalmazzák a kérdés megválaszolásához szükséges információt, válaszolj így: "
        '"Nem tudok válaszolni a megadott szövegrészletek alapján."\noutput:',
        "Foglalja össze az alábbi szöveget:\n{passages}\noutput:\n\n\n",
    ),
    "it": DetectorPrompt(
        "brano",
        "Rispondi alla seguente domanda in modo breve:\n{question}\n"
        "Tieni presente che la tua risposta deve basarsi solo sui seguenti {count} passaggi:\n{passages}\n"
        "Se i passaggi non contengono le informazioni necessarie per rispondere alla domanda, per favore rispondi "
        'con: "Non può essere risposto in base ai passaggi forniti."\nRisposta:\n',
        "Riassumi il seguente testo:\n{passages}\nRisposta: ",
    ),
    "pl": DetectorPrompt(
        "fragment",
        "Zwięźle odpowiedz na następujące pytanie:\n{question}\n"
        "Pamiętaj, że Twoja odpowiedź powinna opierać się wyłącznie na następujących {count} fragmentach:\n"
        "{passages}\n"
        "Jeśli fragmenty nie zawierają informacji niezbędnych do udzielenia odpowiedzi na pytanie, odpowiedz: "
        '"Nie można odpowiedzieć na podstawie podanych fragmentów."\noutput: ',
        "Streść następujący tekst:\n{passages}\nWynik: ",
    ),
    "zh": DetectorPrompt(
        "段落",
        "请简短回答以下问题：\n{question}\n请注意，您的回答应严格基于以下{count}段落：\n{passages}\n"
        '如果段落中不包含回答问题所需的信息，请回复："基于给定段落无法回答。"\n输出：\n',
        "请总结以下文本：\n{passages}\n输出：\n",
    ),
}


LEAST = 32
"""The fewest tokens of passages and answer that a prompt must have room for."""
_SPACE = compile_later(r"\s")


class DetectionTask(NamedTuple):
    """An answer to read with its question (may be blank) and the texts that it is judged against."""

    question: str
    sources: Sequence[str]
    answer: str


class PromptWindow(NamedTuple):
    """A prompt, and the parts of the sources in it."""

    prompt: str
    parts: Sequence[Segment]


class WindowPlan(NamedTuple):
    """What is read for one answer: each piece of it with each window.

    Pieces are in order; a piece can begin with the last sentences of the one before.
    """

    windows: Sequence[PromptWindow]
    pieces: Sequence[Segment]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The prompt and the piece of the answer to read together, piece by piece."""
        return [(window.prompt, piece.text) for piece in self.pieces for window in self.windows]


class _Sized(NamedTuple):
    """A segment and the number of its tokens."""

    segment: Segment
    tokens: int


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans what a model reads.

    Attributes:
        prompt: the templates.
        count: the number of tokens of each of some texts.
        room: the most tokens of a prompt and a piece of the answer together; infinity for no bound.
        characters: the most characters of the passages in a prompt; infinity for no bound.
        overlap: how many sentences neighbouring parts of a passage, and neighbouring pieces of the answer, share.
    """

    prompt: DetectorPrompt
    count: Callable[[Sequence[str]], Sequence[int]]
    room: float = inf
    characters: float = inf
    overlap: int = 1

    def plan(self, tasks: Sequence[DetectionTask]) -> list[WindowPlan | Failed]:
        """The plan for each task, or why there is none: its question leaves no room for anything else.

        Blank sources are left out; each task must have another one.
        """
        whole = [self._lay_out_whole(task) for task in tasks]
        sizes = self.count([text for plan in whole for text in plan.pairs[0]])
        return [
            plan if self._holds(plan, prompt + answer) else self._divide(task)
            for task, plan, prompt, answer in zip(tasks, whole, sizes[::2], sizes[1::2], strict=True)
        ]

    def _lay_out_whole(self, task: DetectionTask) -> WindowPlan:
        parts = [Segment(text, 0, len(text), source) for source, text in enumerate(task.sources) if text.strip()]
        return WindowPlan([self._fill(task, parts)], [Segment(task.answer, 0, len(task.answer))])

    def _fill(self, task: DetectionTask, parts: Sequence[Segment]) -> PromptWindow:
        return PromptWindow(self.prompt.fill([part.text for part in parts], task.question), parts)

    def _holds(self, plan: WindowPlan, tokens: int) -> bool:
        characters = sum(len(part.text) for part in plan.windows[0].parts)
        return tokens <= self.room and characters <= self.characters

    def _divide(self, task: DetectionTask) -> WindowPlan | Failed:
        """A plan of several windows. Sizes of parts are added up, so the sum is checked and can be lowered."""
        bare = self.count([self.prompt.fill([], task.question)])[0]
        free = self.room - bare
        while free >= LEAST:
            plan = self._try(task, free)
            texts = [text for pair in plan.pairs for text in pair]
            sizes = self.count(texts) if self.room < inf else [0] * len(texts)
            excess = max(map(sum, zip(sizes[::2], sizes[1::2], strict=True))) - self.room
            if excess <= 0:
                return plan
            free -= excess
        return Failed(
            f"the question is too long: with the prompt's own words it has {bare} tokens of the {self.room:.0f} that "
            "are read at once"
        )

    def _try(self, task: DetectionTask, free: float) -> WindowPlan:
        """A plan for `free` tokens of passages and answer."""
        line = self.count([self.prompt.passage])[0] + 4  # the number, the colon, a space and the end of the line
        whole = [part for part in self._lay_out_whole(task).windows[0].parts if part.text.strip()]
        passages = self._measure(whole)
        wanted = sum(passage.tokens + line for passage in passages)
        pieces = self._cut([Segment(task.answer, 0, len(task.answer))], max(free - wanted, free / 2), inf)
        room = max(free - max(piece.tokens for piece in pieces) - line, 1)
        parts = self._cut(whole, room, self.characters)
        windows = [self._fill(task, group) for group in self._pack(parts, room + line, line)]
        return WindowPlan(windows, [piece.segment for piece in pieces])

    def _measure(self, segments: Sequence[Segment]) -> list[_Sized]:
        if self.room == inf:
            return [_Sized(segment, 0) for segment in segments]
        return [*map(_Sized, segments, self.count([segment.text for segment in segments]))]

    def _cut(self, texts: Sequence[Segment], tokens: float, characters: float) -> list[_Sized]:
        """Texts that fit as they are, others in runs of sentences that fit."""
        parts: list[_Sized] = []
        for text in self._measure(texts):
            if text.tokens <= tokens and len(text.segment.text) <= characters:
                parts.append(text)
            else:
                parts += self._measure([*self._run_windows(text.segment, tokens, characters)])
        return parts

    def _run_windows(self, text: Segment, tokens: float, characters: float) -> Iterator[Segment]:
        """Runs of sentences, each as long as fits; the next begins with the last ones of it if there is room."""
        sentences = self._cut_sentences(text, tokens, characters)

        def fits(first: int, last: int) -> bool:
            run = sentences[first : last + 1]
            size = sum(sentence.tokens + 1 for sentence in run)  # one more for the space between two
            return size <= tokens and run[-1].segment.end - run[0].segment.start <= characters

        for first, end in list_runs(len(sentences), self.overlap, fits):
            yield join_segments(text.text, [sentence.segment for sentence in sentences[first:end]])

    def _cut_sentences(self, text: Segment, tokens: float, characters: float) -> list[_Sized]:
        """The sentences of a text; those that do not fit are halved until they do."""
        segments = split_segments(text.text, text.source)
        while True:
            sentences = self._measure(segments)
            halved = [
                half
                for sentence, size in sentences
                for half in (_halve(sentence) if size > tokens or len(sentence.text) > characters else [sentence])
            ]
            if len(halved) == len(segments):
                return sentences
            segments = halved

    def _pack(self, parts: Sequence[_Sized], tokens: float, line: int) -> Iterator[list[Segment]]:
        """The parts in groups that fit into a prompt each."""
        group: list[Segment] = []
        taken, characters = 0, 0
        for part, size in parts:
            if group and (taken + size + line > tokens or characters + len(part.text) > self.characters):
                yield group
                group, taken, characters = [], 0, 0
            group.append(part)
            taken += size + line
            characters += len(part.text)
        yield group


def _halve(sentence: Segment) -> list[Segment]:
    """The sentence in two, at the white space nearest to its middle if there is any."""
    text, middle = sentence.text, len(sentence.text) // 2
    places = [match.start() for match in _SPACE.finditer(text)]
    at = min(places, key=lambda place: abs(place - middle), default=middle)
    return [
        Segment(half.text, sentence.start + half.start, sentence.start + half.end, sentence.source)
        for half in (_trim(text, 0, at), _trim(text, at, len(text)))
        if half.text
    ]
