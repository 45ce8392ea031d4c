"""A jailed thread: what it starts is confined, and it itself is out of reach of what it started.

Landlock, seccomp, capabilities and namespaces are attributes of a thread that what it starts
inherits. One thread of each plan is kept, confined by all of these but for the Landlock domain:
whoever is in one domain with a thread of this program could signal it by its id, which ends the
whole program, and read its memory and environment through /proc. So each command enters a domain
of its own, as a step before it becomes a shell (`process/steps.py`).
"""

from __future__ import annotations

import _thread
import atexit
import errno
import fcntl
import os
import queue
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress

from limpet.process import spawn
from limpet.process.steps import Step
from limpet.sandbox import capabilities, landlock, mounts, seccomp
from limpet.sandbox.broker import Broker, Estate
from limpet.sandbox.cgroup import ProcessCap
from limpet.sandbox.plan import Plan, outermost
from limpet.sandbox.unixsockets import Sockets

KEPT_AT_MOST = 16
"""Idle jails that are kept; the one that was used longest ago is given up first."""
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_START_S = 10.0
"""How long a jail may take to be ready: a mount table may be long."""
_END_S = 1.0
"""How long the kept thread may take to end."""


class _Job:
    """The start of one process, to be made by the kept thread."""

    def __init__(self, work: Callable[[], int]) -> None:
        self._work = work
        self._done = threading.Lock()
        self._done.acquire()
        self._pid = 0
        self._error: BaseException | None = None

    def do(self) -> None:
        try:
            self._pid = self._work()
        except BaseException as error:
            self._error = error
        self._done.release()

    def result(self) -> int:
        self._done.acquire()
        if self._error is not None:
            raise self._error
        return self._pid


class Jail:
    """Starts processes under one plan."""

    def __init__(self, plan: Plan) -> None:
        """Make it ready for use.

        Raises:
            OSError: The kernel refuses.
        """
        self._plan = plan
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.users = 0
        """Runs that have got this jail and not left it; counted under the lock of all jails."""
        self._opened = ExitStack()
        self._cap: ProcessCap | None = None
        self._ruleset: landlock.Ruleset | None = None
        self._listener: int | None = None
        self._sockets: Sockets | None = None
        self.temp_directory: str | None = None
        self.temp_lock: int | None = None
        """Open as long as the directory is in use, here or by who has got it."""
        self.cache_directory = ""
        try:
            if plan.sandbox.mode == "workspace" and plan.sandbox.temp == "private":
                self.temp_directory = tempfile.mkdtemp(prefix="limpet-")
                os.mkdir(os.path.join(self.temp_directory, "shm"), 0o700)  # noqa: PTH102 -- a string
                self._opened.callback(remove_unused, self.temp_directory)
                self.temp_lock = os.open(self.temp_directory, os.O_RDONLY | os.O_CLOEXEC)
                fcntl.flock(self.temp_lock, fcntl.LOCK_SH)
                self._opened.callback(os.close, self.temp_lock)
            if plan.sandbox.mode == "workspace":
                self.cache_directory = self._place_for_a_cache()
            if plan.processes is not None:
                with suppress(OSError):
                    self._cap = ProcessCap(plan.processes)
                    self._opened.callback(self._cap.close)
            self._start()
            if self._listener is not None and self._sockets is not None:
                self._listen(self._listener, self._sockets)
        except BaseException:
            self._jobs.put(None)
            self._opened.close()
            if self._sockets is not None:
                self._sockets.close()
            if self._listener is not None:
                os.close(self._listener)
            raise

    def _place_for_a_cache(self) -> str:
        """Return a name for a directory that a command may make, and that is removed with it."""
        # Of the roots the first is the workspace itself, and the last are temporary places.
        on_disk = [root.path for root in self._plan.roots if root.path != _SHARED_MEMORY]
        place = self.temp_directory or (on_disk or ["/"])[-1]
        path = os.path.join(place, f"limpet-cache-{os.urandom(8).hex()}")
        if self.temp_directory is None:
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
            while (job := self._jobs.get()) is not None:
                job.do()

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
        Broker(listener, sockets, self._roots(), self._plan.sandbox.protect)

    def _roots(self) -> tuple[str, ...]:
        roots = tuple(root.path for root in self._plan.roots)
        return roots if self.temp_directory is None else (*roots, self.temp_directory)

    def estate(self) -> tuple[Estate, tuple[int, int]] | None:
        """Return what a supervisor needs to answer in our place, and its descriptors."""
        listener, sockets = self._listener, self._sockets
        if listener is None or sockets is None:
            return None
        names = tuple(self._plan.sandbox.protect)
        estate = Estate(self._roots(), names, sockets.is_own, sockets.of_jail)
        return estate, (listener, sockets.fd)

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

    @property
    def steps(self) -> list[Step]:
        """What a process that is started here has to do before anything else."""
        return [
            *(self._cap.steps() if self._cap is not None else ()),
            *(self._ruleset.steps() if self._ruleset is not None else ()),
        ]

    def start(self, work: Callable[[], int]) -> int:
        """Start a process by calling `work` in the jail, and return its pid.

        Raises:
            OSError: It could not be started.
        """
        job = _Job(work)
        self._jobs.put(job)
        return job.result()

    def let_go(self) -> None:
        """Close a forked child's copy of the listener: else nobody would answer, yet not fail."""
        if self._listener is not None:
            os.close(self._listener)

    def close(self) -> None:
        """End the threads; what they started goes on as it is."""
        self._jobs.put(None)
        self._thread.join(_END_S)
        self._opened.close()


def remove_unused(path: str) -> None:
    """Remove a temporary directory, unless a task goes on in it, whose supervisor will do so."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    finally:
        os.close(fd)
    _remove(path)


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
