"""The processes of a task, for programs that are not its supervisor."""

from __future__ import annotations

from limpet.process import table
from limpet.process.table import NOBODY, Process
from limpet.tasks.record import Record


def family(record: Record) -> list[Process]:
    """Return the living processes of a task.

    Its group counts only while a process that its record names is there: until then the kernel
    cannot have given the group's number to anyone else. The same holds for its supervisor's.
    """
    named = [mark.find() for mark in (record.shell, *record.processes)]
    known = [process for process in named if process is not None]
    leader = record.shell.pid if known else NOBODY
    reaper = record.supervisor.pid if record.supervisor.find() else 0
    found = table.members(leader, record.run_id, record.since_ticks, reaper)
    pids = {process.pid for process in known}
    alive = [process for process in known if table.is_alive(process)]
    return [*alive, *(process for process in found if process.pid not in pids)]
