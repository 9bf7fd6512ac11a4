"""`answerability`: whether the system refuses exactly the questions that have no answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from rageval_spec.answer_metric import (
    EMPTY_ANSWER,
    FAILED_JUDGE,
    QUESTIONS,
    SUPPORTED_FROM,
    ConditionalJudge,
    OptionallyJudgedNode,
    describe_finding,
    is_blank,
    measure_failure,
)
from rageval_spec.assessment import Ability, Criterion, Estimate, Failed, Finding
from rageval_spec.plugin import Measured, Measurement, MetricInfo
from rageval_spec.samples import Part

if TYPE_CHECKING:
    from rageval_spec.samples import Sample

REFUSAL_PHRASES: Mapping[str, tuple[str, ...]] = {
    "en": (
        "i don't know", "i do not know", "i'm not sure", "i am not sure", "i cannot answer", "i can't answer",
        "i am unable to answer", "i'm unable to answer", "cannot be answered", "can't be answered",
        "unable to find", "could not find", "couldn't find", "cannot find", "can't find", "no information",
        "not enough information", "insufficient information", "no relevant information", "does not contain",
        "doesn't contain", "do not contain", "don't contain", "does not mention", "doesn't mention",
        "do not mention", "don't mention", "does not provide", "doesn't provide", "do not provide",
        "don't provide", "is not mentioned", "is not specified", "not provided in the", "unanswerable",
        "cannot be determined", "can't be determined", "cannot determine", "can't determine",
    ),
    "de": (
        "ich weiß es nicht", "ich weiß nicht", "weiss ich nicht", "weiß ich nicht", "ich kann die frage nicht",
        "ich kann diese frage nicht", "kann nicht beantwortet werden", "lässt sich nicht beantworten",
        "keine informationen", "keine angaben", "nicht genügend informationen", "nicht genug informationen",
        "geht nicht hervor", "nicht erwähnt", "enthalten keine", "enthält keine", "nicht bestimmen",
    ),
    "fr": (
        "je ne sais pas", "je ne peux pas répondre", "je ne suis pas en mesure", "aucune information",
        "pas d'information", "pas assez d'information", "informations insuffisantes", "n'est pas mentionné",
        "ne mentionne pas", "ne mentionnent pas", "ne contient pas", "ne contiennent pas", "ne permet pas de répondre",
        "ne permettent pas de répondre",
    ),
    "es": (
        "no lo sé", "no sé la respuesta", "no puedo responder", "no es posible responder", "no hay información",
        "no hay suficiente información", "información insuficiente", "no se menciona", "no menciona",
        "no mencionan", "no contiene información", "no contienen información", "no se especifica",
    ),
    "it": (
        "non lo so", "non posso rispondere", "non sono in grado di rispondere", "non è possibile rispondere",
        "nessuna informazione", "non ci sono informazioni", "informazioni insufficienti", "non è menzionato",
        "non menziona", "non contiene informazioni", "non contengono informazioni",
    ),
    "pt": (
        "não sei", "não posso responder", "não consigo responder", "não é possível responder", "nenhuma informação",
        "não há informaç", "informações insuficientes", "não é mencionad", "não menciona", "não contém informaç",
    ),
    "nl": (
        "ik weet het niet", "ik kan deze vraag niet", "ik kan de vraag niet", "geen informatie",
        "niet genoeg informatie", "onvoldoende informatie", "niet vermeld", "niet te beantwoorden",
    ),
    "pl": ("nie wiem", "nie mogę odpowiedzieć", "brak informacji", "nie ma informacji", "nie zawiera informacji"),
    "sv": ("jag vet inte", "jag kan inte svara", "ingen information", "otillräcklig information"),
    "ru": (
        "я не знаю", "не могу ответить", "нет информации", "недостаточно информации", "не содержит информации",
        "не упоминается", "невозможно ответить",
    ),
    "tr": ("bilmiyorum", "cevap veremem", "yanıtlayamam", "yeterli bilgi yok", "bilgi bulunmamaktadır"),
    "zh": (
        "不知道", "无法回答", "不能回答", "信息不足", "没有相关信息", "没有足够的信息", "未提及", "没有提到",
        "無法回答", "資訊不足",
    ),
    "ja": (
        "わかりません", "分かりません", "答えられません", "回答できません", "情報がありません", "情報が不足",
        "記載されていません",
    ),
    "ko": ("모르겠습니다", "알 수 없습니다", "답변할 수 없", "대답할 수 없", "정보가 없습니다", "정보가 부족"),
    "ar": ("لا أعرف", "لا أعلم", "لا يمكنني الإجابة", "لا توجد معلومات", "معلومات غير كافية"),
    "hi": ("मुझे नहीं पता", "मैं नहीं जानता", "उत्तर नहीं दे सकता", "कोई जानकारी नहीं", "पर्याप्त जानकारी नहीं"),
}  # fmt: skip
"""What refusals say, by language: an answer that holds one of these counts as a refusal with `by: phrases`."""

REFUSAL = Criterion(
    "refusal",
    "grade",
    "Does the answer decline to answer the question, or say that it cannot be answered from what is known?",
    text="answer",
    against="question",
    shown=("question", "answer"),
)


class AnswerabilityNode(OptionallyJudgedNode):
    """Refusals where they are due."""

    by: Literal["judge", "phrases"] = Field(
        default="judge",
        description="Who finds refusals: a judge, or a list of phrases in 16 languages, without a judge.",
    )
    phrases: tuple[str, ...] = Field(
        default=(),
        description="With `by: phrases`: what counts as a refusal beside the list, such as the words that the system "
        "was told to use.",
    )
    of: Literal["all", "answerable", "unanswerable"] = Field(
        default="all",
        description="Which questions count. unanswerable: the rejection rate; answerable: how many get an answer.",
    )


class Answerability(ConditionalJudge[AnswerabilityNode]):
    """Refusals where they are due."""

    node_type = AnswerabilityNode
    needs = frozenset[Part]({"answer", "answerable"})
    hidden = ("phrases",)
    info = MetricInfo(
        summary="Whether a system answers the questions that have an answer, and refuses the others.",
        formula=(
            "answerability = 1 where the question is unanswerable and the system refuses, or answerable and it does "
            "not refuse; 0 elsewhere. of=unanswerable: RGB's rejection rate, 1 - NoMIRACL's hallucination rate; "
            "of=answerable: 1 - NoMIRACL's error rate"
        ),
        edge_cases=(
            "right or wrong answers: do not count, any answer to an answerable question is no refusal",
            "empty answer: a refusal",
            "judge that makes up questions of answers: a noncommittal answer is a refusal (the call is shared with "
            "answer_relevancy)",
            "judge that grades: a refusal from the middle of its scale on",
            "by=phrases: a refusal where the answer holds a phrase of the list anywhere, whatever its case and "
            "apostrophes; RGB looks for one phrase in the same way. An answer that says what one source lacks and "
            "answers from another counts as a refusal",
            "of=answerable, of=unanswerable: no value for the other questions",
            f"failure: {FAILED_JUDGE}",
        ),
        source="Chen, Lin, Han and Sun, Benchmarking large language models in retrieval-augmented generation (RGB), "
        "AAAI 2024 (negative rejection); Thakur et al., NoMIRACL: Knowing when you don't know for robust multilingual "
        "retrieval-augmented generation, EMNLP Findings 2024",
        aliases=("negative_rejection",),
    )

    @property
    def asks_judge(self) -> bool:
        """With `by: judge`."""
        return self.node.by == "judge"

    def check(self) -> str | None:
        """Whether the judge is able, and the keys fit together."""
        if self.asks_judge and self.node.phrases:
            return "'phrases' decide nothing with 'by: judge'; write 'by: phrases', or leave them out"
        return super().check()

    def able_to(self) -> Sequence[frozenset[Ability]]:
        """Say whether an answer is noncommittal, or grade it."""
        return frozenset[Ability]({"questions"}), frozenset[Ability]({"grade"})

    def criteria(self) -> Sequence[Criterion]:
        """Whether the answer is a refusal, of judges that grade."""
        return (REFUSAL,) if self.asks_judge and not self.can("questions") else ()

    def settle(self, sample: Sample) -> Measurement | None:
        """Questions that do not count, empty answers, and all with a list of phrases."""
        if self.node.of != "all" and sample.answerable is not (self.node.of == "answerable"):
            return Measurement.unscorable(f"the question is {'un' if self.node.of == 'answerable' else ''}answerable")
        if is_blank(sample.answer):
            return _measure(sample, True, {"decided_by": EMPTY_ANSWER})
        if self.asks_judge:
            return None
        phrase = find_refusal(sample.answer or "", self.node.phrases)
        return _measure(sample, phrase is not None, {"decided_by": "phrases", "phrase": phrase})

    def ask(self, samples: Sequence[Sample]) -> Measured:
        """Ask whether the answers are noncommittal, or for grades."""
        if not self.can("questions"):
            assessment = self.judge.assess(REFUSAL, samples)
            pairs = zip(samples, assessment.findings, strict=True)
            return Measured([_measure_grade(*pair) for pair in pairs], assessment.notes)
        answers = list(dict.fromkeys(sample.answer or "" for sample in samples))
        written = dict(zip(answers, self.judge.questions(answers, QUESTIONS), strict=True))
        found = [(sample, written[sample.answer or ""]) for sample in samples]
        return Measured(
            [
                measure_failure(one)
                if isinstance(one, Failed)
                else _measure(sample, one.noncommittal, {"decided_by": "noncommittal"})
                for sample, one in found
            ]
        )

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        """Of every answer once."""
        if not self.asks_judge or not self.can("questions"):
            return super().estimate_asking(samples)
        answers = dict.fromkeys(sample.answer or "" for sample in samples)
        return self.judge.estimate_writing("questions", [("", answer) for answer in answers], QUESTIONS)


def _measure_grade(sample: Sample, finding: Finding | Failed) -> Measurement:
    if isinstance(finding, Failed):
        return measure_failure(finding)
    if finding.score is None:
        return Measurement.unscorable(finding.reason or "the judge found nothing to judge", describe_finding(finding))
    return _measure(sample, finding.score >= SUPPORTED_FROM, {"decided_by": "grade", **describe_finding(finding)})


def _measure(sample: Sample, refused: bool, details: Mapping[str, Any]) -> Measurement:
    known = {key: value for key, value in details.items() if value is not None}
    facts = {"refused": refused, "answerable": sample.answerable, **known}
    return Measurement.scored(float(refused is not sample.answerable), None, facts)


def find_refusal(answer: str, phrases: Sequence[str] = ()) -> str | None:
    """The first phrase of the list, or of those given, that an answer holds; None where it holds none."""
    text = _fold(answer)
    known = (*phrases, *(phrase for of_language in REFUSAL_PHRASES.values() for phrase in of_language))
    return next((phrase for phrase in known if _holds(text, _fold(phrase))), None)


def _holds(text: str, phrase: str) -> bool:
    """Whether a phrase begins in a text where a word begins; scripts without white space have no such place."""
    if not phrase:
        return False
    return re.search((r"(?<!\w)" if phrase[0] < "\u3000" else "") + re.escape(phrase), text) is not None


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‘", "'")
    return " ".join(folded.split())


PLUGIN = Answerability
