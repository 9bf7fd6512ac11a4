"""What numbers mean, in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rageval_spec.calibration.joining import Item, Joined
from rageval_spec.calibration.measuring import measure_judge
from rageval_spec.calibration.thresholds import Criterion
from rageval_spec.commands.calibrate.headline import conclude

Floats = NDArray[np.float64]


def say(values: Floats, labels: Floats, criterion: Criterion | None = None) -> str:
    items: list[Item] = [("golden", "v1", f"q{row}", None) for row in range(len(values))]
    joined = Joined("faithfulness", tuple(items), tuple(values.tolist()), tuple(labels.tolist()), (), {})
    return "\n".join(sentence for sentence, _ in conclude(measure_judge(joined, criterion, resamples=200)))


def simulate(rows: int, share: Callable[[Floats], Floats], seed: int = 1) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    values = random.random(rows)
    return values, (random.random(rows) < share(values)).astype(np.float64)


def test_a_judge_that_means_what_it_says_is_praised_only() -> None:
    text = say(*simulate(300, lambda values: values))
    assert text.startswith("✓ The judge ranks a good answer above a bad one in 8")
    assert "\n" not in text


def test_values_that_do_not_mean_what_they_say_and_what_a_map_does() -> None:
    text = say(*simulate(300, lambda values: values**4))
    assert "! Its values do not mean what they say: they are 0.3" in text
    assert "Platt's map brings this down to 0.0" in text
    assert "], on questions held out." in text


def test_the_judges_own_values_are_not_taken_for_labels() -> None:
    values = np.linspace(0, 1, 60)
    assert say(values, values).startswith("! Every label is exactly the judge's value: make sure that people gave them")
    decisions = values.round()
    assert "Every label" not in say(decisions, decisions)


def test_guessing_is_called_guessing() -> None:
    assert "✗ The judge cannot be told from guessing" in say(*simulate(100, lambda values: values * 0 + 0.5))


def test_a_precision_that_is_not_reached() -> None:
    values, labels = simulate(100, lambda values: 0.3 + values * 0.4)
    assert "! No threshold reaches a precision of 0.99 on these labels; the highest is " in say(
        values.round(1), labels, Criterion("precision", 0.99)
    )


def test_a_precision_that_only_the_labels_that_chose_it_reach() -> None:
    text = say(*simulate(60, lambda values: 0.2 + values * 0.5), Criterion("precision", 0.8))
    assert "! On questions held out, the precision of 0.8 is not reached: " in text
    assert "For a promise, use --guarantee." in text


def test_a_judge_is_not_praised_for_one_bad_answer() -> None:
    values, labels = np.linspace(0.1, 0.9, 24), np.ones(24)
    labels[0] = 0.0
    text = say(values, labels)
    assert "! Only 1 labelled item is bad, too few to show whether the judge tells right from wrong" in text
    assert "✓" not in text
    labels[:4] = 0.0
    assert "! Only 4 labelled items are bad" in say(values, labels)
    assert "! Only 4 labelled items are good" in say(values, 1 - labels)
    labels[:5] = 0.0
    assert "✓ The judge ranks" in say(values, labels)


def test_degenerate_labels() -> None:
    assert "label 50 or more, so that intervals" in say(np.array([0.1, 0.5, 0.9]), np.array([0.0, 1.0, 1.0]))
    assert "No labelled item is good (above 0.5), so" in say(np.full(60, 0.7), np.zeros(60))
    split = say(np.full(60, 0.7), np.array([1.0, 0.5] * 30))
    assert "No labelled item is bad (below 0.5), so it is not known" in split
    assert "label some bad answers too" in split
    by_turns = (np.arange(60) % 2).astype(np.float64)
    assert "cannot be told from guessing" in say(np.array([0.7] * 59 + [0.8]), by_turns)
    assert "cannot be told from guessing" in say(np.full(60, 0.7), by_turns)
    backwards = say(np.linspace(0, 1, 60), (np.arange(60) < 30).astype(np.float64))
    assert (
        "✗ The judge is the wrong way round: it ranks a bad answer above a good one in 100% of the cases." in backwards
    )
