"""Runs the combinations of a spec's axes as one evaluation, in rounds, and compares them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

from rageval_spec.data.datasets import EvaluatedQueries, Fingerprint, take_fingerprints
from rageval_spec.data.evaluation import Evaluation, Results
from rageval_spec.data.tables import Collection
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import SpecError, suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.pipeline.planning.question_selection import judged_queries, list_ids, queries_to_ask, shuffle
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.pipeline.planning.spec_selection import find_needed, select
from rageval_spec.runner import Options, RunOutcome, finish, open_group, run
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.spec.spec_file import loads, read_text
from rageval_spec.sweep.field import Field, Found, Placing

_FEWEST = 20
"""No round has fewer questions, unless the dataset has."""


@dataclass(frozen=True)
class Sweep:
    """The spec of each combination, and its value of each axis as text; both by the combination's name."""

    specs: Mapping[str, Spec]
    settings: Mapping[str, Mapping[str, str]]
    system: str
    field: Field

    def list_rounds(self, limit: int | None) -> tuple[list[int], list[str]]:
        """How many questions each round has, and all questions in the order in which the rounds take them."""
        spec = next(iter(self.specs.values()))
        _, asked = _open(spec, self.field.dataset, limit)
        ids = [*shuffle(list_ids(asked), spec.statistics.seed)]
        rounds, most = [len(ids)], len(self.specs).bit_length() if spec.sweep.search == "halving" else 1
        while rounds[0] >= 2 * _FEWEST and len(rounds) < most:
            rounds.insert(0, rounds[0] // 2)
        return rounds, ids

    def _check_questions(self, limit: int | None) -> None:
        """Refuse other questions or references before the first answer is paid for."""
        names, first = dict[str, str](), None
        for name, spec in self.specs.items():
            names.setdefault(repr(spec.datasets), name)
        for name in names.values():
            data, asked = _open(self.specs[name], self.field.dataset, limit)
            questions = EvaluatedQueries(replace(data, load_qrels=None), asked["query_id"].unique())
            told = _list_asked(take_fingerprints(questions))
            first = told if first is None else first
            if told != first:
                raise DataError(self._refuse(name, next(iter(self.specs))))

    def _refuse(self, name: str, first: str) -> str:
        return f"{name}: '{self.field.dataset}' has other questions or references than with {first}"

    def run(self, options: Options, tell: Callable[[str], None]) -> tuple[Found, RunOutcome]:
        """Run and compare all combinations, whose results go to folders of their own.

        Returns also the best one's evaluation, or the first, with the failures and lost reports of all.
        """
        rounds, ids = self.list_rounds(options.limit)
        self._check_questions(options.limit)
        of, group = self.field, open_group(next(iter(self.specs.values())), options)
        placings, runs, scores, failed, first = dict[str, Placing](), dict[str, RunOutcome](), {}, {}, None
        try:
            for number, size in enumerate(rounds, start=1):
                left = [name for name in self.specs if number == 1 or placings[name].standing in ("best", "tied")]
                for name in left:
                    place = [*self.specs].index(name) + 1
                    tell(f"round {number} of {len(rounds)}, combination {place} of {len(self.specs)}: {name}")
                    folder = options.output and options.output / "combinations" / str(place)
                    own = replace(options, output=folder, no_history=True)
                    own = replace(own, queries={of.dataset: ids[:size]}, limit=None) if number < len(rounds) else own
                    outcome = run(self.specs[name], own, group)
                    evaluation, known = outcome.evaluation, outcome.evaluation.fingerprints.datasets
                    # Answers to other questions, or with other references, are not compared.
                    asked = _list_asked(known.get(of.dataset, {}))
                    first = asked if name == left[0] else first
                    if asked != first:
                        raise DataError(self._refuse(name, left[0]))
                    values = evaluation.values.filter(system=self.system, metric=of.metric_name)
                    scores[name] = dict(values.filter(status="scored").select("query_id", "value").iter_rows())
                    failed[name] = values.filter(status="error").height
                    # Its values, samples and corpus are let go: there can be hundreds of combinations.
                    results = {key: getattr(evaluation, key) for key in Results.__dataclass_fields__}
                    runs[name] = replace(outcome, evaluation=Evaluation(**results))
                of = replace(of, design=evaluation.question_designs.get(of.dataset))
                placings |= of.place({name: scores[name] for name in left}, number, len(rounds), failed)
                if group.budget.stopped:
                    break
            finish({} if group.budget.stopped else group.unfinished)
        finally:
            group.store.close()
        for name, one in placings.items():
            placings[name] = replace(one, settings=self.settings[name], gates=runs[name].evaluation.verdict)
        result = of.sum_up(self.system, rounds, placings, scores)
        lists: dict[str, Any] = {
            key: [*chain(*(getattr(one, key) for one in runs.values()))] for key in ("failures", "lost_reports")
        }
        return result, replace(runs[result.best or next(iter(runs))], **lists)


def _list_asked(known: Mapping[str, Fingerprint]) -> dict[str, tuple[str | None, ...]]:
    """What was asked: of each query, the fingerprints of its text and its references."""
    return {query_id: one[:2] for query_id, one in known.items()}


def _open(spec: Spec, dataset: str, limit: int | None) -> tuple[Collection, Any]:
    """A dataset, and the table of the queries that are evaluated."""
    data = build_parts(spec).datasets[dataset].open()
    return data, judged_queries(data, limit).qrels if data.queries is None else queries_to_ask(data, limit).queries


def load_sweep(path: Path, options: Options, texts: Sequence[str] = ()) -> Spec | Sweep:
    """The spec, or a sweep if it has axes; the texts `PATH=A,B` add some.

    Raises:
        SpecError: the spec, or an axis, is wrong.
        UsageError: it is not clear which system, dataset or metric to compare.
    """
    paths = [one.partition("=")[0].strip() for one in texts]
    for one, axis in zip(texts, paths, strict=True):
        if "=" not in one or paths.count(axis) > 1:
            raise UsageError(f"--sweep {one}: write PATH=A,B, and each path once: systems.dense.depth=50,100")
    name, text = read_text(path)
    read = partial(loads, text, path=name, folder=path.parent, overrides=options.overrides, sweep=texts)
    spec, specs, settings, titles = read(), {}, {}, dict[str, str]()
    if not spec.axes:
        return spec
    names = [axis.rpartition(".")[2] for axis in spec.axes]
    names = names if len({*names}) == len(names) else [*spec.axes]
    for places in product(*(range(len(values)) for values in spec.axes.values())):
        chosen = [values[at] for values, at in zip(spec.axes.values(), places, strict=True)]
        shown = [one if isinstance(one, str) else json.dumps(one) for one in chosen]
        title = ", ".join(map("{}={}".format, names, shown))
        combination = read(combination=dict(zip(spec.axes, places, strict=True)))
        blocks = repr((combination.datasets, combination.models, combination.systems, combination.sources))
        if (same := titles.setdefault(blocks, title)) != title or title in specs:
            raise UsageError(f"the combinations {same} and {title} are the same; write each value of an axis once")
        specs[title] = replace(combination, axes={}, reports=(), stopping=None)
        settings[title] = dict(zip(names, shown, strict=True))
    return Sweep(specs, settings, *_choose(spec, options.only))


def _choose(spec: Spec, only: Sequence[str]) -> tuple[str, Field]:
    """The system that is compared, and on what."""
    chosen = select(spec, only)[0]
    for model in find_needed([one.node for one in chosen.metrics], chosen)["models"]:
        if wrong := [axis for axis in spec.axes if axis.startswith(f"models.{model}.")]:
            told = "a judge or metric asks this model, so another value measures something else"
            hint = "declare a model of its own for what is compared"
            raise SpecError([spec.diagnose(("axes", axis), told, "wrong-axis", hint) for axis in wrong])
    named = [one for one in chosen.systems if any(axis.startswith(f"systems.{one}.") for axis in spec.axes)]
    systems, datasets, metrics = named or [*chosen.systems], [*chosen.datasets], build_parts(chosen).metrics
    for several in (one for one in (systems, datasets) if len(one) > 1):
        raise UsageError(f"a sweep compares one system on one dataset; add --only with one of {', '.join(several)}")
    fit = [name for name, one in metrics.items() if one.statistic == "mean" and one.higher_is_better is not None]
    metric = spec.sweep.metric or next(iter(metrics))
    if metric not in fit:
        hint = suggest(metric, fit) or f"write sweep: {{metric: NAME}}, with one of {', '.join(fit)}"
        raise UsageError(f"no metric '{metric}' is a mean of which one direction is better; {hint}")
    return systems[0], Field(datasets[0], metric, metrics[metric], spec.statistics)
