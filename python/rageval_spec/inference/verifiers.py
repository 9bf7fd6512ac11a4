"""What is known of the verifiers that people use, how models read pairs, and what the labels of a classifier mean.

Each verifier is read from its own card, configuration, code or paper. A fact that no source states is left out.
Change an entry together with its sources and its date.

The labels of an entailment classifier are understood however its configuration spells them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from onnx_from_checkpoints import NEEDS_REPLIES, parse_template, writes_text
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import DataError, UsageError

if TYPE_CHECKING:
    from onnx_from_checkpoints import Configuration

Meaning = Literal["entailment", "neutral", "contradiction", "not_entailment"]
"""What a logit can stand for; `not_entailment` combines neutral and contradiction."""

_SPELLINGS: Mapping[Meaning, str] = MappingProxyType(
    {
        "entailment": "entail(s|ed|ment)?|supports?|supported|consistent|factual|faithful",
        "neutral": "neutral|neither|unknown|undetermined|nei|notenoughinfo(rmation)?",
        "contradiction": "contradict(s|ed|ion|ory)?|refute[sd]?",
        "not_entailment": "(no|not|non|un|in)(entailment|entailed|supported|consistent|factual|faithful)"
        "|hallucinat(ed|ion)",
    }
)


def read_label(name: str) -> Meaning | None:
    """What a label stands for, in any spelling: `ENTAILMENT`, `not-entailment`, `NOT ENOUGH INFO`; None if unknown."""
    letters = re.sub(r"[\W_]", "", name.lower())
    return next((meaning for meaning, spelling in _SPELLINGS.items() if re.fullmatch(spelling, letters)), None)


Unit = Literal["characters", "words", "Treebank tokens", "tokens"]
"""`tokens` are the model's own; `Treebank tokens` are words and punctuation marks, as NLTK's `word_tokenize` gives
them."""


@dataclass(frozen=True, slots=True)
class Window:
    """How much of a context is read with a claim at once, in whole sentences."""

    size: int
    unit: Unit = "characters"

    def __str__(self) -> str:
        """`400 tokens`."""
        return f"{self.size} {self.unit}"


LONGEST = 2048
"""The most tokens to read at once where a model sets no bound, which bounds the memory."""
DEFAULT_WINDOW = Window(1000)
"""The window where neither the spec nor a model's authors name one."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """A model that says whether a document supports a claim.

    Attributes:
        name: its id on the Hugging Face Hub.
        family: what it was trained for, and on which base model.
        labels: what its logits stand for, in their order; empty if only its configuration says so.
        license: as its card states it.
        language: the languages that its authors name.
        trained_in: the number of languages of its training data for NLI, where that is another; "" if not.
        max_length: the most tokens that its authors read at once, special tokens included; None if they set no bound.
        sources: where the facts were read.
        template: the one text that it reads, with `{document}` and `{claim}`; None if it reads the two as a pair.
        replies: for a model that writes text, the words that it replies with, by the label that each stands for.
        window: how long the parts are into which its authors cut a document, or the context length that they trained it
            for; None if they name neither.
        threshold: the probability from which its authors call a claim supported; None if they name none.
        size: the size of its weights on the Hub.
        revision: the branch that holds it; None for the main one.
        unreadable: why it cannot be run here, and what to write instead; "" if it can.
        remark: what else a user must know.
        read: the day on which the facts were read.
    """

    name: str
    family: str
    labels: tuple[Meaning, ...]
    license: str
    language: str
    max_length: int | None
    sources: tuple[str, ...]
    template: str | None = None
    replies: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    window: Window | None = None
    threshold: float | None = None
    trained_in: str = ""
    size: str = ""
    revision: str | None = None
    unreadable: str = ""
    remark: str = ""
    read: date = date(2026, 11, 22)

    @property
    def key(self) -> str:
        """Its id, with `@` and the branch if that is not the main one."""
        return self.name if self.revision is None else f"{self.name}@{self.revision}"


_HUB = "https://huggingface.co"
_THREE: tuple[Meaning, ...] = ("entailment", "neutral", "contradiction")
_SBERT: tuple[Meaning, ...] = ("contradiction", "entailment", "neutral")
_TWO: tuple[Meaning, ...] = ("not_entailment", "entailment")


def _list_laurer() -> Iterator[Verifier]:
    hundred = "100 languages"
    for name, family, language, trained_in, size in (
        ("DeBERTa-v3-base-mnli-fever-anli", "NLI, DeBERTa-v3-base", "English", "", "369 MB"),
        ("DeBERTa-v3-large-mnli-fever-anli-ling-wanli", "NLI, DeBERTa-v3-large", "English", "", ""),
        ("mDeBERTa-v3-base-mnli-xnli", "NLI, mDeBERTa-v3-base", hundred, "15 languages", ""),
        ("mDeBERTa-v3-base-xnli-multilingual-nli-2mil7", "NLI, mDeBERTa-v3-base", hundred, "27 languages", ""),
    ):
        key = f"MoritzLaurer/{name}"
        sources = (f"{_HUB}/{key}", f"{_HUB}/{key}/blob/main/config.json")
        yield Verifier(key, family, _THREE, "MIT", language, 512, sources, trained_in=trained_in, size=size)


def _list_sentence_transformers() -> Iterator[Verifier]:
    card = "https://www.sbert.net/docs/pretrained_cross-encoders.html#nli"
    for name, family, size in (
        ("nli-deberta-v3-xsmall", "NLI, DeBERTa-v3-xsmall", ""),
        ("nli-deberta-v3-small", "NLI, DeBERTa-v3-small", ""),
        ("nli-deberta-v3-base", "NLI, DeBERTa-v3-base", "738 MB"),
        ("nli-deberta-v3-large", "NLI, DeBERTa-v3-large", ""),
        ("nli-MiniLM2-L6-H768", "NLI, MiniLM distilled from RoBERTa-large", ""),
        ("nli-roberta-base", "NLI, RoBERTa-base", "499 MB"),
    ):
        key = f"cross-encoder/{name}"
        yield Verifier(key, family, _SBERT, "Apache-2.0", "English", 512, (f"{_HUB}/{key}", card), size=size)


_MINICHECK = (
    "https://github.com/Liyan06/MiniCheck (minicheck/inference.py, minicheck.py)",
    "https://arxiv.org/abs/2404.10774",
)
_VECTARA = "vectara/hallucination_evaluation_model"


def _list_fact_checkers() -> Iterator[Verifier]:
    yield Verifier(
        "lytang/MiniCheck-RoBERTa-Large", "fact checking, RoBERTa-large", _TWO, "MIT", "English", 512,
        (f"{_HUB}/lytang/MiniCheck-RoBERTa-Large", *_MINICHECK),
        template="{document}</s>{claim}", window=Window(400, "tokens"), threshold=0.5,
        remark="Trained on from AlignScore-large. Its repository has listed PyTorch weights only.",
    )  # fmt: skip
    yield Verifier(
        "lytang/MiniCheck-DeBERTa-v3-Large", "fact checking, DeBERTa-v3-large", _TWO, "MIT", "English", 2048,
        (f"{_HUB}/lytang/MiniCheck-DeBERTa-v3-Large", *_MINICHECK),
        template="{document}[SEP]{claim}", window=Window(400, "tokens"), threshold=0.5, size="1.74 GB",
    )  # fmt: skip
    yield Verifier(
        "lytang/MiniCheck-Flan-T5-Large", "fact checking, FLAN-T5-large", _TWO, "MIT", "English", 2048,
        (f"{_HUB}/lytang/MiniCheck-Flan-T5-Large", *_MINICHECK),
        template="predict: {document}</s>{claim}", replies={"unsupported": "0", "supported": "1"},
        window=Window(500, "words"), threshold=0.5,
        remark='The probability is that of the first token "1" against "0".',
    )  # fmt: skip
    yield Verifier(
        "yaxili96/FactCG-DeBERTa-v3-Large", "fact checking, DeBERTa-v3-large", _TWO, "MIT", "English", 2048,
        (
            f"{_HUB}/yaxili96/FactCG-DeBERTa-v3-Large", "https://arxiv.org/abs/2501.17144",
            "https://github.com/derenlei/FactCG (factcg/inference.py, utils.py)",
        ),
        template="{document}\n\nChoose your answer: based on the paragraph above can we conclude that "
        '"{claim}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is ',
        window=Window(550, "Treebank tokens"), threshold=0.5, size="1.74 GB",
    )  # fmt: skip
    yield Verifier(
        _VECTARA, "HHEM-2.1-Open: factual consistency, FLAN-T5-base", _TWO, "Apache-2.0", "English", None,
        (f"{_HUB}/{_VECTARA}", f"{_HUB}/{_VECTARA}/blob/main/modeling_hhem_v2.py"),
        template="<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {document}\n\n"
        "Hypothesis: {claim}",
        window=Window(LONGEST, "tokens"), size="439 MB",
        remark="Its authors cut no document; the bound of 2048 tokens limits the memory. It reads with the tokenizer "
        "of google/flan-t5-base, which its repository lacks.",
    )  # fmt: skip
    yield Verifier(
        _VECTARA, "HHEM-1.0-Open: factual consistency, DeBERTa-v3-base", ("entailment",), "Apache-2.0", "English", 512,
        (f"{_HUB}/{_VECTARA}/tree/hhem-1.0-open", "https://docs.kolena.com/metrics/HHEM-score"),
        threshold=0.5, revision="hhem-1.0-open",
        remark="One logit; the probability is its logistic function.",
    )  # fmt: skip


def _list_others() -> Iterator[Verifier]:
    roberta = "FacebookAI/roberta-large-mnli"
    yield Verifier(
        roberta, "NLI, RoBERTa-large", ("contradiction", "neutral", "entailment"), "MIT", "English", 512,
        (f"{_HUB}/{roberta}", f"{_HUB}/{roberta}/blob/main/config.json"),
    )  # fmt: skip
    for size, length, weights in (("small", 1680, ""), ("base", 1280, "738 MB")):
        key = f"tasksource/deberta-{size}-long-nli"
        yield Verifier(
            key, f"NLI on long texts, DeBERTa-v3-{size}", (), "Apache-2.0", "English", length, (f"{_HUB}/{key}",),
            window=Window(length, "tokens"), size=weights,
        )  # fmt: skip
    yield Verifier(
        "yzha/AlignScore", "alignment, RoBERTa-base and RoBERTa-large", _THREE, "MIT", "English", 512,
        ("https://github.com/yuh-zha/AlignScore", "https://arxiv.org/abs/2305.16739"), window=Window(350, "words"),
        unreadable="its weights are PyTorch Lightning checkpoints (.ckpt), which are pickles and are not read; name "
        "lytang/MiniCheck-DeBERTa-v3-Large, or convert the checkpoint to safetensors as docs/verifiers.md shows",
    )  # fmt: skip


VERIFIERS: Mapping[str, Verifier] = MappingProxyType(
    {
        verifier.key: verifier
        for verifiers in (_list_laurer(), _list_sentence_transformers(), _list_fact_checkers(), _list_others())
        for verifier in verifiers
    }
)
"""The known verifiers by their keys."""
_OLD_NAMES: Mapping[str, str] = MappingProxyType({"roberta-large-mnli": "FacebookAI/roberta-large-mnli"})


def find_verifier(name: str) -> Verifier | None:
    """The verifier with this id or key, in any case; None if it is not known.

    A branch or commit after `@` that no entry has is taken for a version of the main one.
    """
    folded = {key.casefold(): verifier for key, verifier in VERIFIERS.items()}
    asked = _OLD_NAMES.get(name, name).casefold()
    return folded.get(asked) or folded.get(asked.partition("@")[0])


HHEM = frozenset({"HHEMv2", "HHEMv2Config"})
"""What HHEM-2.1-Open is called in `model_type`: its config.json and its code disagree."""
_HHEM_PLACEHOLDERS = ("text1", "text2")


def find_reading(name: str | None, config: Mapping[str, Any]) -> Verifier | None:
    """A verifier that reads pairs as a model does, by the model's name on the Hub or by its config.json.

    HHEM's template is in its configuration. Its code cuts no text; a bound on the length bounds the memory.
    """
    if config.get("model_type") not in HHEM:
        return find_verifier(name) if name else None
    prompt = config.get("prompt")
    if not isinstance(prompt, str):
        raise DataError("config.json: 'prompt' is missing; it is the template through which HHEM reads pairs")
    try:
        template = str(parse_template(prompt, _HHEM_PLACEHOLDERS))
    except ValueError as error:
        raise DataError(f"config.json: 'prompt' {error}") from error
    return replace(VERIFIERS[_VECTARA], template=template, max_length=LONGEST)


def choose_reading(
    found: Configuration, find_name: Callable[[], str | None], template: str | None, replies: Mapping[str, str] | None
) -> dict[str, Any]:
    """What to change in the configuration of a model's files, so that pairs are read as the model was trained to.

    Args:
        found: the configuration as in the files.
        find_name: gives the model's `published_name`.
        template: the spec's `pair_template`, which comes before what is known of the model.
        replies: the spec's `replies`, which do so too.
    """
    stated: dict[str, Any] = {"pair_format": parse_template(template)} if template else {}
    if found.task != "classification" and not writes_text(found.encoder.get("architectures")):
        return stated
    known = find_reading(find_name(), found.encoder)
    replies = replies or (known.replies if known else {})
    if replies:
        stated |= {"task": "classification", "labels": tuple(replies), "replies": replies}
    if known is None or template:
        return stated
    longest = min((length for length in (known.max_length, found.positions) if length is not None), default=None)
    if known.template is not None:
        stated["pair_format"] = parse_template(known.template)
    if longest is not None and (known.template is not None or longest != found.max_length):
        stated["max_length"] = longest
    return stated


def check_pair_keys(
    model: str, replies: Mapping[str, str] | None, template: str | None, configuration: Configuration
) -> None:
    """Refuse keys on how pairs are read that do not fit a model's files."""
    writes = writes_text(configuration.encoder.get("architectures"))
    if replies is not None and not writes:
        raise UsageError(
            f"replies: is only for models that write text, such as T5ForConditionalGeneration, and {model} does not"
        )
    if configuration.task == "classification":
        return
    if template is not None and writes:
        raise UsageError(f"pair_template: {model} {NEEDS_REPLIES}")
    if configuration.pair_format is not None:
        raise UsageError(f"pair_template: is only for models that classify pairs of texts, which {model} does not")
