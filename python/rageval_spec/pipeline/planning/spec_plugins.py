"""Builds the plugins of a spec with their nodes, and prepares what must exist before planning.

Prepared are the files of models, and questions that a model writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rageval_spec import plugin as contracts
from rageval_spec import registry, signals
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.plugin import AnswerMetric, Context, Judge, Metric, Model, Node, System
from rageval_spec.plugin.block_names import names_in, order_by_reference
from rageval_spec.plugin.budget import WHOLE, Budget, Shard
from rageval_spec.plugin.engine import show_nothing
from rageval_spec.plugin.plugin import ResumeRule, say_nothing
from rageval_spec.progress import Progress, ProgressDisplay
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.spec.spec_file import find_spec_origin
from rageval_spec.store.disk import InputFile, digest_content
from rageval_spec.store.store import Answers, NoAnswers

Fingerprint = Callable[[InputFile], str]


@dataclass(frozen=True)
class SpecPlugins:
    """The plugins of a spec, built with their nodes, by the names that the spec gives them.

    Attributes:
        sources: systems that are not evaluated, but whose runs the evaluated ones read.
    """

    datasets: Mapping[str, contracts.Dataset[Any]]
    models: Mapping[str, Model[Any]]
    judges: Mapping[str, Judge[Any]]
    labels: Mapping[str, contracts.Labels[Any]]
    sources: Mapping[str, System[Any]]
    systems: Mapping[str, System[Any]]
    metrics: Mapping[str, Metric[Any]]
    reports: tuple[contracts.Report[Any], ...]
    notifiers: tuple[contracts.Notifier[Any], ...] = ()
    destinations: tuple[contracts.Report[Any], ...] = ()

    def system(self, name: str) -> System[Any]:
        return self.systems[name] if name in self.systems else self.sources[name]

    @property
    def answer_metrics(self) -> dict[str, AnswerMetric[Any]]:
        return {name: metric for name, metric in self.metrics.items() if isinstance(metric, AnswerMetric)}

    @property
    def asked_models(self) -> dict[str, Model[Any]]:
        """The models that a dataset, a system, a judge or a metric asks, and those that these models ask in turn.

        Other models of the spec are neither fetched nor listed.
        """
        parts = (*self.datasets.values(), *self.sources.values(), *self.systems.values(), *self.judges.values())
        new = {name for part in parts for name in names_in(part.node, "models")}
        new.update(name for metric in self.metrics.values() for name in metric.asked_models())
        asked: set[str] = set()
        while new := new - asked:
            asked |= new
            new = {name for one in new if one in self.models for name in names_in(self.models[one].node, "models")}
        return {name: model for name, model in self.models.items() if name in asked}

    def levels(self) -> tuple[tuple[str, ...], ...]:
        """The names of all systems, in levels; the systems of a level read only runs of the levels before it."""
        everything = {**self.sources, **self.systems}
        return order_by_reference({name: system.node for name, system in everything.items()})


def build_parts(
    spec: Spec,
    progress: Callable[[str, str | None], Progress] = show_nothing,
    answers: Answers | None = None,
    fingerprint: Fingerprint | None = None,
    budget: Budget | None = None,
    tell: Callable[[str], None] = say_nothing,
    output: Path | None = None,
    resume: ResumeRule | None = None,
    shard: Shard = WHOLE,
    pace: Callable[[str], Callable[..., Any]] | None = None,
    moved: Mapping[Path, Path] | None = None,
    store: Path | None = None,
) -> SpecPlugins:
    """Build the plugins of a spec. What is not said is as in `Context`, or absent.

    `progress` returns the progress display for a label (`bm25`) and the unit that is counted ("texts").
    """
    models: dict[str, Model[Any]] = {}
    judges: dict[str, Judge[Any]] = {}

    whole = Context(
        spec.name,
        spec.folder,
        spec.limits.threads,
        models=models,
        answers=answers or NoAnswers(),
        fingerprint=fingerprint or digest_content,
        judges=judges,
        budget=budget or Budget(),
        concurrency=spec.limits.concurrency,
        tell=tell,
        origin=find_spec_origin(spec),
        output=output,
        resume=resume or ResumeRule(),
        shard=shard,
        pace=pace,
        moved=moved or {},
        store=store,
    )

    def build(section: registry.Section, name: str, node: Any) -> Any:
        plugin = registry.load(section, node.use)
        shown = progress(name, getattr(plugin, "counts", None))
        return plugin(node, replace(whole, name=name, progress=shown))

    def build_all(section: registry.Section, nodes: Mapping[str, Node]) -> dict[str, Any]:
        return {name: build(section, name, node) for name, node in nodes.items()}

    models.update(build_all("models", spec.models))
    judges.update({name: apply_calibration(judge) for name, judge in build_all("judges", spec.judges).items()})
    return SpecPlugins(
        datasets=build_all("datasets", spec.datasets),
        models=models,
        judges=judges,
        labels=build_all("labels", spec.labels),
        sources=build_all("systems", spec.sources),
        systems=build_all("systems", spec.systems),
        metrics=build_all("metrics", {metric.name: metric.node for metric in spec.metrics}),
        reports=tuple(build("reports", node.use, node) for node in spec.reports),
        notifiers=tuple(build("notifiers", node.use, node) for node in spec.notifiers),
        destinations=tuple(build("reports", node.use, node) for node in spec.destinations),
    )


def list_files(parts: SpecPlugins, folder: Path) -> Iterator[InputFile]:
    """The files that steps read, with the Python files beside the spec that they import.

    The files of a model are left out unless they are in the spec's folder: a process elsewhere finds its own.
    """
    from rageval_spec.user_functions import list_imports

    readers = (*parts.datasets.values(), *parts.sources.values(), *parts.systems.values(), *parts.judges.values())
    inputs = [file for one in (*readers, *parts.metrics.values()) for file in one.inputs()]
    inputs += [file for one in (*parts.systems.values(), *parts.sources.values()) for name in parts.datasets
               for file in one.inputs_for(name)]  # fmt: skip
    inputs += [file for one in parts.models.values() for file in one.inputs() if file.path.is_relative_to(folder)]
    for file in inputs:
        yield file
        if file.path.suffix == ".py" and file.path.is_relative_to(folder):
            yield from (InputFile(path, ()) for path in list_imports(file.path, folder))


@contextmanager
def stop_calls(parts: SpecPlugins) -> Iterator[None]:
    """If the block raises, end the calls of chat models that are waiting or under way."""
    try:
        yield
    except BaseException:
        for model in parts.models.values():
            if isinstance(model, contracts.ChatModel):
                model.stop()
        raise


def apply_calibration(judge: Judge[Any]) -> Judge[Any]:
    """The judge, or one that reads its scores as the calibration says that its node names. Opens nothing.

    Few judges have a calibration, and importing what reads one takes as long as reading a spec.
    """
    if judge.node.calibrated is None:
        return judge
    from rageval_spec.judging.calibrated_judge import CalibratedJudge

    return CalibratedJudge(judge)


def prepare_models(parts: SpecPlugins, display: ProgressDisplay) -> None:
    """Download missing models before the plan is made, because their files are part of the keys."""
    for name, model in parts.asked_models.items():
        display.announce(f"find the model {name}")
        model.prepare()


def prepare_datasets(parts: SpecPlugins, display: ProgressDisplay, budget: Budget, *, keeps_replies: bool) -> None:
    """Make what datasets lack before the plan is made, because their questions are part of the keys."""
    with stop_calls(parts), signals.explained(partial(explain_interrupt, parts, budget, keeps_replies=keeps_replies)):
        for name, dataset in parts.datasets.items():
            if names_in(dataset.node, "models"):
                display.announce(f"make the questions of {name}")
            dataset.prepare()


def explain_interrupt(parts: SpecPlugins, budget: Budget, *, keeps_replies: bool) -> str:
    """What was spent and how to continue; "" if nothing is asked whose replies are stored."""
    if not budget.calls and not parts.asked_models:
        return ""
    rest = "run again to continue from what is stored" if keeps_replies else "nothing is stored (--no-store)"
    return "; ".join(filter(None, (budget.describe(), rest)))
