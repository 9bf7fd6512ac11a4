"""How close the wording of answers is to the judge's own.

Wording is described by the 300 most frequent character trigrams of all texts. The most frequent ones are those of
function words, endings and punctuation, so that they tell how something is written rather than what it is about; they
work in every language and in texts of a sentence or two, which have too few words to count. Each trigram is
standardized over the answers, so that rare ones count like frequent ones, and profiles are compared by their cosine
("cosine delta", the usual measure of who wrote a text).

A judge's reason quotes the answer that it is about. So an answer is compared with what the judge wrote about other
questions only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec.calibration.joining import Joined
from rageval_spec.calibration.properties import LeftOut, Property, Samples
from rageval_spec.history.recorded_spec import read_recorded_spec
from rageval_spec.plugin import ChatModel
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.data.evaluation import Evaluation

    Floats: TypeAlias = NDArray[np.float64]

Question: TypeAlias = tuple[str, str]
"""Dataset and query."""
NAME = "style"
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

    Args:
        evaluation: where the judge's reasons are.
        joined: the labelled items.
        samples: their answers.
        own_systems: the systems whose answers the judge's own model wrote; they are its texts too.
    """
    if not _asks_chat_model(evaluation, joined.metric):
        return LeftOut(NAME, "no chat model is known behind the judge")
    texts = _collect_reasons(evaluation, joined.metric)
    for item in joined.items:
        if item[1] in own_systems:
            texts.setdefault((item[0], item[2]), []).append(samples[item].get("answer") or "")
    written = {question: text for question, of in texts.items() if (text := "\n".join(dict.fromkeys(of)).strip())}
    if len(written) < _FEWEST_QUESTIONS or sum(map(len, written.values())) < _FEWEST_CHARACTERS:
        return LeftOut(NAME, f"the judge wrote reasons for only {count_noun(len(written), 'question')}")
    answers = [samples[item].get("answer") or "" for item in joined.items]
    closeness = measure_closeness(answers, joined.questions, written)
    spread = float(closeness.std())
    numbers = (closeness / spread if spread > 0 else closeness).tolist()
    return Property(NAME, "Wording closer to its own by one standard deviation makes", numbers, tells_models_apart=True)


def _asks_chat_model(evaluation: Evaluation, metric: str) -> bool:
    recorded = read_recorded_spec(evaluation)
    if recorded is None or metric not in recorded.metrics:
        return False
    used = recorded.list_used(recorded.metrics[metric].node)
    return any(section == "models" and isinstance(recorded.models.get(name), ChatModel) for section, name in used)


def _collect_reasons(evaluation: Evaluation, metric: str) -> dict[Question, list[str]]:
    """What the judge wrote about each question: about claims, or about whole answers."""
    reasons: dict[Question, list[str]] = defaultdict(list)
    for block in evaluation.iterate_findings():
        rows = block.filter(metric=metric).select("dataset", "query_id", "reason").drop_nulls("reason")
        for dataset, query_id, reason in rows.iter_rows():
            reasons[dataset, query_id].append(reason)
    if not reasons:
        rows = evaluation.values.filter(metric=metric, status="scored").drop_nulls("reason")
        for dataset, query_id, reason in rows.select("dataset", "query_id", "reason").iter_rows():
            reasons[dataset, query_id].append(reason)
    return dict(reasons)


def measure_closeness(answers: Sequence[str], questions: Sequence[Question], written: Mapping[Question, str]) -> Floats:
    """The cosine of each answer's profile and that of the texts that were written about other questions."""
    import numpy as np

    counted = [_count(answer) for answer in answers]
    own = {question: _count(text) for question, text in written.items()}
    total: Counter[str] = Counter()
    for one in (*counted, *own.values()):
        total.update(one)
    places = {trigram: place for place, (trigram, _) in enumerate(total.most_common(_TRIGRAMS))}
    profiles = np.stack([_share(_place(one, places)) for one in counted])
    by_question = {question: _place(one, places) for question, one in own.items()}
    everything = np.sum([*by_question.values()], axis=0)
    nothing = np.zeros(len(places))
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


def _place(counts: Mapping[str, int], places: Mapping[str, int]) -> Floats:
    import numpy as np

    row = np.zeros(len(places))
    for trigram, count in counts.items():
        place = places.get(trigram)
        if place is not None:
            row[place] = count
    return row


def _share(counts: Floats) -> Floats:
    total = counts.sum()
    shares: Floats = counts / total if total > 0 else counts
    return shares
