from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import Distribution, EntryPoint, distribution
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from rageval_spec import registry
from rageval_spec.data.samples import Sample
from rageval_spec.errors import UsageError
from rageval_spec.metrics.error_rate import ErrorRate
from rageval_spec.plugin import (
    AnswerMetric,
    Dataset,
    Engine,
    Judge,
    Labels,
    Measured,
    Metric,
    MetricNode,
    Model,
    Notifier,
    Report,
    System,
)
from tests.command_line import invoke

BASES: Mapping[registry.Section, type] = {
    "datasets": Dataset, "systems": System, "models": Model, "judges": Judge, "labels": Labels, "metrics": Metric,
    "reports": Report, "engines": Engine, "notifiers": Notifier,
}  # fmt: skip


class Offered(EntryPoint):
    """Stands for the entry point of an installed distribution."""

    dist: ClassVar[Distribution] = distribution("pytest")


class Half(AnswerMetric[MetricNode]):
    """A metric that does not define `compute`."""

    info = ErrorRate.info


class Plain(AnswerMetric[MetricNode]):
    """A metric that does not define `info`."""

    def compute(self, samples: Sequence[Sample]) -> Measured:
        return Measured(())


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module to which a distribution's entry points, right and wrong ones, refer."""
    module = ModuleType("acme_metrics")
    monkeypatch.setitem(sys.modules, "acme_metrics", module)
    monkeypatch.setattr(registry, "_entry_points", offer)
    registry.load.cache_clear()
    registry.words.cache_clear()
    yield module
    registry.load.cache_clear()
    registry.words.cache_clear()


def offer(section: registry.Section) -> dict[str, EntryPoint]:
    values = {
        "tone": "acme_metrics:Tone",
        "none": "acme_metrics:PLUGIN",
        "report": "acme_metrics:Page",
        "half": "acme_metrics:Half",
        "plain": "acme_metrics:Plain",
        "absent": "acme_metrics:Nothing",
        "unknown": "no_such_module:Tone",
        "module": "acme_metrics",
        "bad": "acme metrics/tone.py",
        "empty": "",
        "exit": "acme_exit:Tone",
    }
    if section != "metrics":
        return {}
    return {name: Offered(name, value, "rageval_spec.metrics") for name, value in values.items()}


@pytest.mark.parametrize("section", registry.SECTIONS)
def test_every_file_of_a_section_is_a_word_with_a_plugin_of_its_kind(section: registry.Section) -> None:
    assert registry.words(section)
    for word in registry.builtin_words(section):
        assert issubclass(registry.load(section, word), BASES[section])


def test_an_unknown_word_is_reported_with_the_known_ones() -> None:
    known = ", ".join(registry.words("datasets"))
    with pytest.raises(UsageError, match=f"datasets: no 'sql'; the known words are {known}"):
        registry.load("datasets", "sql")


def test_a_distribution_adds_a_word(acme: ModuleType) -> None:
    acme.Tone = ErrorRate  # type: ignore[attr-defined]
    assert registry.load("metrics", "tone") is ErrorRate
    assert "tone" in registry.words("metrics")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("none", r"'acme_metrics:PLUGIN' is None, not a class; name a subclass of rageval_spec\.plugin\.Metric"),
        ("report", r"JsonReport is not a subclass of rageval_spec\.plugin\.Metric"),
        ("half", r"Half must define compute"),
        ("plain", r"Plain must define info"),
        ("absent", r"\('acme_metrics:Nothing'\) cannot be imported: AttributeError: .*no attribute 'Nothing'"),
        ("unknown", r"cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("module", r"'acme_metrics' does not name a class; write \[project.entry-points.\"rageval_spec.metrics\"\]"),
        ("bad", r"'acme metrics/tone.py' does not name a class; write .* bad = \"package.module:MetricClass\""),
        ("empty", r"'' does not name a class"),
    ],
)  # fmt: skip
def test_a_broken_entry_point_says_which_distribution_and_what_to_write(
    acme: ModuleType, word: str, message: str
) -> None:
    acme.PLUGIN = None  # type: ignore[attr-defined]
    acme.Page = registry.load("reports", "json")  # type: ignore[attr-defined]
    acme.Half, acme.Plain = Half, Plain  # type: ignore[attr-defined]
    version = distribution("pytest").version
    with pytest.raises(UsageError, match=rf"^metrics: the plugin '{word}' of pytest {version}.*{message}"):
        registry.load("metrics", word)


def test_a_plugin_that_ends_the_program_when_it_is_imported_is_named(
    acme: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_exit.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=r"the plugin 'exit' of pytest .*cannot be imported: SystemExit: 0"):
        registry.load("metrics", "exit")


def test_a_file_without_a_plugin_is_named(monkeypatch: pytest.MonkeyPatch, acme: ModuleType) -> None:
    module: Any = sys.modules["rageval_spec.metrics.error_rate"]
    monkeypatch.setattr(module, "PLUGIN", None)
    with pytest.raises(UsageError, match=r"^metrics/error_rate\.py: PLUGIN is None, not a class; name a subclass of"):
        registry.load("metrics", "error_rate")
    monkeypatch.delattr(module, "PLUGIN")
    with pytest.raises(UsageError, match=r"^metrics/error_rate\.py: PLUGIN is None"):
        registry.load("metrics", "error_rate")


def test_a_broken_plugin_is_never_an_internal_error(acme: ModuleType) -> None:
    acme.PLUGIN = None  # type: ignore[attr-defined]
    result = invoke("explain", "metrics.none")
    assert result.exit_code == 2
    assert "internal error" not in result.stderr
    assert "of pytest" in result.stderr
