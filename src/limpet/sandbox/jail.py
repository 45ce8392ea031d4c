"""A jailed thread: what it starts is confined, and it itself is out of reach of what it started.

Landlock, seccomp, capabilities and mounts are attributes of a thread that what it starts inherits.
One thread of each plan is kept, confined by all of these but for the Landlock domain: whoever is in
one domain with a thread of this program could signal it by its id, which ends the whole program,
and read its memory and environment through /proc. So for each command the kept thread has had
another one made, which enters a domain of its own, starts the command and ends. The command waits
at its gate (`process/prelude.py`) until that thread is gone.
"""

from __future__ import annotations

import _thread
import atexit
import errno
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Generic, TypeVar

from limpet.process import spawn
from limpet.sandbox import capabilities, kernel, landlock, mounts, seccomp
from limpet.sandbox.broker import Broker
from limpet.sandbox.cgroup import ProcessCap
from limpet.sandbox.plan import Plan, outermost
from limpet.sandbox.unixsockets import Sockets

KEPT_AT_MOST = 16
"""Idle jails that are kept; the one that was used longest ago is given up first."""
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_SPARES = 4
"""How many threads are made ready at a time."""
_START_S = 10.0
"""How long a jail may take to be ready: a mount table may be long."""
_END_S = 1.0
"""How long the kept thread may take to end."""
_GONE_S = 10.0
"""How long a thread that has started a command may take to end, however busy the machine is."""

_Answer = TypeVar("_Answer")


class _Job(Generic[_Answer]):
    """Something to do in the jail, once."""

    def __init__(self, work: Callable[[], _Answer]) -> None:
        self._work = work
        self._done = threading.Lock()
        self._done.acquire()
        self._answer: _Answer
        self._error: BaseException | None = None
        self.tid = 0

    def do(self, tid: int) -> None:
        self.tid = tid
        try:
            self._answer = self._work()
        except BaseException as error:
            self._error = error
        self._done.release()

    def fail(self, tid: int, error: OSError) -> None:
        self.tid = tid
        self._error = error
        self._done.release()

    def result(self) -> _Answer:
        if not self._done.acquire(timeout=_START_S):
            raise TimeoutError(errno.ETIMEDOUT, "the sandbox does not answer")
        if self._error is not None:
            raise self._error
        return self._answer


class Jail:
    """Starts processes under one plan."""

    def __init__(self, plan: Plan) -> None:
        """Make it ready for use.

        Raises:
            OSError: The kernel refuses.
        """
        self._plan = plan
        self._jobs: queue.SimpleQueue[_Job[int] | None] = queue.SimpleQueue()
        self._wanted: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._spares = 0
        """Threads that wait for a job and that nobody has counted on yet."""
        self.users = 0
        """Runs that have got this jail and not left it; counted under the lock of all jails."""
        self._opened = ExitStack()
        self._cap: ProcessCap | None = None
        self._ruleset: landlock.Ruleset | None = None
        self._listener: int | None = None
        self._sockets: Sockets | None = None
        self.temp_directory: str | None = None
        self.cache_directory = ""
        try:
            if plan.sandbox.mode == "workspace" and plan.sandbox.temp == "private":
                self.temp_directory = tempfile.mkdtemp(prefix="limpet-")
                os.mkdir(os.path.join(self.temp_directory, "shm"), 0o700)  # noqa: PTH102 -- a string
                self._opened.callback(_remove, self.temp_directory)
            self.cache_directory = self._place_for_a_cache()
            if plan.processes is not None:
                with suppress(OSError):
                    self._cap = ProcessCap(plan.processes)
                    self._opened.callback(self._cap.close)
            self._start()
            if self._listener is not None and self._sockets is not None:
                self._listen(self._listener, self._sockets)
            self.have_some_ready()
        except BaseException:
            self._wanted.put(0)
            self._opened.close()
            if self._sockets is not None:
                self._sockets.close()
            if self._listener is not None:
                os.close(self._listener)
            raise

    def _place_for_a_cache(self) -> str:
        """Return a name for a directory that a command may make, and that is removed with it."""
        place = self.temp_directory or tempfile.gettempdir()
        path = os.path.join(place, f"limpet-cache-{os.urandom(8).hex()}")
        self._opened.callback(_remove, path)
        return path

    def _start(self) -> None:
        ready: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

        def live() -> None:
            try:
                self._confine_thread()
            except BaseException as error:
                ready.put(error)
                return
            ready.put(None)
            self._start_as_wanted()

        self._thread = threading.Thread(target=live, name="limpet-jail", daemon=True)
        self._thread.start()
        try:
            error = ready.get(timeout=_START_S)
        except queue.Empty:
            raise TimeoutError(errno.ETIMEDOUT, "the sandbox does not get ready") from None
        if error is not None:
            raise error

    def _confine_thread(self) -> None:
        plan = self._plan
        if self._cap is not None and self._cap.takes_threads:
            self._cap.add_thread(_thread.get_native_id())
        if plan.network == "loopback":
            mounts.take_own_network()
        if plan.ground.has_broker:
            self._sockets = Sockets(is_own=plan.network == "loopback")
        if plan.own_view:
            self._take_own_view()
        if plan.ground.abi:
            self._make_rules()
        capabilities.drop_all()
        if plan.ground.has_seccomp:
            self._listener = seccomp.install(plan.filter())

    def _listen(self, listener: int, sockets: Sockets) -> None:
        # Begun by a thread that is not confined, so that it is not either.
        roots = [root.path for root in self._plan.roots]
        if self.temp_directory is not None:
            roots.append(self.temp_directory)
        Broker(listener, sockets, roots, self._plan.sandbox.protect)

    def _take_own_view(self) -> None:
        plan, own = self._plan, self._own_places()
        mounts.take_own_view()
        mounts.hide([place.path for place in plan.hidden])
        mounts.take_own_devices(own[-1] if own else _SHARED_MEMORY)
        roots: list[tuple[str, tuple[int, int] | None]] = [
            (root.path, root.identity) for root in outermost(plan.roots)
        ]
        if own:
            roots += [(own[0], None), (_SHARED_MEMORY, None)]
        mounts.restrict(roots, plan.pinned, [place.path for place in plan.protected])

    def _own_places(self) -> list[str]:
        """Return the temporary places that are this jail's own."""
        if self.temp_directory is None:
            return []
        return [self.temp_directory, os.path.join(self.temp_directory, "shm")]

    def _make_rules(self) -> None:
        plan, extra = self._plan, self._own_places()
        everything = landlock.write_rights(plan.ground.abi)
        self._ruleset = landlock.Ruleset(
            plan.ground.abi,
            plan.rules() + [landlock.Rule(path, everything) for path in extra],
            reads=bool(plan.opened),
            ports=None if plan.network in ("on", "loopback") else plan.sandbox.ports,
        )
        self._opened.callback(self._ruleset.close)

    def _start_as_wanted(self) -> None:
        while count := self._wanted.get():
            for _ in range(count):
                try:
                    _thread.start_new_thread(self._take_one, ())
                except RuntimeError:
                    # The jail has as many processes as it may, or this program as many threads.
                    self._fail_one()

    def _fail_one(self) -> None:
        with self._lock:
            is_spare = self._spares > 0
            self._spares -= is_spare
        if not is_spare and (job := self._jobs.get()) is not None:
            job.fail(0, BlockingIOError(errno.EAGAIN, "no more processes"))

    def _take_one(self) -> None:
        """Enter a domain, do one job, end."""
        tid = _thread.get_native_id()
        try:
            if self._ruleset is not None:
                self._ruleset.restrict_thread()
        except OSError as error:
            if (job := self._jobs.get()) is not None:
                job.fail(tid, error)
            return
        if (job := self._jobs.get()) is not None:
            job.do(tid)

    def start(self, work: Callable[[], int], on_failure: Callable[[int], object]) -> int:
        """Start a process by calling `work` in the jail, and return its pid.

        When this returns, the thread that was in one domain with it is gone; until then the process
        must not begin. If that fails, `on_failure` is to end it.

        Raises:
            OSError: It could not be started.
        """
        with self._lock:
            has_spare = self._spares > 0
            self._spares -= has_spare
        if not has_spare:
            self._wanted.put(1)
        job = _Job(work)
        self._jobs.put(job)
        pid = job.result()
        try:
            self._await_end(job.tid)
            if self._cap is not None and not self._cap.takes_threads:
                self._cap.add_process(pid)
        except OSError:
            on_failure(pid)
            raise
        return pid

    def have_some_ready(self) -> None:
        """Have threads wait for the next commands."""
        # To start a thread takes a moment, in which this program's others wait: so not each time.
        with self._lock:
            wanted = 0 if self._spares else _SPARES
            self._spares += wanted
        if wanted:
            self._wanted.put(wanted)

    @staticmethod
    def _await_end(tid: int) -> None:
        until_s = time.monotonic() + _GONE_S
        while kernel.thread_is_alive(tid):
            if time.monotonic() > until_s:
                raise TimeoutError(errno.ETIMEDOUT, "a thread of the sandbox does not end")

    @property
    def caps_processes(self) -> bool:
        """Whether the number of processes is limited beyond the user's own limit."""
        return self._cap is not None

    def let_go(self) -> None:
        """Close a forked child's copy of the listener: else nobody would answer, yet not fail."""
        if self._listener is not None:
            os.close(self._listener)

    def close(self) -> None:
        """End the threads; what they started goes on as it is."""
        self._wanted.put(0)
        for _ in range(self._spares):
            self._jobs.put(None)
        self._thread.join(_END_S)
        self._opened.close()


def _remove(path: str) -> None:
    """Remove a directory that commands have filled, however deep it is."""
    if not os.path.lexists(path):
        return
    program = spawn.find_program("rm")
    with suppress(OSError):
        null = os.open(os.devnull, os.O_RDWR)
        try:
            pid = spawn.start(
                program or "rm",
                [b"rm", b"-rf", b"--", os.fsencode(path)],
                environment=[],
                cwd="/",
                stdin=None,
                stdout=null,
                stderr=null,
            )
        finally:
            os.close(null)
        os.waitpid(pid, 0)


_kept: dict[Plan, Jail] = {}
_lock = threading.Lock()


def enter(plan: Plan) -> Jail:
    """Return the jail of a plan, made now if there is none, for a run that will leave it.

    Raises:
        OSError: The kernel refuses.
    """
    with _lock:
        jail = _kept.pop(plan, None)
        if jail is None:
            idle = [old for old, other in _kept.items() if other.users == 0]
            for old in idle[: max(0, len(_kept) + 1 - KEPT_AT_MOST)]:
                _kept.pop(old).close()
            jail = Jail(plan)
        _kept[plan] = jail
        jail.users += 1
        return jail


def leave(jail: Jail) -> None:
    """Note that a run has left its jail."""
    with _lock:
        jail.users -= 1
    jail.have_some_ready()


def close_all() -> None:
    """Give up all jails; runs under way go on as they are."""
    while _kept:
        _kept.popitem()[1].close()


def _forget_all() -> None:
    """Forget all in a forked child: it has none of the threads, and its parent's files stay."""
    global _lock
    _lock = threading.Lock()
    for jail in _kept.values():
        jail.let_go()
    _kept.clear()


atexit.register(close_all)
os.register_at_fork(after_in_child=_forget_all)
