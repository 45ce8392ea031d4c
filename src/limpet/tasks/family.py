"""The processes of a task, for programs that are not its supervisor."""

from __future__ import annotations

from limpet.process import table
from limpet.process.table import NOBODY, Process
from limpet.tasks.record import Record, named, supervisor_of


def family(record: Record) -> list[Process]:
    """Return the living processes of a task.

    Its group counts only while a process that its record names is there: until then the kernel
    cannot have given the group's number to anyone else. The same holds for its supervisor's.
    """
    known = named(record)
    leader = record.shell.pid if known else NOBODY
    supervisor = supervisor_of(record)
    # Of an adopted task nothing descends from the supervisor.
    reaper = supervisor.pid if supervisor and record.origin == "started" else 0
    found = table.members(leader, record.run_id, record.since_ticks, reaper)
    pids = {process.pid for process in known}
    alive = [process for process in known if table.is_alive(process)]
    return [*alive, *(process for process in found if process.pid not in pids)]
