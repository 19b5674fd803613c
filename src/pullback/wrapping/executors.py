"""Where calls run: one after another here, or on any `concurrent.futures.Executor`.

Results come in the order of the calls, each once. A worker that dies takes its unfinished calls with it:
those, and no others, are sent again, to a fresh pool if the old one is broken. Only so many calls are under
way at a time that a lost pool costs little and a long stream needs no memory. Nobody waits for ever: neither
for a worker that hangs, if there is a limit, nor for workers that are gone.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pullback.errors import DefinitionError, ExternalError
from pullback.wrapping.task import Failure, Job, Task

DEATHS = 3  # of workers, that one call may see before it is given up
_TICKETS = itertools.count()  # makes every call another one, for executors that know equal calls by content
_UNBOUNDED = 1024  # calls under way where the number of workers is not known
_GLANCE = 1.0  # seconds between two looks at the workers, while nothing comes
_ON_THE_WAY = 30.0  # seconds beyond its limit that a call may take where it is waited for: a worker starts
_RETURN = 60.0  # seconds that workers who are gone are given to come back


class Pool:
    """An executor, or what makes one; replaced when it breaks."""

    def __init__(self, given: Any, where: str) -> None:
        if given is not None and not hasattr(given, "submit") and not callable(given):
            raise DefinitionError.about(
                where,
                found=f"executor={given!r}"[:80],
                expected="a concurrent.futures.Executor, or a function that makes one",
                fix="executor=ThreadPoolExecutor(4)",
            )
        self.given = given
        self.met = False  # whether a worker has been seen
        self.deserted = False  # whether they have been given up
        self._current: Any = None
        self._lock = threading.Lock()

    def current(self, broken: Any = None) -> Any:
        """Give the executor; a fresh one if it is the one that broke."""
        with self._lock:
            if self._current is None:
                self._current = self.given if hasattr(self.given, "submit") else self.given()
            if self._current is broken:
                fresh = _again(broken) if hasattr(self.given, "submit") else self.given()
                if fresh is not None:
                    broken.shutdown(wait=False)
                    self._current = fresh
            return self._current

    def __getstate__(self) -> dict[str, Any]:
        return {}  # in another process there is no executor: calls run there, one after another

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.given = self._current = None
        self.met = self.deserted = False
        self._lock = threading.Lock()


def _again(executor: Any) -> Any:
    """Make a process pool like one that broke; leave other executors, which mend themselves."""
    if not isinstance(executor, concurrent.futures.ProcessPoolExecutor):
        return None
    return type(executor)(
        getattr(executor, "_max_workers", None),
        mp_context=getattr(executor, "_mp_context", None),
        initializer=getattr(executor, "_initializer", None),
        initargs=getattr(executor, "_initargs", ()),
    )


class Sent:
    """One call under way."""

    __slots__ = ("deaths", "executor", "future", "job", "tries")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.future: Any = None
        self.executor: Any = None
        self.tries = 0  # times that the function failed
        self.deaths = 0  # times that a worker did

    @property
    def named(self) -> str:
        """Name it in an error, where it has a label."""
        return f", {self.job.label}" if self.job.label else ""


class Runner:
    """Run many calls of a function."""

    def __init__(self, pool: Pool, retries: int, where: str) -> None:
        self.pool = pool
        self.retries = retries
        self.where = where
        self._heard = 0.0  # when a call was last done

    def one(self, task: Task, job: Job, fail: Callable[[Failure, Job], Exception]) -> Any:
        """Run one call."""
        if self.pool.given is not None:
            return next(self.stream(task, [job], fail))
        result = task(job.args, job.kwargs)
        return result if type(result) is not Failure else self.again(result, task, job, fail)

    def again(self, failure: Failure, task: Task, job: Job, fail: Callable[[Failure, Job], Exception]) -> Any:
        """Try a call here that failed once, as often as was asked for."""
        for _ in range(0 if failure.final else self.retries):
            result = task(job.args, job.kwargs)
            if type(result) is not Failure:
                return result
            failure = result
        raise fail(failure, job) from failure.error

    def stream(
        self, task: Task, jobs: Iterable[Job], fail: Callable[[Failure, Job], Exception]
    ) -> Iterator[Any]:
        """Run calls as they are asked for; give results in order. `fail` words the error of a failed one."""
        if self.pool.given is None:
            for job in jobs:
                yield self.one(task, job, fail)
            return
        waiting: deque[Sent] = deque()
        coming = iter(jobs)
        careful = False  # one at a time, so that a call which kills its worker is known
        try:
            while True:
                executor = self.pool.current()
                while len(waiting) < _window(executor):
                    following = next(coming, None)
                    if following is None:
                        break
                    waiting.append(Sent(following))
                if not waiting:
                    return
                for sent in (waiting[0],) if careful else waiting:
                    if sent.future is None:
                        self._send(task, sent)
                head = waiting[0]
                try:
                    result = self._result(head, task.limit)
                except ExternalError:
                    raise
                except Exception as error:
                    self._lost(head, error)
                    careful = careful or head.deaths > 1
                    continue
                if type(result) is Failure and head.tries < self.retries and not result.final:
                    head.tries += 1
                    head.future = None
                    continue
                waiting.popleft()
                if type(result) is Failure:
                    raise fail(result, head.job) from result.error
                yield result
        finally:
            for sent in waiting:
                if sent.future is not None:
                    sent.future.cancel()

    def _send(self, task: Task, sent: Sent) -> None:
        executor = self.pool.current()
        task.by_reference = isinstance(executor, concurrent.futures.ProcessPoolExecutor)
        call = task, sent.job.args, sent.job.kwargs, next(_TICKETS)
        try:
            sent.future = executor.submit(*call)
        except concurrent.futures.BrokenExecutor:  # it broke since the last call
            executor = self.pool.current(broken=executor)
            sent.future = executor.submit(*call)
        sent.executor = executor
        sent.future.add_done_callback(self._hear)

    def _hear(self, future: Any) -> None:
        if not future.cancelled():
            self._heard = time.monotonic()
            self.pool.met = True

    def _result(self, sent: Sent, limit: float | None) -> Any:
        """Wait for a call: no longer than it may take, nor for workers who do not come back."""
        begun = time.monotonic()
        gone: float | None = None  # since when there has been no worker
        if self.pool.deserted and workers(sent.executor) == 0:
            raise self._alone("no worker is left to run it", sent)
        while True:
            try:
                return sent.future.result(_GLANCE)
            except concurrent.futures.TimeoutError:
                if sent.future.done():  # it came meanwhile, or is the executor's own
                    return sent.future.result()
            now = time.monotonic()
            count = workers(sent.executor)
            if count == 0:
                gone = now if gone is None else gone
                known = limit is not None or self.pool.met  # else the first worker may be a long way off
                if known and now - gone >= max(limit or 0.0, _RETURN):
                    self.pool.deserted = True
                    raise self._alone("every worker of the executor is gone while it is waited for", sent)
            else:
                gone = None
                self.pool.met = self.pool.met or bool(count)
                self.pool.deserted = False
            if isinstance(sent.executor, _QUEUES) and not sent.future.running():
                begun = now  # it stands in a queue
            if limit is not None and now - max(begun, self._heard) > limit + _ON_THE_WAY:
                sent.future.cancel()
                return Failure("TimeoutError", f"no result after {limit:g} s", "", None, timed_out=True)

    def _alone(self, found: str, sent: Sent) -> ExternalError:
        return self._died(found + sent.named, "an executor with workers", "start workers again; ")

    def _died(self, found: str, expected: str, fix: str = "") -> ExternalError:
        return ExternalError.about(
            self.where,
            found=found,
            expected=expected,
            why="a worker dies of too little memory, a crash in C code, or a machine that went away",
            fix=f"{fix}run this call alone, outside of the executor, to see the crash",
        )

    def _lost(self, sent: Sent, error: Exception) -> None:
        """Prepare a call whose worker died to be sent again; give up after some deaths."""
        if isinstance(error, (pickle.PicklingError, TypeError, AttributeError, ImportError, DefinitionError)):
            if isinstance(error, DefinitionError):
                raise error
            raise DefinitionError.about(
                self.where,
                found=f"it cannot be sent to the executor's workers: {type(error).__name__}: {error}",
                expected="a function, arguments and results that can be pickled",
                fix="define the function at the top of a module that the workers can import",
            ) from error
        sent.deaths += 1 + getattr(error, "allowed_failures", 0)  # Dask has sent it again itself
        if sent.deaths > max(DEATHS, self.retries):
            found = f"the worker that ran it died {sent.deaths} times{sent.named} ({type(error).__name__})"
            raise self._died(found, "a result") from error
        if isinstance(error, concurrent.futures.BrokenExecutor):
            self.pool.current(broken=sent.executor)
        sent.future = None


_QUEUES = (concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor)


def workers(executor: Any) -> int | None:
    """Count the workers of an executor of Dask; None for one that cannot tell, or mends itself."""
    client: Any = getattr(executor, "_client", None)
    return len(client.nthreads()) if hasattr(client, "nthreads") else None


def _window(executor: Any) -> int:
    workers = getattr(executor, "_max_workers", None)
    return 2 * workers + 2 if isinstance(workers, int) else _UNBOUNDED
