"""Posts many JSON bodies to an endpoint in parallel; the first that fails for good ends all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from rageval_spec.endpoints.endpoint import Endpoint
from rageval_spec.endpoints.failures import Failure
from rageval_spec.endpoints.pacing import StoppedError
from rageval_spec.endpoints.tries import BrokenDownError, Tries
from rageval_spec.errors import RagevalError

T = TypeVar("T")
R = TypeVar("R")

_PAUSE = 0.5
"""Seconds after which the waiting thread checks whether it was interrupted."""


class Batches:
    """Posts to an endpoint until `post_all` has ended, which closes the endpoint."""

    def __init__(self, endpoint: Endpoint, tries: Tries) -> None:
        """Keep the endpoint and its tries; post nothing yet."""
        self._endpoint = endpoint
        self._tries = tries

    def post(self, content: Mapping[str, Any], read: Callable[[Any], R]) -> R:
        """Post `content` and pass the reply's JSON to `read`, which raises `WrongReplyError` if it is not what was
        asked.

        Raises:
            RagevalError: the call failed, and a retry did not or would not help.
        """
        body = json.dumps(content).encode("ascii")

        def attempt() -> R:
            with self._endpoint.exchange(body) as reply:
                return self._endpoint.read(reply, read)

        try:
            return self._tries.make(attempt)
        except Failure as failure:
            raise RagevalError(self._endpoint.explain(failure, failure.tries)) from failure.__cause__
        except BrokenDownError as error:
            raise RagevalError(f"{self._endpoint.where}: {error}") from None
        except StoppedError:
            raise RagevalError(f"{self._endpoint.where}: stopped, because another call failed") from None

    def post_all(self, tasks: Iterable[T], answer: Callable[[T], R], concurrency: int) -> Iterator[R]:
        """Call `answer`, which posts, for each task, up to `concurrency` at once; yield each result as soon as it is
        ready.

        If one fails, no other begins; those under way are waited for and yielded, and then the first error is raised.
        """
        waiting = iter(tasks)
        running: set[Future[R]] = set()
        failure: BaseException | None = None
        executor = ThreadPoolExecutor(concurrency, thread_name_prefix=self._endpoint.where)
        try:
            while True:
                while failure is None and len(running) < 2 * concurrency:
                    try:
                        running.add(executor.submit(answer, next(waiting)))
                    except StopIteration:
                        break
                if not running:
                    break
                done, running = wait(running, timeout=_PAUSE, return_when=FIRST_COMPLETED)
                for future in done:
                    if error := future.exception():
                        failure = failure or error
                        self._tries.stop()
                    else:
                        yield future.result()
        finally:
            self._tries.stop()
            executor.shutdown(wait=False, cancel_futures=True)
            self._endpoint.close()
        if failure is not None:
            raise failure
