"""What makes a judge more generous, or stricter, than people: its error regressed on what the answers are like.

One question is whether a judge favours the answers of its own model; another, how close the wording of answers is to
the judge's own. Wording is described by the 300 most frequent character trigrams of all texts. The most frequent ones
are those of function words, endings and punctuation, so that they tell how something is written rather than what it
is about; they work in every language and in texts of a sentence or two, which have too few words to count. Each
trigram is standardized over the answers, so that rare ones count like frequent ones, and profiles are compared by
their cosine ("cosine delta", the usual measure of who wrote a text).

A judge's reason quotes the answer that it is about. So an answer is compared with what the judge wrote about other
questions only.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rageval_spec import kernels
from rageval_spec.calibration.judge_quality import list_chat_models
from rageval_spec.calibration.labelled_items import Item, Joined, read_item_samples
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.history.metric_definitions import find_kinships, read_recorded_spec
from rageval_spec.judging.language import NAMES, find_language
from rageval_spec.libraries import Floats, np
from rageval_spec.statistics.regression import Effect, find_determined, regress
from rageval_spec.wording import count_noun, format_interval, format_number, format_p_value, list_names

OWN_MODEL = "own model"


def compare_own_model(evaluation: Evaluation, joined: Joined) -> Iterator[Property | LeftOut]:
    """Whether each labelled answer is of the judge's own model, or of one of the same family.

    Systems whose generator the spec does not name are neither own nor others: a second property, which is not shown,
    keeps them apart.
    """
    kinships = find_kinships(evaluation, joined.metric)
    systems = [item[1] for item in joined.items]
    own = [kinships.get(system) is not None for system in systems]
    others = [system in kinships and kinships[system] is None for system in systems]
    if not any(one in kinships for one in systems):
        yield LeftOut(OWN_MODEL, "the spec names no `generator` of a labelled system, or the judge asks no model")
        return
    for which, whose in ((own, "the judge's own model"), (others, "other models")):
        if sum(which) < FEWEST:
            yield LeftOut(OWN_MODEL, f"only {count_noun(sum(which), 'labelled item')} of {whose}; {FEWEST} are needed")
            return
    names = [name for name in dict.fromkeys(systems) if kinships.get(name) is not None]
    model = "model" if all(kinships[name] == "same" for name in names) else "model or its family"
    change = f"Answers of its own {model} ({list_names(names)}) make"
    yield Property(
        OWN_MODEL, change, [float(one) for one in own], " than answers of other models that people rate the same"
    )
    unknown = [system not in kinships for system in systems]
    yield Property("unknown generator", "", [float(one) for one in unknown], is_shown=False)


def find_own_systems(evaluation: Evaluation, metric: str) -> frozenset[str]:
    """The systems whose answers the judge's own model wrote; not those of other models of its family."""
    return frozenset(name for name, kinship in find_kinships(evaluation, metric).items() if kinship == "same")


FEWEST = 10
"""The fewest labelled items with, and without, a property that is compared: a system, a language, a slice."""
LANGUAGE_COLUMN = "language"
"""The column of the questions that says their language."""
_UNITS = (100, 10, 1)
"""By how many words lengths are compared: the most of which the longest answer has twice as many."""
_KEY = ("dataset", "system", "query_id")

Samples: TypeAlias = Mapping[Item, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Property:
    """One number for each labelled item.

    Attributes:
        name: `length`, `contexts`, `evidence`, `system v2`, `language de`, `style`, `slice difficulty=hard`.
        change: what one unit more is, in words: `100 more words make`.
        numbers: in the order of the items.
        than: what is compared, behind the effect: ` than others`.
        tells_models_apart: whether it is another name for the model that wrote the answer: its system, or its style.
        is_shown: False for a group of rests, which only keeps them out of the group that others are compared with.
    """

    name: str
    change: str
    numbers: Sequence[float]
    than: str = ""
    tells_models_apart: bool = False
    is_shown: bool = True


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A property that could not be compared, and why not."""

    name: str
    reason: str


def list_properties(evaluation: Evaluation, joined: Joined, samples: Samples) -> Iterator[Property | LeftOut]:
    """The properties of the labelled items but their slices, those that matter most first."""
    rows = [samples[item] for item in joined.items]
    claims = _read_claims(evaluation, joined)
    yield _measure_length(joined, rows, claims)
    yield from _compare_systems(evaluation, joined)
    yield Property("contexts", "One more context makes", [float(len(row.get("contexts") or ())) for row in rows])
    yield from _place_evidence(joined, claims)
    yield from _compare_languages(rows)


def _measure_length(
    joined: Joined, rows: Sequence[Mapping[str, Any]], claims: Mapping[Item, tuple[str, int | None]]
) -> Property:
    """The number of words, of the claims if claims are labelled."""
    of_claims = joined.items[0][3] is not None
    texts = [claims[item][0] for item in joined.items] if of_claims else [row.get("answer") or "" for row in rows]
    words = [len(text.split()) for text in texts]
    unit = next((unit for unit in _UNITS if max(words, default=0) >= 2 * unit), _UNITS[-1])
    what = f"{count_noun(unit, 'more word')}{' in a claim' if of_claims else ''} {'makes' if unit == 1 else 'make'}"
    return Property("length", what, [count / unit for count in words])


def _compare_systems(evaluation: Evaluation, joined: Joined) -> Iterator[Property | LeftOut]:
    systems = [item[1] for item in joined.items]
    present = set(systems)
    first = next((name for name in evaluation.systems if name in present), systems[0])
    yield from _compare_groups("system", systems, first, lambda name: f"Answers of {name} instead of {first} make")


def _compare_languages(rows: Sequence[Mapping[str, Any]]) -> Iterator[Property | LeftOut]:
    languages = [_read_language(row) for row in rows]
    known = Counter(language for language in languages if language is not None)
    if not known:
        yield LeftOut("language", "it is not clear for any answer")
        return
    ((first, _),) = known.most_common(1)
    if len(known) == 1:
        yield LeftOut("language", f"all answers whose language is clear are in {_name(first)}")
        return
    than = _name(first)
    yield from _compare_groups("language", languages, first, lambda name: f"{_name(name)} instead of {than} makes")


def _read_language(row: Mapping[str, Any]) -> str | None:
    """What the questions' column says, else the language of the answer, else that of the question."""
    column = json.loads(row.get("columns") or "{}").get(LANGUAGE_COLUMN)
    if isinstance(column, str) and column.strip():
        return column.strip()
    return find_language(row.get("answer") or "") or find_language(row.get("question") or "")


def _name(language: str) -> str:
    return NAMES.get(language.lower(), language)


def _compare_groups(
    kind: str, groups: Sequence[str | None], first: str, describe: Callable[[str], str]
) -> Iterator[Property | LeftOut]:
    """Each group against the first. Small groups, and items without one, are a group of their own that is not shown."""
    counts = Counter(groups)
    is_system = kind == "system"
    compared = [name for name in dict.fromkeys(groups) if name not in (None, first)]
    rest = [name is None for name in groups]
    for name in compared:
        assert name is not None
        if counts[name] < FEWEST or len(groups) - counts[name] < FEWEST:
            rest = [one or group == name for one, group in zip(rest, groups, strict=True)]
            yield LeftOut(f"{kind} {name}", _say_few(counts[name], len(groups)))
        else:
            numbers = [float(group == name) for group in groups]
            yield Property(f"{kind} {name}", describe(name), numbers, tells_models_apart=is_system)
    numbers = [float(one) for one in rest]
    yield Property(f"other {kind}", "", numbers, tells_models_apart=is_system, is_shown=False)


def compare_slices(joined: Joined, samples: Samples) -> Iterator[Property | LeftOut]:
    """Each slice against the other questions."""
    rows = [samples[item] for item in joined.items]
    for name, count in Counter(name for row in rows for name in row.get("slices") or ()).items():
        if FEWEST <= count <= len(rows) - FEWEST:
            numbers = [float(name in (row.get("slices") or ())) for row in rows]
            yield Property(f"slice {name}", f"Questions of {name} make", numbers)
        else:
            yield LeftOut(f"slice {name}", _say_few(count, len(rows)))


def _say_few(count: int, total: int) -> str:
    if count == total:
        return "all labelled items have it"
    fewer, what = (count, "with") if count < FEWEST else (total - count, "without")
    return f"only {count_noun(fewer, 'labelled item')} {what} it; {FEWEST} are needed"


def _read_claims(evaluation: Evaluation, joined: Joined) -> dict[Item, tuple[str, int | None]]:
    """The text of each claim of the labelled answers, and the place of the context that decided it, from 0."""
    wanted = {item[:3] for item in joined.items}
    claims: dict[Item, tuple[str, int | None]] = {}
    for block in evaluation.iterate_findings():
        rows = block.filter(metric=joined.metric).select(*_KEY, "claim", "text", "source")
        for dataset, system, query_id, claim, text, source in rows.iter_rows():
            if (dataset, system, query_id) in wanted:
                claims[dataset, system, query_id, claim] = text or "", source
    return claims


def _place_evidence(joined: Joined, claims: Mapping[Item, tuple[str, int | None]]) -> Iterator[Property]:
    """The place of the context that decided a claim, or its mean for the claims of an answer.

    Items without one get the mean of the others.
    """
    found: dict[Item, list[int]] = defaultdict(list)
    of_claims = joined.items[0][3] is not None
    for item, (_, source) in claims.items():
        if source is not None:
            found[item if of_claims else (*item[:3], None)].append(source)
    if found:
        places = {item: sum(sources) / len(sources) for item, sources in found.items()}
        mean = sum(places.values()) / len(places)
        numbers = [places.get(item, mean) for item in joined.items]
        yield Property("evidence", "Evidence one context later makes", numbers)


SIGNIFICANT = 0.05
QUESTIONS_EACH = 10
"""Labelled questions for each property. With fewer, chance effects are too easily taken for real ones."""
_LABEL = "label"


@dataclass(frozen=True, slots=True)
class Bias:
    """What one property of answers does to the judge's error, while the others stay as they are.

    Attributes:
        name: the property: `length`, `contexts`, `evidence`, `system v2`, `language de`, `style`,
            `slice difficulty=hard`, `own model`.
        change: what one unit more is, in words: `100 more words make`.
        effect: by how much the error (judge less people) changes; positive is more generous.
        standardized: by how many standard deviations the error changes if the property grows by one of its own.
        p_adjusted: the effect's p-value, Holm-adjusted for all properties.
        at_equal_labels: the effect among answers that people rate the same; None if there are too few for it. That of
            the judge's own model is only measured so.
        than: what is compared, behind the effect.
    """

    name: str
    change: str
    effect: Effect
    standardized: float
    p_adjusted: float
    at_equal_labels: Effect | None
    than: str = ""

    @property
    def is_significant(self) -> bool:
        return self.p_adjusted < SIGNIFICANT

    def __str__(self) -> str:
        """`100 more words make the judge 0.070 [0.052, 0.088] more generous (adjusted p < 0.0001).`"""
        return f"{self.change} the judge {_size(self.effect)}{self.than} (adjusted {format_p_value(self.p_adjusted)})."

    def explain(self) -> str | None:
        """The remark on answers that people rate the same, if it differs: no effect, or one in the other direction.

        Such an effect is not the judge's alone: people rate these answers differently, and the judge does not see what
        they see.
        """
        held = self.at_equal_labels
        if held is None or (held.interval.low if self.effect.slope > 0 else -held.interval.high) > 0:
            return None
        if held.interval.low <= 0 <= held.interval.high:
            return "Among answers that people rate the same, it does not show."
        return f"Among answers that people rate the same, it is the other way round: {_size(held)}."


def _size(effect: Effect) -> str:
    """`0.070 [0.052, 0.088] more generous`."""
    interval = effect.interval
    if effect.slope < 0:
        interval = Interval(-interval.high, -interval.low, interval.confidence, interval.method)
    how = "generous" if effect.slope > 0 else "strict"
    return f"{format_number(abs(effect.slope))} {format_interval(interval)} more {how}"


@dataclass(frozen=True, slots=True)
class Biases:
    """The biases that could be compared, the properties that could not, and why there are none."""

    found: tuple[Bias, ...] = ()
    left_out: tuple[LeftOut, ...] = field(default=())
    reason: str | None = None


def find_biases(evaluation: Evaluation, joined: Joined) -> Biases:
    """Regress the judge's error on the answers' properties.

    The properties are the answer's length in words, the system, the number of contexts, the place of the context that
    decided its claims, the language, how close the wording is to the judge's own, and the slices. One that does not
    vary, that others determine, or that fewer than ten labelled items have or lack is left out, as are the last ones if
    there are fewer than ten labelled questions for each. Standard errors hold for answers to the same question (HC3 if
    there is one answer a question). Answers that were chosen for labelling with unequal probabilities count
    accordingly.
    """
    samples = read_item_samples(evaluation, joined)
    listed = [
        *list_properties(evaluation, joined, samples),
        compare_style(evaluation, joined, samples, find_own_systems(evaluation, joined.metric)),
        *compare_slices(joined, samples),
    ]
    own = [*compare_own_model(evaluation, joined)]
    left_out = [one for one in (*own, *listed) if isinstance(one, LeftOut)]
    properties, alike = _tell_apart([one for one in listed if isinstance(one, Property)])
    questions = len(set(joined.clusters))
    shown = [one for one in properties if one.is_shown]
    most = questions // QUESTIONS_EACH
    crowd = {one.name for one in shown[most:]}
    left_out += alike
    left_out += [LeftOut(name, f"{count_noun(questions, 'labelled question')} are too few for it") for name in crowd]
    chosen = [one for one in properties if one.name not in crowd]
    fits = [*_fit(joined, chosen), *_fit_own(joined, [one for one in own if isinstance(one, Property)], chosen)]
    if not fits:
        few = f"{count_noun(questions, 'labelled question')}; {QUESTIONS_EACH} are needed for each property"
        return Biases((), tuple(left_out), few if shown else "the labelled answers are all alike")
    adjusted = kernels.holm([one.effect.p_value for one in fits])
    found = (replace(one, p_adjusted=p_value) for one, p_value in zip(fits, adjusted, strict=True))
    return Biases(tuple(found), tuple(left_out))


def _tell_apart(properties: Sequence[Property]) -> tuple[list[Property], list[LeftOut]]:
    """The properties that tell something of their own, and those that do not vary or that others determine."""
    determined = find_determined(_tabulate(properties))
    hidden = {one.name for one in properties if not one.is_shown}
    left_out = []
    for name in (name for name in determined if name not in hidden):
        others = [other for other in determined[name] if other not in hidden]
        alike = f"cannot be distinguished from {list_names(others)}" if others else "all labelled items are alike"
        left_out.append(LeftOut(name, alike))
    return [one for one in properties if one.name not in determined], left_out


def _tabulate(properties: Sequence[Property]) -> dict[str, Floats]:
    return {one.name: np.array(one.numbers, dtype=float) for one in properties}


def _fit(joined: Joined, chosen: Sequence[Property]) -> Iterator[Bias]:
    """The effects of the properties that are shown; none if there are too few rows."""
    found = _regress(joined, chosen)
    held = _regress(joined, chosen, hold_labels=True)
    for one in chosen:
        if one.is_shown and one.name in found:
            yield _describe(joined, one, found[one.name], held.get(one.name))


def _fit_own(joined: Joined, own: Sequence[Property], chosen: Sequence[Property]) -> Iterator[Bias]:
    """The effect of being the judge's own model's, with the labels and the other properties held fixed.

    Systems and styles are not held fixed: they are what tells the models apart.
    """
    if own:
        others = [one for one in chosen if not one.tells_models_apart]
        held = _regress(joined, [*own, *others], hold_labels=True)
        if own[0].name in held:
            yield _describe(joined, own[0], held[own[0].name], held[own[0].name])


def _regress(joined: Joined, properties: Sequence[Property], *, hold_labels: bool = False) -> dict[str, Effect]:
    labels = np.array(joined.labelled)
    held = {_LABEL: labels} if hold_labels else {}
    weights = None if joined.weights is None else np.array(joined.weights)
    effects = regress(np.array(joined.judged) - labels, {**_tabulate(properties), **held}, joined.clusters, weights)
    return {effect.name: effect for effect in effects}


def _describe(joined: Joined, one: Property, effect: Effect, held: Effect | None) -> Bias:
    spread = float((np.array(joined.judged) - np.array(joined.labelled)).std())
    standardized = effect.slope * float(np.std(one.numbers)) / spread if spread > 0 else 0.0
    return Bias(one.name, one.change, effect, standardized, effect.p_value, held, one.than)


Question: TypeAlias = tuple[str, str]
"""Dataset and query."""
OWN_STYLE = "style"
_TRIGRAMS = 300
_FEWEST_QUESTIONS = 10
_FEWEST_CHARACTERS = 2000
"""The least that the judge must have written, so that its profile is one of its style and not of a few sentences."""
_BEGINNING = 2000
"""Characters of a text that are read. More change a profile little."""


def compare_style(
    evaluation: Evaluation, joined: Joined, samples: Samples, own_systems: frozenset[str]
) -> Property | LeftOut:
    """How close each labelled answer is to the judge's own wording, in standard deviations.

    Its texts are its reasons, and the answers of the systems that its own model wrote.
    """
    recorded = read_recorded_spec(evaluation)
    if recorded is None or joined.metric not in recorded.metrics or not list_chat_models(recorded, joined.metric):
        return LeftOut(OWN_STYLE, "no chat model is known behind the judge")
    texts = _collect_reasons(evaluation, joined.metric)
    for item in joined.items:
        if item[1] in own_systems:
            texts.setdefault((item[0], item[2]), []).append(samples[item].get("answer") or "")
    written = {question: text for question, of in texts.items() if (text := "\n".join(dict.fromkeys(of)).strip())}
    if len(written) < _FEWEST_QUESTIONS or sum(map(len, written.values())) < _FEWEST_CHARACTERS:
        return LeftOut(OWN_STYLE, f"the judge wrote reasons for only {count_noun(len(written), 'question')}")
    answers = [samples[item].get("answer") or "" for item in joined.items]
    closeness = measure_closeness(answers, joined.questions, written)
    spread = float(closeness.std())
    numbers = (closeness / spread if spread > 0 else closeness).tolist()
    return Property(
        OWN_STYLE, "Wording closer to its own by one standard deviation makes", numbers, tells_models_apart=True
    )


def _collect_reasons(evaluation: Evaluation, metric: str) -> dict[Question, list[str]]:
    """What the judge wrote about each question: about claims, or about whole answers."""
    reasons: dict[Question, list[str]] = defaultdict(list)
    whole = evaluation.values.filter(metric=metric, status="scored")
    for blocks in ((one.filter(metric=metric) for one in evaluation.iterate_findings()), [whole]):
        for block in blocks:
            rows = block.select("dataset", "query_id", "reason").drop_nulls("reason")
            for dataset, query_id, reason in rows.iter_rows():
                reasons[dataset, query_id].append(reason)
        if reasons:
            break
    return dict(reasons)


def measure_closeness(answers: Sequence[str], questions: Sequence[Question], written: Mapping[Question, str]) -> Floats:
    """The cosine of each answer's profile and that of the texts that were written about other questions."""
    counted = [_count(answer) for answer in answers]
    own = {question: _count(text) for question, text in written.items()}
    total: Counter[str] = Counter()
    for one in (*counted, *own.values()):
        total.update(one)
    trigrams = [trigram for trigram, _ in total.most_common(_TRIGRAMS)]
    profiles = np.stack([_share(np.array([one[name] for name in trigrams], dtype=float)) for one in counted])
    by_question = {question: np.array([one[name] for name in trigrams], dtype=float) for question, one in own.items()}
    everything = np.sum([*by_question.values()], axis=0)
    nothing = np.zeros(len(trigrams))
    others = np.stack([_share(everything - by_question.get(question, nothing)) for question in questions])
    mean, spread = profiles.mean(axis=0), profiles.std(axis=0)
    scale = np.where(spread > 0, spread, np.inf)
    one, two = (profiles - mean) / scale, (others - mean) / scale
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    closeness: Floats = np.einsum("ij,ij->i", one, two) / np.where(lengths > 0, lengths, 1.0)
    return closeness


def _count(text: str) -> Counter[str]:
    folded = f" {' '.join(text[:_BEGINNING].lower().split())} "
    return Counter([folded[place : place + 3] for place in range(len(folded) - 2)])


def _share(counts: Floats) -> Floats:
    total = counts.sum()
    shares: Floats = counts / total if total > 0 else counts
    return shares
