"""The fixture `rageval`: evaluates in a test, and asserts what the evaluation came to."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.data import arithmetic
from rageval_spec.diagnostics import make_visible
from rageval_spec.testing.spec_collection import explain_gate
from rageval_spec.wording import (
    ADJUSTED,
    UNRESOLVABLE,
    NumberFormat,
    describe_limit,
    find_format,
    format_interval,
    format_p_value,
    tell_apart,
)

if TYPE_CHECKING:
    from rageval_spec.api.finished_evaluation import FinishedEvaluation
    from rageval_spec.commands.compare.changes import MetricChange


class Rageval:
    """Evaluates, and asserts on evaluations. An assertion that fails says why and shows the worst question."""

    def run(self, spec: str | Path | dict[str, Any], **options: Any) -> FinishedEvaluation:
        """Evaluate a spec, as `rageval_spec.run` does, without progress.

        Args:
            spec: the spec's file, or a dict with the content that the file would have.
            options: the arguments of `rageval_spec.run`.
        """
        from rageval_spec.api.evaluations import run

        return run(spec, **{"quiet": True, **options})

    def assert_passes(self, evaluation: FinishedEvaluation) -> None:
        """Fail if a gate failed, a part of the evaluation failed, or nothing could be scored."""
        __tracebackhide__ = True
        if evaluation.passed:
            return
        told = [make_visible(failure) for failure in evaluation.failures]
        told += [explain_gate(evaluation.data, gate) for gate in evaluation.gates if gate.counted == "fail"]
        raise AssertionError("\n\n".join(told) or "no metric could be scored for any query")

    def assert_no_regression(
        self,
        evaluation: FinishedEvaluation,
        baseline: FinishedEvaluation | str | Path,
        *,
        metrics: str | Sequence[str] = (),
        alpha: float = 0.05,
        max_drop: float | None = None,
        accept_changes: Sequence[str] = (),
    ) -> None:
        """Fail if a metric is significantly worse than in the baseline, by the paired test of `rageval-spec compare`.

        Args:
            evaluation: the later evaluation.
            baseline: the earlier one, or the folder or label of its results.
            metrics: the metrics to look at; all by default.
            alpha: the adjusted p-value below which a difference is significant.
            max_drop: also fail on any larger drop, significant or not; with None, only significance counts.
            accept_changes: parts that may have changed since the baseline, as in a gate: "references". Otherwise a
                metric that uses a part that changed fails, because its numbers are not comparable.

        Raises:
            UsageError: there are no such results, or a metric that is not in both.
        """
        __tracebackhide__ = True
        from rageval_spec.commands.compare.changes import compare_metrics
        from rageval_spec.history.comparability import find_comparability

        name, earlier = _open(baseline, evaluation)
        known = find_comparability(evaluation.data, earlier.data, name).accept(accept_changes)
        changes = compare_metrics(evaluation.data, earlier.data, known)
        wanted = [metrics] if isinstance(metrics, str) else [*metrics]
        _check_names(wanted, changes)
        looked_at = [one for one in changes if not wanted or one.after.metric in wanted]
        unlike = [one for one in looked_at if one.comparison is not None and not one.comparison.is_comparable]
        worse = [one for one in looked_at if _is_regression(one, alpha, max_drop)]
        for one in looked_at:
            if max_drop is None and one.comparison is not None and not one.comparison.is_resolvable(alpha):
                warnings.warn(_describe_unresolvable(one, name, alpha), stacklevel=2)
        if unlike or worse:
            told = [
                *(_refuse(one, name) for one in unlike),
                *(_describe(one, name, find_format(evaluation.data, one.metric)) for one in worse),
            ]
            raise AssertionError("\n".join(told))


def _open(baseline: FinishedEvaluation | str | Path, later: FinishedEvaluation) -> tuple[str, FinishedEvaluation]:
    from rageval_spec.api.finished_evaluation import FinishedEvaluation

    if isinstance(baseline, FinishedEvaluation):
        return "the baseline", baseline
    from rageval_spec.commands.results_argument import open_results

    opened = open_results(str(baseline), later.data)
    return opened.name, FinishedEvaluation(opened.evaluation)


def _check_names(wanted: Sequence[str], changes: Sequence[MetricChange]) -> None:
    from rageval_spec.diagnostics import suggest
    from rageval_spec.errors import UsageError

    known = [*dict.fromkeys(one.after.metric for one in changes)]
    for name in wanted:
        if name not in known:
            hint = suggest(name, known) or f"they share {', '.join(known) or 'none'}"
            raise UsageError(f"the evaluations do not share the metric '{name}'; {hint}")


def _is_regression(one: MetricChange, alpha: float, max_drop: float | None) -> bool:
    if not one.is_worse or one.difference is None:
        return False
    is_significant = one.comparison is not None and arithmetic.exceeds(alpha, one.comparison.p_adjusted)
    if is_significant or max_drop is None:
        return is_significant
    drop, before = abs(one.difference), one.before
    return arithmetic.exceeds(drop, max_drop, terms=before.scored, scale=before.mean or 0.0)


def _describe_unresolvable(one: MetricChange, name: str, alpha: float) -> str:
    """That no drop of a metric could fail the test."""
    assert one.comparison is not None, "only comparisons can be unresolvable"
    told = f"{one.after.metric} of {one.after.system} on {one.after.dataset} against {name}"
    return make_visible(f"{told} is {UNRESOLVABLE}: {describe_limit(one.comparison, alpha)}")


def _refuse(one: MetricChange, name: str) -> str:
    """Why a metric cannot be compared, and what to write to compare it all the same."""
    from rageval_spec.history.comparability import describe_changes

    changes = () if one.comparison is None else one.comparison.changes
    parts = [*dict.fromkeys(change.part for change in changes)]
    told = f"{one.after.metric} of {one.after.system} on {one.after.dataset} is not comparable with {name}"
    return make_visible(f"{told}: {describe_changes(changes)}; to compare all the same, pass accept_changes={parts!r}")


def _describe(one: MetricChange, name: str, shown: NumberFormat) -> str:
    """`faithfulness of v2 on golden fell from 0.853 (main) to 0.812 [-0.080, -0.002], p = 0.0123 on 40 questions`."""
    before, after = "–", "–"
    if one.comparison is not None and one.comparison.baseline_mean is not None:
        base = one.comparison.baseline_mean
        before, after = tell_apart(base, base + one.comparison.difference, shown.number)
    elif one.before.mean is not None and one.after.mean is not None:
        before, after = tell_apart(one.before.mean, one.after.mean, shown.number)
    verb = "fell" if (one.difference or 0.0) < 0 else "rose"
    told = f"{one.after.metric} of {one.after.system} on {one.after.dataset} {verb} from {before} ({name}) to {after}"
    if one.comparison is not None:
        test = one.comparison
        told += f", a difference of {format_interval(test.interval, formatter=shown.change)}" if test.interval else ""
        told += f", {ADJUSTED} {format_p_value(test.p_adjusted)} on {test.queries} questions"
    return make_visible(told)
