"""`ray`: computes partitions as tasks of a Ray cluster.

Each partition is a task. Workers need no disk in common with the command: what they need travels through Ray's object
store, and their results come back through it. Whatever costs money passes through a mailbox, an actor that stores
nothing, to the owner in the process of the command. There it is stored before a worker's call returns, so a task that
runs twice pays nothing twice.

A task whose worker or node is lost is started again. Ray's own retries are off, because what the lost worker held (the
claim on a question, a slot of an endpoint) must be freed first: other tasks can wait for it.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import pickle
import platform
import re
import socket
import sys
import time
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from threading import Condition, Thread
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import Field, field_validator

from rageval_spec.engines.shared.message_line import Message, MessageLine, Reply
from rageval_spec.engines.shared.owner import Owner
from rageval_spec.engines.shared.stand_ins import make_shared
from rageval_spec.errors import RagevalError, RagevalWarning, UsageError
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import Answer, Context, Engine, EngineNode, Partition, Shared

PATIENCE = 0.2
"""The longest time, in seconds, before an interrupt is noticed."""
CONNECT = 5.0
"""Seconds that an address has to accept a connection."""
MOST_LOSSES = 4
"""A partition whose worker was lost this often is not computed again: it probably kills its workers."""
PARTS_A_CPU = 4
"""Parts of a step for each CPU, so that all CPUs end at about the same time."""
FEWEST_QUESTIONS, MOST_QUESTIONS = 20, 20_000
"""How many questions a part has at least, and at most: what is computed again if its worker is lost."""
TELL_AFTER = 5.0
"""Seconds that nothing may begin before the user is told why."""
_POLL = 10.0
"""Seconds after which an actor's method returns without news."""
_DASHBOARD = 8265
_HEAD = {"node:__internal_head__": 0.001}


_ADDRESS = compile_later(r"([A-Za-z][A-Za-z0-9+.-]*://)?([^\s:/?#@]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,9}))?(/?)")


def _advise(found: re.Match[str] | None, address: str) -> str:
    """What to write instead; the port of Ray's dashboard, 8265, is that of no cluster."""
    if (word := address.strip().lower()) in ("local", "auto"):
        return f"write {word}"
    if found is None:
        return "write local, auto, ray://host:10001 or host:6379"
    is_client = found[1] is not None
    port = found[3] if found[3] is not None and 0 < int(found[3]) < 2**16 and int(found[3]) != _DASHBOARD else None
    return f"write {'ray://' * is_client}{found[2]}:{port or (10001 if is_client else 6379)}"


class RayNode(EngineNode):
    """Settings of the engine `ray`."""

    use: Literal["ray"] = Field(default="ray", description="A Ray cluster.")
    address: str = Field(
        default="local",
        min_length=1,
        description="Where the cluster is. local: start Ray on this machine, and stop it at the end; auto: the cluster "
        "that this machine belongs to, as in `ray job submit`; `ray://host:10001`: a cluster elsewhere, through its "
        "Ray Client server; `host:6379`: the address of the head node.",
    )
    cpus: int | None = Field(
        default=None, ge=1, description="How many CPUs to use at most. Default: all that the cluster has."
    )
    runtime_env: dict[str, Any] = Field(
        default={},
        description="What workers need, as Ray's `runtime_env` says it, such as `{pip: [rageval-spec]}`. Files that "
        "the spec names need not be listed.",
    )

    @field_validator("address")
    @classmethod
    def _check_address(cls, address: str) -> str:
        if address in ("local", "auto"):
            return address
        found = _ADDRESS.fullmatch(address.strip())
        if (
            found is None
            or found[1] not in (None, "ray://")
            or found[4]
            or address != address.strip()
            or not 0 < int(found[3] or 0) < 2**16
        ):
            raise ValueError(f"{address!r} is no address of a Ray cluster; {_advise(found, address)}")
        return address


class RayEngine(Engine[RayNode]):
    """Applies a function to partitions in tasks of Ray, each on one CPU."""

    shares_cores = False
    known_as = ("cluster", "kuberay", "anyscale")

    def __init__(self, node: RayNode, context: Context) -> None:
        """Keep the arguments. Ray is started or reached by `open`."""
        super().__init__(node, context)
        self._has_started = False
        self._post: _Post | None = None
        self._numbers = iter(range(sys.maxsize))

    def open(self, shared: Shared) -> None:
        _import_ray()
        self._connect()
        self._check_workers(_Wait(shared.tell))
        self._post = _Post(shared)
        budget = shared.budget
        is_limited = budget.max_calls is not None or budget.max_cost is not None or budget.max_errors is not None
        self.reach = partial(_reach, self._post.name, retry_failed=budget.retry_failed, is_limited=is_limited)

    def close(self, *, at_once: bool = False) -> None:
        """End the mailbox and the connection. At once, the cluster finds out by itself that this process has ended."""
        if self._post is not None:
            self._post.close()
            self._post = None
        if self._has_started:
            import ray

            self._has_started = False
            atexit.unregister(ray.shutdown) if at_once else ray.shutdown()

    def count_parts(self, kind: str, questions: int) -> int:
        if kind == "search":  # each part reads the whole corpus, and what all find is joined
            return self._count_cpus()
        even = min(PARTS_A_CPU * self._count_cpus(), questions // FEWEST_QUESTIONS)
        return max(1, even, questions // MOST_QUESTIONS)

    def map(self, function: Callable[[Partition], Answer], partitions: Iterable[Partition]) -> Iterator[Answer]:
        """Yield the function's results in the order of the partitions.

        Raises:
            RagevalError: a partition's worker was lost `MOST_LOSSES` times.
        """
        assert self._post is not None, "it is open"
        tasks = _Tasks(self._post, function, list(partitions), self._numbers)
        try:
            yield from tasks.run(self._count_at_once)
        finally:
            tasks.cancel()

    def _count_at_once(self) -> int:
        """How many tasks to submit: one more for each CPU, so that none waits for its next task."""
        cpus = self._count_cpus()
        return cpus if cpus == self.node.cpus else 2 * cpus

    def _count_cpus(self) -> int:
        import ray

        there = max(1, int(ray.cluster_resources().get("CPU", 1)))
        return there if self.node.cpus is None else min(there, self.node.cpus)

    def _connect(self) -> None:
        import ray

        address, environment = self.node.address, self.node.runtime_env or None
        if ray.is_initialized():
            return
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "runtime_env": environment}
        if address == "local":
            quiet |= {"num_cpus": self.node.cpus, "include_dashboard": False}
        elif address != "auto":
            self._check_address(address)
        if address.startswith("ray://"):
            quiet = {"runtime_env": environment, "logging_level": logging.ERROR}
        try:
            ray.init(address=address, **quiet)
        except Exception as error:
            raise self._explain(error) from error
        self._has_started = True

    def _check_address(self, address: str) -> None:
        """Ray itself tries for a minute or longer to reach an address where nothing listens."""
        parts = urlsplit(address if "://" in address else f"//{address}")
        try:
            host, port = parts.hostname or "", parts.port or (10001 if parts.scheme == "ray" else 6379)
            with socket.create_connection((host, port), CONNECT):
                pass
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise self._complain(f"nothing answers at {address}: {reason}; is the cluster running?") from error

    def _explain(self, error: Exception) -> UsageError:
        import ray

        text = " ".join(str(error).split())
        if "ersion mismatch" in text or "versions" in text:
            ours = f"Ray {ray.__version__}, Python {platform.python_version()}"
            hint = "use the same versions of both here and on the cluster"
            return self._complain(
                f"the cluster at {self.node.address} has other versions than here ({ours}): {text}; {hint}"
            )
        if self.node.address == "auto":
            hint = "start one with 'ray start --head', or write 'address: local'"
            return self._complain(f"this machine belongs to no running Ray cluster; {hint}")
        return self._complain(f"Ray at {self.node.address} cannot be used: {text}")

    def _check_workers(self, wait: _Wait) -> None:
        """Compute a first task, which shows whether the workers have this package."""
        import ray

        def look() -> str | None:
            try:
                from importlib.metadata import version

                import rageval_spec  # noqa: F401 - whether it can be imported

                return version("rageval-spec")
            except ImportError:
                return None

        first = ray.remote(num_cpus=1)(look).remote()
        while not ray.wait([first], timeout=PATIENCE)[0]:
            wait.go_on()  # it can take long to start a worker, and an interrupt is noticed between two waits
        found, ours = ray.get(first), _find_version()
        if found == ours:
            return
        has = "have no rageval-spec" if found is None else f"have rageval-spec {found}, and this is {ours}"
        hint = f"install rageval-spec=={ours} in their image, or write 'runtime_env: {{pip: [rageval-spec=={ours}]}}'"
        raise self._complain(f"the workers at {self.node.address} {has}; {hint}")

    def _complain(self, message: str) -> UsageError:
        return UsageError(f"engine (use: ray): {message}")


def _import_ray() -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # Under `uv run`, Ray would send the current folder to each worker and start it by `uv run` there, which builds the
    # environment again and takes minutes.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    try:
        import ray  # noqa: F401 - whether it can be imported
    except ImportError as error:
        message = "engine: 'use: ray' needs Ray; install it with: pip install 'rageval-spec[ray]'"
        raise UsageError(message) from error


@cache
def _find_version() -> str:
    from importlib.metadata import version

    return version("rageval-spec")


class _Wait:
    """Tells the user, once, why nothing has begun for `TELL_AFTER` seconds."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._until = time.monotonic() + TELL_AFTER
        self._is_told = False

    def go_on(self) -> None:
        """Say what is awaited, when it is time."""
        import ray

        if self._is_told or time.monotonic() < self._until:
            return
        self._is_told = True
        is_busy = ray.available_resources().get("CPU", 0.0) < 1
        self._tell(f"waiting for {'a free CPU' if is_busy else 'a worker'} of the Ray cluster{_BUSY * is_busy}")


_BUSY = "; other programs use all of them"


class _Tasks:
    """The tasks of one `map`."""

    def __init__(
        self, post: _Post, function: Callable[[Any], Any], partitions: Sequence[Any], numbers: Iterator[int]
    ) -> None:
        import ray

        self._post = post
        self._partitions = partitions
        self._numbers = numbers
        # As bytes: Ray holds a lock while it unpickles arguments, and this function asks the owner then. Ray Client
        # would unpickle arguments and results on its server, too.
        self._function = ray.put(ray.cloudpickle.dumps(function)) if partitions else None
        self._compute = ray.remote(num_cpus=1, max_retries=0)(_compute)
        self._running: dict[Any, tuple[int, int]] = {}
        self._losses = [0] * len(partitions)

    def run(self, count_at_once: Callable[[], int]) -> Iterator[Any]:
        import ray

        waiting, done = deque(range(len(self._partitions))), dict[int, Any]()
        wait = _Wait(self._post.tell)
        for place in range(len(self._partitions)):
            while place not in done:
                for _ in range(min(len(waiting), count_at_once() - len(self._running))):
                    self._submit(waiting.popleft())
                if (failure := self._post.failure) is not None:
                    raise RagevalError(f"engine: the messages of Ray's workers are lost: {failure}") from failure
                ready, _ = ray.wait([*self._running], num_returns=1, timeout=PATIENCE)
                if not done and not any(self._post.owner.has_begun(number) for _, number in self._running.values()):
                    wait.go_on()
                for ref in ready:
                    found, number = self._running.pop(ref)
                    try:
                        done[found] = self._fetch(ref)
                    except _LostError as error:
                        self._post.owner.lose_task(number)
                        self._count_loss(found, error)
                        waiting.appendleft(found)
            yield done.pop(place)

    def cancel(self) -> None:
        import ray

        for ref in self._running:
            with suppress(Exception):
                ray.cancel(ref, force=True)

    def _submit(self, place: int) -> None:
        number = next(self._numbers)
        ref = self._compute.remote(
            self._function,
            pickle.dumps(self._partitions[place]),
            number,
            self._post.mailbox,
            self._post.name,
            _find_version(),
        )
        self._running[ref] = place, number

    def _fetch(self, ref: Any) -> Any:
        import ray
        from ray import exceptions

        try:
            content = ray.get(ref)
        except exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else RagevalError(str(error)) from error
        except exceptions.RayError as error:
            raise _LostError(" ".join(str(error).split())) from error
        found, told = pickle.loads(content)
        for category, message in told:
            warnings.warn(message, category, 2)
        return found

    def _count_loss(self, place: int, error: _LostError) -> None:
        self._losses[place] += 1
        if self._losses[place] == MOST_LOSSES:
            where = f"part {place + 1} of {len(self._partitions)}"
            raise RagevalError(f"engine: Ray lost the worker of {where} {MOST_LOSSES} times: {error}") from error


class _LostError(Exception):
    """A task's worker or its result was lost."""


class _Post:
    """The mailbox, and the threads that carry messages between it and the owner."""

    def __init__(self, shared: Shared) -> None:
        import ray

        make = ray.remote(num_cpus=0, resources=_HEAD, max_concurrency=10_000)(Mailbox)
        self.mailbox = make.remote()
        self.name = uuid4().hex
        self.owner = Owner(shared, self._answer, _put)
        self.tell = shared.tell
        self._replies: dict[str, list[Reply]] = defaultdict(list)
        self._changed = Condition()
        self._is_closed = False
        self.failure: Exception | None = None
        for work in (self._collect, self._deliver):
            Thread(target=work, name=f"post-{work.__name__}", daemon=True).start()

    def close(self) -> None:
        import ray

        self.owner.stop()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        with suppress(Exception):
            ray.kill(self.mailbox)

    def _answer(self, worker: str, reply: Reply) -> None:
        with self._changed:
            self._replies[worker].append(reply)
            self._changed.notify_all()

    @contextmanager
    def _noticed(self) -> Iterator[None]:
        """Keep what ends a thread before the evaluation has ended: workers would wait for ever."""
        try:
            yield
        except Exception as error:
            if not self._is_closed:
                self.failure = error

    def _collect(self) -> None:
        import ray

        with self._noticed():
            while not self._is_closed:
                for worker, messages in ray.get(self.mailbox.collect.remote()):
                    self.owner.handle(worker, messages)

    def _deliver(self) -> None:
        import ray

        with self._noticed():
            while not self._is_closed:
                with self._changed:
                    while not self._replies and not self._is_closed:
                        self._changed.wait()
                    replies, self._replies = self._replies, defaultdict(list)
                ray.get(self.mailbox.answer.remote(dict(replies)))


class Mailbox:
    """An actor that holds messages until they are collected. It stores nothing."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._messages: list[tuple[str, Sequence[Message]]] = []
        self._arrived = asyncio.Event()
        self._replies: dict[str, list[Reply]] = defaultdict(list)
        self._answered: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def send(self, worker: str, messages: Sequence[Message]) -> None:
        """Hold a worker's messages for the owner."""
        self._messages.append((worker, messages))
        self._arrived.set()

    async def collect(self) -> list[tuple[str, Sequence[Message]]]:
        """All messages to the owner, as soon as there is one."""
        await _wait_for(self._arrived)
        self._arrived.clear()
        messages, self._messages = self._messages, []
        return messages

    async def answer(self, replies: dict[str, list[Reply]]) -> None:
        """Hold the owner's answers for workers."""
        for worker, some in replies.items():
            self._replies[worker] += some
            self._answered[worker].set()

    async def receive(self, worker: str) -> list[Reply]:
        """All answers to a worker, as soon as there is one."""
        await _wait_for(self._answered[worker])
        self._answered[worker].clear()
        return self._replies.pop(worker, [])


async def _wait_for(event: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), _POLL)


_LINES: dict[str, MessageLine] = {}
"""The lines of this worker, by the name of the mailbox."""


def _open_line(mailbox: Any, name: str) -> MessageLine:
    import ray

    if name not in _LINES:
        worker = f"{platform.node()}-{os.getpid()}-{uuid4().hex[:8]}"
        _LINES[name] = MessageLine(
            lambda messages: ray.get(mailbox.send.remote(worker, messages)),
            lambda: ray.get(mailbox.receive.remote(worker)),
        )
    return _LINES[name]


def _reach(mailbox: str, *, retry_failed: bool, is_limited: bool) -> Shared:
    return make_shared(_LINES[mailbox], _open, retry_failed=retry_failed, is_limited=is_limited)


def _put(path: Path) -> list[Any]:
    """A file in the object store, put there once. In a list, a reference is passed on instead of its value."""
    import ray

    return [ray.put(path.read_bytes())]


def _open(put: list[Any]) -> bytes:
    import ray

    content: bytes = ray.get(put[0])
    return content


def _compute(function: bytes, partition: bytes, number: int, mailbox: Any, name: str, version: str) -> bytes:
    """A partition's result, with the warnings that the user should see. All that was counted has arrived by then."""
    if version != _find_version():
        where = f"the worker on {platform.node()}"
        raise UsageError(f"engine: {where} has rageval-spec {_find_version()}, and the command {version}")
    line = _open_line(mailbox, name)
    line.post("begin_task", number)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RagevalWarning)
        found = pickle.loads(function)(pickle.loads(partition))
    line.ask("flush")
    told = [(one.category, str(one.message)) for one in caught if issubclass(one.category, RagevalWarning)]
    return pickle.dumps((found, told))


PLUGIN = RayEngine
