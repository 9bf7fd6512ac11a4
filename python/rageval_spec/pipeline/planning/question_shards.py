"""Divides an evaluation into shards: which questions each gets, and its share of the spec's limits.

`run --shard 3/8` evaluates a part of the questions of each dataset. Which part that is depends only on the ids and on
what keeps questions together, so every machine divides them alike.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from rageval_spec.diagnostics import Diagnostic, SpecError, make_visible
from rageval_spec.errors import UsageError
from rageval_spec.libraries import compile_later
from rageval_spec.pipeline.planning.question_selection import shuffle
from rageval_spec.plugin.budget import Shard
from rageval_spec.spec.blocks.spec_node import CallsNode, Spec
from rageval_spec.spec.text.places import KeyPath
from rageval_spec.wording import count_noun

MOST_SHARDS = 10_000
_SHARD = compile_later(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", re.ASCII)
_SEED = 0
"""That of the order in which questions are dealt, whatever the seed of the statistics."""


def read_shard(text: str) -> Shard:
    """Read `3/8`. Raises `UsageError` if that is no part of a whole; the message says what to write."""
    found = _SHARD.fullmatch(text)
    written = f"--shard {make_visible(text)}"
    if found is None:
        advice = "write the shard's number and how many there are, such as 3/8"
        raise UsageError(f"{written} is not a shard; {advice}")
    number, count = map(int, found.groups())
    if not 1 <= count <= MOST_SHARDS:
        raise UsageError(f"{written}: there can be 1 to {MOST_SHARDS:,} shards")
    if not 1 <= number <= count:
        raise UsageError(f"{written}: shards are numbered from 1; write 1/{count} to {count}/{count}")
    return Shard(number, count)


def share_limits(spec: Spec, shard: Shard) -> Spec:
    """The spec with a shard's share of the limits on calls, cost and calls at once.

    The shares of all shards add up to the limit; only of calls at once, each shard has at least one. `max_errors` stays
    what it is, for each shard. Raises `SpecError` if the spec has `stopping` or `repeat`, or fewer calls than shards.
    """
    if faults := [*_find_faults(spec, shard)]:
        raise SpecError(faults)
    limits, calls = spec.limits, spec.limits.call_limits
    systems, models = (None if most is None else shard.take(most) for most in (calls.systems, calls.models))
    shares = {
        "concurrency": shard.take_at_once(limits.concurrency),
        "max_calls": CallsNode(systems=systems, models=models),
        "max_cost": shard.take_rate(limits.max_cost),
    }
    return replace(spec, limits=limits.model_copy(update=shares))


def _find_faults(spec: Spec, shard: Shard) -> Iterator[Diagnostic]:
    if spec.stopping is not None or spec.repeat > 1:
        key = "repeat" if spec.stopping is None else "stopping"
        hint = f"no shard sees the questions of the others; remove '{key}', or run without --shard"
        yield spec.diagnose((key,), f"'{key}' cannot be combined with --shard", "wrong-shard", hint)
    written = spec.limits.max_calls
    limits = {"systems": written.systems, "models": written.models} if isinstance(written, CallsNode) else {"": written}
    for whom, most in limits.items():
        if most is not None and 0 < most < shard.total:
            path: KeyPath = ("limits", "max_calls", *([whom] if whom else []))
            message = f"{count_noun(most, 'call')} cannot be shared by {shard.total} shards"
            yield spec.diagnose(
                path, message, "wrong-shard", f"allow at least {shard.total} calls, or use fewer shards"
            )


def connect(keys: Mapping[str, Sequence[Hashable]]) -> list[list[str]]:
    """Gather the questions that share any key, and those that a third question connects.

    They are in the order of their first questions. Those without a key come last, each alone.
    """
    roots: dict[Hashable, Hashable] = {}

    def find(key: Hashable) -> Hashable:
        while roots.setdefault(key, key) != key:
            roots[key] = key = roots[roots[key]]
        return key

    for of in keys.values():
        for other in of[1:]:
            roots[find(other)] = find(of[0])
    units: dict[Hashable, list[str]] = {}
    alone: list[list[str]] = []
    for query_id, of in keys.items():
        if of:
            units.setdefault(find(of[0]), []).append(query_id)
        else:
            alone.append([query_id])
    return [*units.values(), *alone]


def deal(units: Sequence[Sequence[str]], count: int) -> list[frozenset[str]]:
    """The questions of each of `count` shards, as equal in number as units that stay together allow.

    The largest units are dealt first, each to a shard with the fewest questions; units of one size in an order that
    depends only on their ids, and in turn. With more shards than units, some are empty.
    """
    places = {query_id: place for place, query_id in enumerate(shuffle(chain(*units), _SEED))}
    order = sorted(units, key=lambda unit: (-len(unit), min(places[one] for one in unit)))
    waiting = [(0, number) for number in range(count)]
    shards: list[list[str]] = [[] for _ in range(count)]
    for unit in order:
        size, number = waiting[0]
        shards[number].extend(unit)
        heapq.heapreplace(waiting, (size + len(unit), number))
    return [frozenset(one) for one in shards]
