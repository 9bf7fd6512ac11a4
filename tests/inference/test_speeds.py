from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from onnx_from_checkpoints.configuration import Configuration
from rageval_spec.inference.model_files import ModelFiles, find_source, locate
from rageval_spec.inference.speeds import ReadingSpeed, guess_speed, recall_speed
from rageval_spec.plugin import Context, Speed
from tests.onnx_from_checkpoints.folders import write_encoder

MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}


class Clock:
    """Says that each thing takes `step` seconds."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> ModelFiles:
    found = find_source(locate(str(write_encoder(tmp_path / "model")), tmp_path))
    assert found is not None
    return found


def make_pace(source: ModelFiles, threads: int = 1, precision: str = "fp32", **configuration: Any) -> ReadingSpeed:
    return ReadingSpeed(
        source, Configuration(encoder=MINILM, **configuration), precision, Context("m", threads=threads)
    )


def read(pace: ReadingSpeed, texts: list[str]) -> None:
    assert list(pace.keep(texts, iter(texts))) == texts


def test_the_guess_counts_two_operations_for_each_weight() -> None:
    weights = 6 * (4 * 384 * 384 + 2 * 384 * 1536)
    fp32, int8 = (guess_speed(MINILM, precision, 2) for precision in ("fp32", "int8"))
    assert fp32 == Speed(pytest.approx(2 * 50e9 / (2 * weights)))  # type: ignore[arg-type]
    assert fp32 is not None and int8 is not None and int8.tokens_per_second > fp32.tokens_per_second


def test_the_guess_reads_the_keys_of_other_architectures() -> None:
    t5 = {"d_model": 384, "num_layers": 6, "d_ff": 1536}
    distilbert = {"dim": 384, "n_layers": 6, "hidden_dim": 1536}
    assert guess_speed(t5, "fp32", 1) == guess_speed(distilbert, "fp32", 1) == guess_speed(MINILM, "fp32", 1)


@pytest.mark.parametrize("config", [{}, {"hidden_size": 384}, {"hidden_size": "384", "num_hidden_layers": 6}])
def test_without_sizes_there_is_no_guess(config: dict[str, Any]) -> None:
    assert guess_speed(config, "fp32", 1) is None


def test_what_took_long_enough_is_measured(source: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    pace = make_pace(source)
    guess = pace.find()
    assert guess is not None and guess.measured_on is None
    monkeypatch.setattr("rageval_spec.inference.speeds.time.perf_counter", Clock(4.0))
    read(pace, ["x" * 392, "y" * 392])  # 98 tokens and two special ones each
    assert pace.find() == Speed(50.0, f"{date.today():%Y-%m-%d}")
    assert make_pace(source).find() == pace.find()
    for other in (make_pace(source, threads=2), make_pace(source, precision="int8")):
        assert (other.find() or Speed(0, "")).measured_on is None


def test_what_took_a_moment_is_not_measured(source: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.inference.speeds.time.perf_counter", Clock(0.5))
    read(make_pace(source), ["x" * 400])
    assert recall_speed(make_pace(source).key) is None


def test_what_is_cut_off_is_not_counted(source: ModelFiles) -> None:
    pace = make_pace(source, max_length=10)
    assert [pace.count("x" * 400), pace.count(("x" * 4, "y" * 4)), pace.count("")] == [10, 5, 2]


def test_an_interrupted_measurement_is_not_kept(source: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.inference.speeds.time.perf_counter", Clock(4.0))

    def fail() -> Iterator[str]:
        yield "a"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(make_pace(source).keep(["x" * 400], fail()))
    assert recall_speed(make_pace(source).key) is None


@pytest.mark.parametrize(
    "speed",
    [
        '{"tokens_per_second": Infinity, "measured_on": "2026-01-01"}',
        '{"tokens_per_second": 7, "measured_on": "\\u001b[31mtoday"}',
        '{"tokens_per_second": 7, "measured_on": ""}',
        '{"tokens_per_second": 7}',
    ],
)
def test_what_no_measurement_writes_is_not_a_speed(cache: Path, speed: str) -> None:
    cache.mkdir()
    (cache / "speeds.json").write_text(f'{{"k": {speed}}}')
    assert recall_speed("k") is None


def test_sizes_beyond_any_model_give_no_guess() -> None:
    assert guess_speed({"hidden_size": 10**400, "num_hidden_layers": 2}, "fp32", 2) is None


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"k": 1}', '{"k": {"tokens_per_second": 0, "measured_on": "2026-01-01"}}', "[" * 9999]
)
def test_a_damaged_file_is_an_empty_one(cache: Path, content: str) -> None:
    cache.mkdir()
    (cache / "speeds.json").write_text(content)
    assert recall_speed("k") is None


def test_the_speeds_of_other_models_stay(cache: Path, source: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir()
    (cache / "speeds.json").write_text('{"k": {"tokens_per_second": 7, "measured_on": "2026-01-01"}}')
    monkeypatch.setattr("rageval_spec.inference.speeds.time.perf_counter", Clock(4.0))
    read(make_pace(source), ["x" * 400])
    assert recall_speed("k") == Speed(7.0, "2026-01-01")
    assert len(json.loads((cache / "speeds.json").read_bytes())) == 2
    assert [path.name for path in cache.iterdir()] == ["speeds.json"]


def test_a_cache_that_cannot_be_written_is_no_error(
    cache: Path, source: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("a file")
    monkeypatch.setattr("rageval_spec.inference.speeds.time.perf_counter", Clock(4.0))
    read(make_pace(source), ["x" * 400])
    assert recall_speed(make_pace(source).key) is None
