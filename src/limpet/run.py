"""One command from its start to its result: a machine of callbacks on any loop.

    start ─► running ─► shell ended ─► drained ─► settled ─► Result
                 └─ deadline, cancel, cap ─► killed ──────────┘

The shell is reaped last, when nothing will be signalled any more: until then its pid is its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from limpet.conclude import End, conclude, nothing_ran
from limpet.events import RawEvent
from limpet.handover import Adopt, Handover, Origin
from limpet.launch import CannotStart, Launched, Request, launch
from limpet.loop import GuardedLoop, Loop, Timers
from limpet.output.capture import Capture, Captured, Pipe
from limpet.process import reap, table
from limpet.process.exit import ExitWatch, ends_now, has_ended
from limpet.process.memory import PeakMemory
from limpet.process.prelude import Report
from limpet.result import Fate, Outcome, Result, Survivor
from limpet.teller import Teller

if TYPE_CHECKING:
    from limpet.output.spill import CappedFile

LOOK_S = 0.003
"""For how long a command that has no other beside it is looked at before the loop goes on."""
ARM_S = 0.02
"""A command that ends sooner is noticed by the end of its output alone."""
EXIT_S = 0.001
"""How long a shell whose output has ended is given to end too."""
DRAIN_S = 0.1
"""How long output is awaited after the shell has ended while something else holds its pipe."""
DRAIN_BYTES = 1 << 20
"""How much of it is taken from a process that goes on writing."""
SETTLE_S = 0.02
"""A process seen right after the shell's end may be about to end too: it is looked at again."""
WAIT_POLL_S = 0.05
WAIT_POLL_AT_MOST_S = 1.0
"""How often survivors are looked for when the policy waits for them: less often when it is long."""


class Run:
    """Runs one request.

    Once, and from `start` itself if nothing could start, `on_done` is called with the result; or
    else `on_crash`, with an error of limpet's own or of the listener: then all is dead too.
    """

    def __init__(
        self,
        loop: Loop,
        request: Request,
        on_done: Callable[[Result], None],
        on_crash: Callable[[Exception], None],
        listener: Callable[[RawEvent], None] | None = None,
        adopt: Adopt | None = None,
        log: CappedFile | None = None,
    ) -> None:
        self._loop = GuardedLoop(loop, self._crash)
        self._request = request
        self._on_done = on_done
        self._on_crash = on_crash
        self._teller = Teller(listener) if listener is not None else None
        self._adopt = adopt
        self._log = log
        self._task_id: str | None = None
        self._adopt_error: Exception | None = None
        self.run_id = os.urandom(8).hex()
        self._timers = Timers(self._loop)
        self._watch: ExitWatch | None = None
        self._launched: Launched | None = None
        self._captured: Captured | None = None
        self._outcome: Outcome | None = None
        """Set when the run's end has begun; the first reason stands."""
        self.stopped_with: str | None = None
        """The signal that was needed, if the run was ended."""
        self._has_crashed = False
        self._is_released = False
        self._shell_ended = False
        self._has_forked = True
        self._seen: list[table.Process] = []
        """Members that may become orphans; ours to reap if this program is their reaper."""
        self._drained_bytes = 0
        self._reading: str | None = None
        self._report: Report | None = None

    # Start

    def start(self) -> None:
        """Start the command."""
        request = self._request
        try:
            self._launched = launched = launch(request, self.run_id)
        except CannotStart as error:
            self._done(nothing_ran(request, Outcome.FAILED_TO_START, str(error)))
            return
        self._child = launched.child
        self._started_s = launched.started_s
        self._pipes = launched.pipes
        self._memory = PeakMemory()
        self._capture = Capture(
            self.run_id,
            request.policy.output,
            self._teller.output if self._teller is not None else None,
            self._log,
        )
        self._loop.call(self._go_on)

    def _go_on(self) -> None:
        """Leave the shell, which is at work already, to the loop; unless it has ended by then."""
        if self._request.is_alone and self._teller is None and reap.running_count() == 1:
            self._look_on()
        if self._shell_ended or self._outcome is not None:
            return
        self.resume()
        if self._pipes:  # else the end of the output has led to something already
            self._timers.set("arm", min(ARM_S, self._request.timeout_s), self._arm)
        if self._teller is not None:
            self._teller.started(self._child, self._timers, self._capture)

    def _look_on(self) -> None:
        """For a moment, do nothing but give way to the shell and read what it writes.

        The kernel starts a child on its parent's CPU, where anything else that we do delays it; and
        to sleep and be woken again takes longer than a short command has left to run.
        """
        until_s = self._started_s + min(LOOK_S, self._request.timeout_s)
        while self._pipes and self._outcome is None and time.monotonic() < until_s:
            os.sched_yield()
            for pipe in tuple(self._pipes):
                self._on_readable(pipe)

    # While it runs

    @property
    def child(self) -> reap.Child | None:
        """The shell, once it was started."""
        return None if self._launched is None else self._launched.child

    def cancel(self) -> None:
        """End the run, if it has not ended yet."""
        if self._outcome is None and self._launched is not None and has_ended(self._child.pid):
            self._take_what_is_there()
            if not self._pipes and not self._members():
                self._shell_ended = True  # by itself, before this: that is how it ended
                self._finish(Outcome.EXITED)
                return
        self._end(Outcome.CANCELLED)

    def pause(self) -> None:
        """Stop reading, so that the command waits for whoever takes its output."""
        for pipe in self._pipes:
            self._unwatch(pipe)

    def resume(self) -> None:
        """Read, at first and after `pause`."""
        for pipe in self._pipes:
            self._loop.add_reader(pipe.fd, self._on_readable, pipe)
            pipe.is_watched = True

    def _unwatch(self, pipe: Pipe) -> None:
        if pipe.is_watched:
            self._loop.remove_reader(pipe.fd)
            pipe.is_watched = False

    def _arm(self) -> None:
        """Begin to watch the shell itself; most are gone before, and their pipe's end tells."""
        if self._watch is None and not self._shell_ended and self._outcome is None:
            self._watch = ExitWatch(self._loop, self._child.pid, self._on_exit)
            self._arm_deadline()
            self._memory.watch(self._loop, self._child.pid)

    def _arm_deadline(self) -> None:
        if "deadline" not in self._timers:
            remaining_s = self._request.timeout_s - (time.monotonic() - self._started_s)
            self._timers.set("deadline", max(0.0, remaining_s), self._at_deadline)

    def _on_readable(self, pipe: Pipe) -> None:
        count = self._capture.read(pipe)
        if count == 0:
            self._close_pipe(pipe)
            if not self._pipes:
                self._on_all_read()
        elif count:
            if self._capture.is_capped and self._log is None:
                self._end(Outcome.OUTPUT_CAPPED)
            if self._shell_ended:
                self._drained_bytes += count
                if self._drained_bytes > DRAIN_BYTES and self._request.policy.survivors != "wait":
                    self._settle()

    def _on_all_read(self) -> None:
        # The shell is most often in the middle of its exit now: this costs no time of its own.
        self._captured = self._capture.close()
        if self._shell_ended:
            self._settle()
        elif has_ended(self._child.pid):
            self._on_exit()
        elif reap.running_count() > 1:
            # There is other work meanwhile. To arm, for the little while it takes, costs more.
            self._timers.drop("arm")
            self._timers.set("arm", EXIT_S, self._on_all_read_again)
        elif ends_now(self._child.pid):
            self._on_exit()
        else:
            self._arm()

    def _on_all_read_again(self) -> None:
        if self._watch is None and not self._shell_ended and has_ended(self._child.pid):
            self._on_exit()
        else:
            self._arm()

    def _close_pipe(self, pipe: Pipe) -> None:
        self._unwatch(pipe)
        pipe.close()
        self._pipes.remove(pipe)

    # The shell has ended by itself

    def _on_exit(self) -> None:
        self._shell_ended = True
        if self._outcome is not None:
            return  # being killed: that path has its own way of noticing
        self._take_what_is_there()
        if not self._pipes:
            self._settle()
        elif self._request.policy.survivors == "wait":
            self._wait_for_survivors()
        else:
            self._timers.set("drain", DRAIN_S, self._settle)

    def _take_what_is_there(self) -> None:
        """Read all that the shell wrote: it is in the pipe by now, whoever else holds it."""
        for pipe in tuple(self._pipes):
            if self._capture.read_all(pipe):
                self._close_pipe(pipe)

    def _wait_for_survivors(self) -> None:
        if self._outcome is None:
            self._arm_deadline()
            if self._pipes or self._members():
                waited_s = time.monotonic() - self._started_s
                pause_s = min(WAIT_POLL_S + waited_s / 50, WAIT_POLL_AT_MOST_S)
                self._timers.set("wait", pause_s, self._wait_for_survivors)
            else:
                self._settle()

    def _members(self) -> list[table.Process]:
        child = self._child
        found = table.members_after_exit(*child, reap.recent_shells())
        self._seen += found.alive + found.dead
        return found.alive

    def _settle(self) -> None:
        """Decide what becomes of processes that outlived the shell."""
        if self._outcome is not None:
            return
        self._has_forked = table.has_forked(self._child.pid, self._child.since_ticks)
        survivors = self._members() if self._has_forked else []
        if not survivors:
            self._finish(Outcome.EXITED)
        elif self._request.policy.survivors == "wait":
            self._wait_for_survivors()
        elif "settle" not in self._timers:
            self._timers.set("settle", SETTLE_S, self._settle)
        elif self._request.policy.survivors == "kill":
            self._outcome = Outcome.EXITED
            self._kill(_survivors(survivors, "killed"))
        else:
            self._finish(Outcome.EXITED, _survivors(survivors, "left"))

    # The run is ended, or goes on without us

    def _at_deadline(self) -> None:
        if self._request.on_timeout == "kill" or self._outcome is not None or not self._promote():
            self._end(Outcome.TIMED_OUT)

    def _promote(self) -> bool:
        """Hand the run over to a task; False if that cannot be done."""
        shell = table.look_up(self._child.pid)
        processes = table.members(*self._child)
        if shell is None or not self._hand_over("promoted", [shell, *processes]):
            return False
        self._outcome = Outcome.BACKGROUNDED
        self._is_released = True  # by whoever goes on with it
        self._conclude(reap.NOT_ENDED)
        return True

    def _hand_over(self, origin: Origin, processes: list[table.Process]) -> bool:
        """Make a task of what lives on; True if it is one."""
        if self._adopt is None or self._launched is None:
            return False
        self.pause()
        self._captured = None
        pipes = tuple(self._pipes)
        try:
            log = self._capture.log()
            if log is None:
                raise OSError("its output cannot be saved")  # noqa: TRY301 -- for what follows
            self._task_id = self._adopt(
                Handover(origin, self._request, self._launched, tuple(processes), pipes, log)
            )
        except Exception as error:  # it goes on without being a task
            self._adopt_error = error
        return self._task_id is not None

    def _end(self, outcome: Outcome) -> None:
        if self._outcome is None and self._launched is not None:
            self._outcome = outcome
            if outcome is Outcome.TIMED_OUT:
                self._reading = table.blocked_member(*self._child)
            self._kill(())

    def _kill(self, killed: tuple[Survivor, ...]) -> None:
        self._timers.drop_all()

        def on_done(left: list[table.Process]) -> None:
            self._seen += kill.seen
            self.stopped_with = "SIGKILL" if kill.had_to_kill else "SIGTERM"
            failed = {process.pid for process in left}
            gone = tuple(s for s in killed if s.pid not in failed)
            self._finish(self._outcome or Outcome.EXITED, gone + _survivors(left, "kill_failed"))

        kill = reap.Kill(self._loop, self._child, self._request.policy.kill_grace_s, on_done)

    def _crash(self, error: Exception) -> None:
        """Leave nothing behind after an error that should not have happened, and pass it on."""
        if self._has_crashed:
            return
        self._has_crashed = True
        self._outcome = Outcome.CANCELLED
        reap.kill_now(self._child)
        self._release()
        if self._captured is None:
            self._capture.close()
        self._on_crash(error)

    # The result

    def _finish(self, outcome: Outcome, survivors: tuple[Survivor, ...] = ()) -> None:
        self._outcome = outcome
        self._take_what_is_there()
        pid = self._child.pid
        ended = reap.NOT_ENDED
        if self._shell_ended or has_ended(pid):
            ended = reap.reap(pid)
        else:
            reap.give_up(pid)
        if self._has_forked:
            reap.reap_orphans(pid, self._seen)
        if outcome is Outcome.EXITED and ended.signal is not None:
            self._outcome = Outcome.SIGNALED
        self._report = self._launched.report() if self._launched is not None else None
        left = {survivor.pid for survivor in survivors if survivor.fate == "left"}
        if left:
            alive = {process.pid: process for process in self._seen if process.pid in left}
            self._hand_over("survivors", list(alive.values()))
        self._conclude(ended, survivors)

    def _conclude(self, ended: reap.Ended, survivors: tuple[Survivor, ...] = ()) -> None:
        launched = self._launched
        assert launched is not None  # noqa: S101 -- for the type checker: it has run
        duration_s = time.monotonic() - self._started_s
        if self._task_id is None:
            for pipe in self._pipes:
                self._capture.finish(pipe)
        self._release()
        captured = self._captured or self._capture.close()
        end = End(
            outcome=self._outcome or Outcome.EXITED,
            duration_s=duration_s,
            ended=ended,
            captured=captured,
            report=self._report,
            survivors=survivors,
            peak_memory_bytes=self._memory.bytes(ended),
            reading=self._reading,
            task_id=self._task_id,
            adopt_error=self._adopt_error,
            sandbox=launched.sandbox_report(captured.output, self._request.cwd),
        )
        self._done(conclude(self._request, end))

    def _release(self) -> None:
        self._timers.drop_all()
        self._memory.stop()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        for pipe in tuple(self._pipes):
            self._close_pipe(pipe)
        # Once: after an error at the very end this is called again.
        if self._launched is not None and not self._is_released:
            self._is_released = True
            self._launched.close()

    def _done(self, result: Result) -> None:
        if self._teller is not None:
            self._teller.finished(result)
        self._on_done(result)


def _survivors(processes: list[table.Process], fate: Fate) -> tuple[Survivor, ...]:
    return tuple(Survivor(p.pid, table.command_line(p.pid), fate) for p in processes)
