"""The published models that judges know by name: span detectors and verifiers.

Facts about detectors are read from their own cards and code. A fact that no source states is left out. Change an
entry together with its sources and its date.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from itertools import product

from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import suggest
from rageval_spec.inference.verifiers import DEFAULT_WINDOW, VERIFIERS, Verifier, Window, find_verifier
from rageval_spec.judging.language import NAMES
from rageval_spec.judging.segments import Ruler, count_treebank_tokens, count_words
from rageval_spec.judging.span_detection import DetectorLanguage
from rageval_spec.plugin.plugin import KnownModel

_LISTS = "list the known ones with: rageval-spec explain nli, or: rageval-spec explain detector"


def suggest_known(name: str) -> str | None:
    """What to name instead of `name`, or where the known models are listed; None if a judge knows `name`."""
    if find_verifier(name) is not None or find_detector(name) is not None:
        return None
    known = (*VERIFIERS, *DETECTORS)
    tail = name.casefold().rpartition("/")[2]
    same = [key for key in known if key.casefold().partition("/")[2] == tail]
    return f"did you mean '{same[0]}'?" if len(same) == 1 else suggest(name, known) or _LISTS


_HUB = "https://huggingface.co"
_CODE = "https://github.com/KRLabsOrg/LettuceDetect (lettucedetect/detectors, lettucedetect/prompts; version 0.2.3)"


@dataclass(frozen=True, slots=True)
class KnownDetector:
    """A token classifier that finds the unsupported spans of an answer.

    Attributes:
        name: its id on the Hugging Face Hub.
        base: the encoder that it was trained from.
        license: as its card states it.
        language: the language of the prompt that it was trained with.
        languages: the languages that its authors name.
        trained_on: its training data.
        remark: what else a user must know.
    """

    name: str
    base: str
    license: str
    language: DetectorLanguage
    languages: str
    trained_on: str = "RAGTruth"
    remark: str = ""
    read: date = date(2026, 11, 22)


_TRANSLATED: tuple[DetectorLanguage, ...] = ("de", "es", "fr", "it", "pl", "zh")
"""The languages with EuroBERT models of their own."""


def _list_detectors() -> Iterator[KnownDetector]:
    for size in ("base", "large"):
        name = f"KRLabsOrg/lettucedect-{size}-modernbert-en-v1"
        yield KnownDetector(name, f"ModernBERT-{size}", "MIT", "en", "English")
    for size, trained_on in (("17m", "RAGTruth and synthetic data"), ("32m", "RAGTruth"), ("68m", "RAGTruth")):
        yield KnownDetector(
            f"KRLabsOrg/tinylettuce-ettin-{size}-en", f"Ettin-{size}", "MIT", "en", "English",
            trained_on=trained_on,
            remark="Its authors made it to be trained on for a domain, rather than for general use.",
        )  # fmt: skip
    for size, language in product(("210m", "610m"), _TRANSLATED):
        code = "cn" if language == "zh" else language
        yield KnownDetector(
            f"KRLabsOrg/lettucedect-{size}-eurobert-{code}-v1", f"EuroBERT-{size}", "MIT", language,
            NAMES[language],
            trained_on="RAGTruth, translated",
        )  # fmt: skip
    yield KnownDetector(
        "KRLabsOrg/lettucedect-v2-mmbert-base", "mmBERT-base", "Apache-2.0", "en", "English and others",
        trained_on="RAGTruth, PsiloQA, code and the output of tools",
        remark="Its authors' code reads it with the same prompt, although it was trained with a shorter one.",
    )  # fmt: skip


DETECTORS: Mapping[str, KnownDetector] = {one.name: one for one in _list_detectors()}
"""The known detectors by their name on the Hub."""


def find_detector(name: str) -> KnownDetector | None:
    """The detector with this id, in any case and of any branch or commit after `@`; None if it is not known."""
    folded = {key.casefold(): detector for key, detector in DETECTORS.items()}
    return folded.get(name.casefold().partition("@")[0])


def describe_detector(detector: KnownDetector) -> KnownModel:
    example = (
        f"models: {{lettuce: {{use: onnx, model: {detector.name}}}}}\n"
        f"judges: {{spans: {{use: detector, model: lettuce}}}}\n"
        "metrics: [{use: faithfulness, judge: spans}]"
    )
    facts = {
        "Base model": detector.base,
        "Trained on": detector.trained_on,
        "Labels": "supported, unsupported",
        "Prompt in": NAMES[detector.language],
        "Threshold": "0.5",
        "Windows": "up to 4096 tokens",
        "Question": "part of the prompt",
        "Remark": detector.remark,
    }
    columns = {"License": detector.license, "Tokens": "4096", "Language": detector.languages}
    sources = (f"{_HUB}/{detector.name}", _CODE)
    return KnownModel(detector.name, columns, facts, sources, detector.read, example)


_BYTES_A_TOKEN = 4
"""The average in English, for models that do not count tokens."""


def list_taken(verifier: Verifier, stated: Collection[str], reads_labels: bool) -> list[str]:
    """What a judge takes from the table, in words: `windows of 400 tokens`; nothing that the spec `stated` itself."""
    taken = []
    if "labels" not in stated and verifier.labels and not reads_labels:
        taken.append(f"labels {', '.join(verifier.labels)}")
    if verifier.template is not None:
        taken.append("document and claim in one text")
    if "window" not in stated and verifier.window is not None:
        taken.append(f"windows of {verifier.window}")
    if "threshold" not in stated and verifier.threshold is not None:
        taken.append(f"supported from {verifier.threshold:g}")
    return taken


def make_rulers(
    window: Window, room: int | None, count: Callable[[Sequence[str]], Sequence[int] | None]
) -> tuple[Ruler, ...]:
    """The bounds of windows that are not in characters: those of `window`, and the tokens that a pair has `room` for.

    `room` is None without a bound, and `count` gives None where the model does not count tokens.
    """

    def count_tokens(texts: Sequence[str]) -> Sequence[int]:
        counts = count(texts)
        return [-(-len(text.encode()) // _BYTES_A_TOKEN) for text in texts] if counts is None else counts

    limits = [limit for limit in (window.size if window.unit == "tokens" else None, room) if limit is not None]
    tokens = [Ruler(max(min(limits), 1), count_tokens)] if limits else []
    count_one = {"words": count_words, "Treebank tokens": count_treebank_tokens}.get(window.unit)
    words = [Ruler(window.size, lambda texts: list(map(count_one, texts)))] if count_one else []
    return (*words, *tokens)


def describe_verifier(verifier: Verifier) -> KnownModel:
    facts = {
        "Trained for": verifier.family,
        "NLI data in": verifier.trained_in,
        "Size": verifier.size,
        "Labels": ", ".join(verifier.labels) or "as its configuration names them",
        "Score": "the logistic function of its logit" if len(verifier.labels) == 1 else "the softmax of its logits",
        "Input": "one text: " + repr(verifier.template)[1:-1] if verifier.template else "a pair: document, claim",
        "Question": "not part of the input",
        "Threshold": f"{verifier.threshold:g}" if verifier.threshold is not None else "none stated; 0.5 is used",
        "Windows": str(verifier.window) if verifier.window else f"none stated; {DEFAULT_WINDOW} are used",
        "Remark": verifier.remark,
        "Cannot run": verifier.unreadable,
    }
    columns = {
        "License": verifier.license,
        "Tokens": "no bound" if verifier.max_length is None else str(verifier.max_length),
        "Language": verifier.language,
    }
    revision = f", revision: {verifier.revision}" if verifier.revision else ""
    example = (
        f"models: {{verifier: {{use: onnx, model: {verifier.name}{revision}}}}}\n"
        "judges: {faith: {use: nli, model: verifier}}\n"
        "metrics: [{use: faithfulness, judge: faith}]"
    )
    return KnownModel(
        verifier.key, columns, facts, verifier.sources, verifier.read, "" if verifier.unreadable else example
    )
