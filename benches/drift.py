"""False alarms of quiet quarters, and how long a fall of a mean takes to be seen.

    python benches/drift.py [--quarters 1000] [--falls 300] [--peers PYTHON] [--data ../shared/data] > benches/drift.md

The values are those that people gave (see `benches/intervals.py`), drawn again: 200 judged answers a day, most of them
by day and on weekdays. By night and at weekends more answers are bad: the mean moves by 0.03 up and down with the hour,
and by 0.03 at weekends, and each hour of the week differs a little. A fall makes more answers bad, too. `detector` is
this package with steps of 0.05, 0.10 and 0.15, one alert, one false alarm in 90 days, and a baseline of four weeks.

- `CUSUM` is told the true mean of each hour and the size of the fall; its bound gives the same number of false alarms
  on the same quiet quarters as `detector` has.
- `day below` alarms when a day's mean is more than 0.05 below the baseline's.
- ADWIN and Page-Hinkley are those of river with their default settings, on the first 100 streams.
- `glide` is the monitor of glide-py by days at its default confidence, with the baseline's mean less 0.05 as threshold.

`--peers` names the Python of an environment with river and glide-py. Exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from machine import name_processor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

HERE = Path(__file__).resolve().parent
PER_DAY, DAYS, WEEK = 200, 90, 1400
STEPS = {"low": 0.05, "medium": 0.10, "high": 0.15}
FALLS = (0.05, 0.10, 0.15)
LEAD = 2 * WEEK
PEER_STREAMS = 100
MOST_DAYS = {0.05: 4.0, 0.10: 1.0}
MOST_DEVIATION, MOST_OF_CUSUM, MOST_OF_STATED = 0.3, 1.5, 1.1
LEVELS = np.linspace(0.5, 60, 120)
"""Bounds that CUSUM is tried with, in nats of a normal distribution."""
HEADS = (
    *("values", "mean", "sd", "detector", "upper 95 % bound", "CUSUM", "detector / CUSUM"),
    *("day below", "ADWIN", "Page-Hinkley", "glide"),
)


class Streams(NamedTuple):
    """Values and the number of the hour of each, of shape (streams, time), and the true mean of each hour."""

    values: Floats
    hours: Ints
    means: Floats


class Traffic:
    """Draws streams of the values of one set."""

    def __init__(self, values: Floats, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.values = np.sort(values)
        self.bad = self.values[: len(values) // 3]
        self.gap = float(self.values.mean() - self.bad.mean())
        hour = np.arange(24)
        shares = np.tile(1 + 0.8 * np.sin((hour - 9) / 24 * 2 * np.pi), 7)
        shares[5 * 24 :] *= 0.5
        self.shares = shares / shares.sum()
        season = np.tile(0.03 * np.cos((hour - 14) / 24 * 2 * np.pi), 7)
        season[5 * 24 :] -= 0.03
        season += self.random.normal(0, 0.0075, 168)
        self.season = season - (self.shares * season).sum()

    def draw(self, streams: int, weeks: int, fall: float = 0.0, first: int = 0) -> Streams:
        drawn = [np.sort(self.random.choice(168, (streams, WEEK), p=self.shares), axis=1) for _ in range(weeks)]
        hours = np.concatenate([own + 168 * (first + week) for week, own in enumerate(drawn)], axis=1)
        share = np.clip(0.15 + (fall - self.season[hours % 168]) / self.gap, 0, 1)
        is_bad = self.random.random(hours.shape) < share
        values = np.where(
            is_bad, self.random.choice(self.bad, hours.shape), self.random.choice(self.values, hours.shape)
        )
        return Streams(values, hours, self.values.mean() - share * self.gap)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quarters", type=int, default=1000)
    parser.add_argument("--falls", type=int, default=300)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge:
        judge_peers(options.judge)
        return
    begun, missed = time.perf_counter(), list[str]()
    print("# False alarms, and days until a fall is seen\n")
    quarters = f"{options.quarters} quiet quarters of {DAYS} days of each set"
    print(f"Made by `python benches/drift.py` on {name_processor()}: {quarters}, and {options.falls} streams for each")
    print(
        "fall. A cell has the mean number of false alarms in a quarter and, after a semicolon, the median days until a"
    )
    print("fall of 0.05, 0.10 and 0.15 is seen. CUSUM has as many false alarms as the detector.\n")
    print("| " + " | ".join(HEADS) + " |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name, values in list_sets(options.data):
        print(measure(name, values, options, missed), flush=True)
    print(f"\n{describe_peers(options.peers)}\n")
    print("The detector with a baseline of a single week, and with one of four weeks that knows nothing of hours:\n")
    print("| values | one week | without hours |\n|---|---|---|")
    for name, values in list_sets(options.data):
        print(measure_short(name, values, options), flush=True)
    print()
    print("Targets missed: " + ("; ".join(missed) if missed else "none") + ".")
    print(f"{time.perf_counter() - begun:.0f} s", file=sys.stderr)
    sys.exit(bool(missed))


def list_sets(data: Path) -> list[tuple[str, Floats]]:
    from intervals import read_labels
    from stopping import list_judged

    found = [(name, np.array(values, dtype=np.float64)) for name, values in read_labels(data) if values]
    return found + [(name, values) for name, values in list_judged(data) if name == "covered units"]


def measure(name: str, values: Floats, options: argparse.Namespace, missed: list[str]) -> str:
    """The row of a set of values."""
    traffic = Traffic(values, seed=11)
    quarters, falls = options.quarters, options.falls
    base, quiet = traffic.draw(quarters, 4), cut(traffic.draw(quarters, 13), PER_DAY * DAYS)
    moved = [join(cut(traffic.draw(falls, 2), LEAD), traffic.draw(falls, 4, fall, 2), traffic) for fall in FALLS]
    deviation = float(quiet.values.std())
    own = [find_detector(base, quiet), *(find_detector(base, one) for one in moved)]
    rate, delays = count(own[0]), [find_delay(one) for one in own[1:]]
    upper = float(rate.mean() + 1.645 * rate.std() / math.sqrt(len(rate)))
    cusum = [
        find_cusum_delay(quiet, one, fall, deviation, float(rate.mean()))
        for one, fall in zip(moved, FALLS, strict=True)
    ]
    ratios = [own_delay / other for own_delay, other in zip(delays, cusum, strict=True)]
    if upper > MOST_OF_STATED:
        missed.append(f"{name}: {upper:.2f} false alarms at most")
    for fall, delay, ratio in zip(FALLS, delays, ratios, strict=True):
        is_stated = deviation <= MOST_DEVIATION and fall in MOST_DAYS
        if (delay > MOST_DAYS[fall]) if is_stated else (ratio > MOST_OF_CUSUM):
            missed.append(f"{name}, a fall of {fall}: {delay:.2f} days, {ratio:.2f} times CUSUM's")
    days = [find_days_below(base, one) for one in (quiet, *moved)]
    peers = ask_peers(options.peers, base, [quiet, *moved]) if options.peers else {}
    cells = [
        name,
        f"{quiet.values.mean():.2f}",
        f"{deviation:.2f}",
        show(rate.mean(), delays),
        f"{upper:.2f}",
        ", ".join(f"{delay:.2f}" for delay in cusum),
        ", ".join(f"{ratio:.2f}" for ratio in ratios),
        show(count(days[0]).mean(), [find_delay(one) for one in days[1:]]),
        *(show(*peers[peer]) if peer in peers else "skipped" for peer in ("ADWIN", "Page-Hinkley", "glide")),
    ]
    return f"| {' | '.join(cells)} |"


def measure_short(name: str, values: Floats, options: argparse.Namespace) -> str:
    """The row of a set of values for baselines that know less; as many quarters as streams for each fall."""
    traffic, cells = Traffic(values, seed=12), [name]
    falls = options.falls
    quiet = cut(traffic.draw(falls, 13), PER_DAY * DAYS)
    moved = [join(cut(traffic.draw(falls, 2), LEAD), traffic.draw(falls, 4, fall, 2), traffic) for fall in FALLS]
    for weeks, is_seasonal in ((1, True), (4, False)):
        base = traffic.draw(falls, weeks)
        first, *rest = (find_detector(base, one, is_seasonal=is_seasonal) for one in (quiet, *moved))
        cells.append(show(count(first).mean(), [find_delay(one) for one in rest]))
    return f"| {' | '.join(cells)} |"


def show(rate: float, delays: list[float]) -> str:
    return f"{rate:.2f}; " + ", ".join("not seen" if math.isinf(delay) else f"{delay:.2f}" for delay in delays)


def cut(streams: Streams, length: int) -> Streams:
    return Streams(streams.values[:, :length], streams.hours[:, :length], streams.means[:, :length])


def join(before: Streams, after: Streams, traffic: Traffic) -> Streams:
    """Quiet weeks, then a fall that begins at a random place of the week of each stream, so that none is favoured."""
    rows, length = after.values.shape
    places = traffic.random.integers(WEEK, size=(rows, 1)) + np.arange(length - WEEK)
    later = Streams(
        np.take_along_axis(after.values, places, axis=1),
        np.take_along_axis(after.hours, places, axis=1),
        np.take_along_axis(after.means, places, axis=1),
    )
    return Streams(
        np.concatenate([before.values, later.values], axis=1),
        np.concatenate([before.hours, later.hours], axis=1),
        np.concatenate([before.means, later.means], axis=1),
    )


def find_detector(base: Streams, streams: Streams, *, is_seasonal: bool = True) -> Bools:
    from rageval_spec.statistics.change_detection import Detector, fit_baseline, replay, share_false_alarms

    alpha = share_false_alarms(1, DAYS, [PER_DAY])[0]
    rows = range(len(streams.values))
    baselines = [fit_baseline(base.values[row], hours=base.hours[row] if is_seasonal else None) for row in rows]
    detectors = [Detector(one, STEPS, alpha, per_week=float(WEEK)) for one in baselines]
    return replay(detectors, streams.values, hours=streams.hours if is_seasonal else None)


def count(alarms: Bools) -> Floats:
    counts: Floats = alarms.sum(axis=1).astype(np.float64)
    return counts


def find_delay(alarms: Bools) -> float:
    """The median days from the fall to the first alarm after it; infinite if most falls are not seen."""
    after = alarms[:, LEAD:]
    found = np.where(after.any(axis=1), after.argmax(axis=1) + 1.0, np.inf)
    return float(np.median(found)) / PER_DAY


def find_cusum_delay(quiet: Streams, moved: Streams, fall: float, deviation: float, rate: float) -> float:
    """The median days that CUSUM needs, at the bound at which it has this many false alarms in a quiet quarter."""
    counts = np.zeros(len(LEVELS))
    for _, alarms in walk_cusum(quiet, quiet.means, fall, deviation, LEVELS):
        counts += alarms.sum(axis=0)
    per_quarter = counts / len(quiet.values)
    level = LEVELS[int(np.argmax(per_quarter <= max(rate, 1 / len(quiet.values))))]
    truth = moved.means.copy()
    truth[:, LEAD:] += fall
    first = np.full(len(moved.values), np.inf)
    for at, alarms in walk_cusum(moved, truth, fall, deviation, np.array([level])):
        if at >= LEAD:
            first = np.where(alarms[:, 0] & np.isinf(first), at - LEAD + 1.0, first)
    return float(np.median(first)) / PER_DAY


def walk_cusum(
    streams: Streams, means: Floats, fall: float, deviation: float, levels: Floats
) -> Iterator[tuple[int, Bools]]:
    """Each time, and which streams alarm at each bound; a sum begins anew after its alarm."""
    gains = fall / deviation**2 * (means - streams.values - fall / 2)
    sums = np.zeros((len(gains), len(levels)))
    for time_ in range(gains.shape[1]):
        sums = np.maximum(sums, 0.0) + gains[:, time_, None]
        alarms = sums >= levels
        if alarms.any():
            sums[alarms] = 0.0
            yield time_, alarms


def find_days_below(base: Streams, streams: Streams) -> Bools:
    """Alarms at the end of days whose mean is low, where the day before was not."""
    rows = len(streams.values)
    days = streams.values.shape[1] // PER_DAY
    means = streams.values[:, : days * PER_DAY].reshape(rows, days, PER_DAY).mean(axis=2)
    is_low = means < base.values[:rows].mean(axis=1)[:, None] - STEPS["low"]
    alarms = np.zeros(streams.values.shape, dtype=bool)
    alarms[:, PER_DAY - 1 : days * PER_DAY : PER_DAY] = is_low & ~np.pad(is_low, ((0, 0), (1, 0)))[:, :-1]
    return alarms


def ask_peers(python: Path, base: Streams, streams: list[Streams]) -> dict[str, tuple[float, list[float]]]:
    """What peers find on the first streams, in their own environment: false alarms, and days for each fall."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "streams.npz"
        sets = {f"set{place}": one.values[:PEER_STREAMS] for place, one in enumerate(streams)}
        arrays: dict[str, Any] = {"base": base.values[:PEER_STREAMS].mean(axis=1), **sets}
        np.savez(path, **arrays)
        subprocess.run([python, __file__, "--judge", path], check=True)
        with np.load(path.with_name("alarms.npz")) as found:
            names = sorted({key.split("|")[0] for key in found.files})
            kept = {name: [found[f"{name}|{place}"] for place in range(len(streams))] for name in names}
    return {name: (float(count(of[0]).mean()), [find_delay(one) for one in of[1:]]) for name, of in kept.items()}


def judge_peers(path: Path) -> None:
    """Runs in the environment of the peers, and writes where each of them alarms."""
    peers: dict[str, Callable[[Floats, float], Bools]] = {
        "ADWIN": run_adwin,
        "Page-Hinkley": run_page,
        "glide": run_glide,
    }
    with np.load(path) as given:
        base, sets = given["base"], [given[f"set{place}"] for place in range(len(given.files) - 1)]
    found: dict[str, Any] = {
        f"{name}|{place}": np.array([run(row, float(level)) for row, level in zip(rows, base, strict=False)])
        for name, run in peers.items()
        for place, rows in enumerate(sets)
    }
    np.savez(path.with_name("alarms.npz"), **found)


def run_adwin(values: Floats, _level: float) -> Bools:
    from river.drift import ADWIN

    return run_river(ADWIN(), values)


def run_page(values: Floats, _level: float) -> Bools:
    from river.drift import PageHinkley

    return run_river(PageHinkley(mode="down"), values)


def run_river(detector: Any, values: Floats) -> Bools:
    alarms = np.zeros(len(values), dtype=bool)
    for place, value in enumerate(values.tolist()):
        detector.update(value)
        alarms[place] = detector.drift_detected
    return alarms


def run_glide(values: Floats, level: float) -> Bools:
    """The first alarm of each day on which the monitor alarms and did not the day before."""
    from glide.monitors import AsymptoticClassicalRM

    days = len(values) // PER_DAY
    own = values[: days * PER_DAY]
    result = AsymptoticClassicalRM().detect(own, np.repeat(np.arange(days), PER_DAY), True, level - STEPS["low"])
    low = np.asarray(result.alarms)
    alarms = np.zeros(len(values), dtype=bool)
    alarms[PER_DAY - 1 : days * PER_DAY : PER_DAY] = low & ~np.pad(low, (1, 0))[:-1]
    return alarms


def describe_peers(python: Path | None) -> str:
    if python is None:
        return "The peers were skipped: no `--peers` named an environment with river and glide-py."
    code = "from importlib.metadata import version as v; print('river', v('river') + ', glide-py', v('glide-py'))"
    return (
        f"The peers: {subprocess.run([python, '-c', code], check=True, capture_output=True, text=True).stdout.strip()}."
    )


if __name__ == "__main__":
    main()
