from __future__ import annotations

import asyncio
import gc
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support import is_running, wait_until

import limpet
from limpet.profiles import NAMES, Answer, Toolbox, profile


@pytest.fixture
def box() -> Toolbox:
    return profile("default")


def started(box: Toolbox, ctx: limpet.ToolContext | None = None, command: str = "cat") -> str:
    answer = box.call_sync({"command": command, "background": True}, ctx)
    task_id = answer.data["task_id"]
    assert isinstance(task_id, str), answer
    return task_id


# Calls


def test_a_call_without_a_loop() -> None:
    for name in NAMES:
        assert "hi" in profile(name).call_sync({"command": "echo hi"}).text


def test_a_blocking_call_inside_of_a_loop(box: Toolbox) -> None:
    async def inside() -> Answer:
        return box.call_sync({"command": "echo hi"})

    assert asyncio.run(inside()).text == "hi\n"


def test_a_blocking_call_inside_of_a_loop_sees_its_cancel(box: Toolbox) -> None:
    async def inside() -> Answer:
        cancel = threading.Event()
        threading.Timer(0.1, cancel.set).start()
        return box.call_sync({"command": "sleep 60"}, limpet.ToolContext(cancel=cancel))

    assert "cancelled" in asyncio.run(inside()).text


def test_many_calls_at_once(box: Toolbox) -> None:
    async def calls() -> list[Answer]:
        return await asyncio.gather(*(box.call({"command": f"echo {n}"}) for n in range(20)))

    assert [answer.text for answer in asyncio.run(calls())] == [f"{n}\n" for n in range(20)]


def test_an_unknown_tool_is_a_mistake_of_the_host(box: Toolbox) -> None:
    with pytest.raises(LookupError, match="bash_output"):
        box.call_sync({"command": "true"}, tool="nothing")

    async def stream() -> None:
        async for _ in box.stream({"command": "true"}, tool="nothing"):
            pass

    with pytest.raises(LookupError, match="nothing"):
        asyncio.run(stream())


def test_the_answer_as_the_command_line_prints_it() -> None:
    answer = Answer("text", is_error=True, data={"a": 1}, can_retry=True)
    assert answer.to_dict() == {"text": "text", "is_error": True, "data": {"a": 1}}


# Cancelling


@pytest.mark.parametrize("name", NAMES)
def test_to_cancel_the_awaiting_task_kills_the_command(name: str, work: Path) -> None:
    (work / "wait.sh").write_text("echo $$ > pid\nsleep 60\n")

    async def cancelled() -> None:
        task = asyncio.create_task(profile(name).call({"command": "bash wait.sh"}))
        pid = work / "pid"
        await asyncio.to_thread(wait_until, lambda: pid.exists() and bool(pid.read_text()))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not is_running(int(pid.read_text()))

    asyncio.run(cancelled())


def test_a_cancelled_conversation_stops_waiting(box: Toolbox) -> None:
    task = started(box)

    async def waiting(tool: str, **given: Any) -> float:  # noqa: ANN401 -- any input
        cancel = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, cancel.set)
        begun = time.monotonic()
        ctx = limpet.ToolContext(cancel=cancel)
        answer = await box.call({"task": task, **given}, ctx, tool=tool)
        assert answer.is_error
        assert "cancelled" in answer.text
        return time.monotonic() - begun

    assert asyncio.run(waiting("bash_wait", timeout_s=60)) < 5
    assert asyncio.run(waiting("bash_wait", until="/x/", timeout_s=60)) < 5
    assert asyncio.run(waiting("bash_send", wait_s=60)) < 5
    assert is_running(box.bash.task(task).pid)


def test_to_cancel_a_wait_leaves_the_task_alone(box: Toolbox) -> None:
    task = started(box)

    async def cancelled() -> None:
        waiting = asyncio.create_task(box.call({"task": task}, tool="bash_wait"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(cancelled())
    assert is_running(box.bash.task(task).pid)


# Streaming


def test_to_stop_iterating_kills_the_command_before_it_returns(box: Toolbox, work: Path) -> None:
    async def first() -> bool:
        events = box.stream({"command": "echo $$ > pid; echo hi; sleep 60"})
        async for event in events:
            if getattr(event, "text", "") == "hi\n":
                break
        await events.aclose()
        return is_running(int((work / "pid").read_text()))

    assert asyncio.run(first()) is False


def test_to_cancel_a_stream_kills_the_command(box: Toolbox, work: Path) -> None:
    async def stream() -> None:
        async for _ in box.stream({"command": "echo $$ > pid; sleep 60"}):
            pass

    async def cancelled() -> None:
        task = asyncio.create_task(stream())
        pid = work / "pid"
        await asyncio.to_thread(wait_until, lambda: pid.exists() and bool(pid.read_text()))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not is_running(int(pid.read_text()))

    asyncio.run(cancelled())


def test_a_stream_of_wrong_input_is_one_answer(box: Toolbox) -> None:
    async def events() -> list[Any]:
        return [one async for one in box.stream({"command": 5})]

    (answer,) = asyncio.run(events())
    assert answer.is_error


def test_a_stream_of_a_tool_that_runs_nothing_is_one_answer(box: Toolbox) -> None:
    async def events() -> list[Any]:
        return [one async for one in box.stream({}, tool="bash_list")]

    assert asyncio.run(events()) == [Answer("(no tasks)", data={"tasks": []})]


def test_a_stream_of_tail_saves_and_removes_like_a_call(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    with profile("tail", output_dir=str(saved)) as box:

        async def events(command: str) -> None:
            async for _ in box.stream({"command": command}):
                pass

        asyncio.run(events("echo hi"))
        assert not list(saved.iterdir())
        asyncio.run(events("seq 1 200"))
        assert len(list(saved.iterdir())) == 1
    assert not list(saved.iterdir())


# Saved files


def test_garbage_collection_removes_what_was_saved(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    box = profile("tail", output_dir=str(saved))
    box.call_sync({"command": "seq 1 200"})
    assert len(list(saved.iterdir())) == 1
    del box
    gc.collect()
    assert not list(saved.iterdir())


def test_a_file_that_is_gone_already_does_not_matter(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    with profile("tail", output_dir=str(saved)) as box:
        box.call_sync({"command": "seq 1 200"})
        for path in saved.iterdir():
            path.unlink()


def test_other_profiles_leave_saved_files_to_the_policy(box: Toolbox) -> None:
    path = box.call_sync({"command": "seq 1 60000"}).data["spill_path"]
    box.close()
    assert Path(path).exists()


# Conversations


def test_a_named_conversation_sees_its_own_tasks_only(box: Toolbox) -> None:
    one, two = (limpet.ToolContext(session_id=name) for name in ("one", "two"))
    task = started(box, one)
    assert task in box.call_sync({}, one, tool="bash_list").text
    assert box.call_sync({}, two, tool="bash_list").text == "(no tasks)"
    for tool in ("bash_output", "bash_wait", "bash_send", "bash_stop"):
        answer = box.call_sync({"task": task}, two, tool=tool)
        assert answer.is_error
        assert answer.text == f"no task {task!r}; there are none"
    assert is_running(box.bash.task(task).pid)
    assert task in box.call_sync({}, tool="bash_list").text


def test_news_that_cannot_be_looked_for_do_not_cost_the_answer(
    box: Toolbox, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "file").touch()
    ctx = limpet.ToolContext(session_id="one")
    for place in (work / "file", Path("/proc/nowhere")):
        monkeypatch.setenv("LIMPET_STATE_DIR", str(place))
        assert box.call_sync({"command": "echo hi"}, ctx).text == "hi\n"
        assert box.call_sync({}, ctx, tool="bash_list").is_error


def test_survivors_belong_to_the_conversation(box: Toolbox) -> None:
    one, two = (limpet.ToolContext(session_id=name) for name in ("one", "two"))
    task = box.call_sync({"command": "sleep 60 &"}, one).data["task_id"]
    assert task in box.call_sync({}, one, tool="bash_list").text
    assert task not in box.call_sync({}, two, tool="bash_list").text


def test_the_tasks_profile_keeps_conversations_apart_too() -> None:
    box = profile("tasks")
    one, two = (limpet.ToolContext(session_id=name) for name in ("one", "two"))
    call = {"command": "sleep 60", "run_in_background": True}
    task = box.call_sync(call, one).data["task_id"]
    read = {"task_id": task, "block": False}
    assert not box.call_sync(read, one, tool="TaskOutput").is_error
    assert box.call_sync(read, two, tool="TaskOutput").is_error


@pytest.mark.parametrize(
    ("free", "bound"),
    [("off", "workspace"), ("off", "read-only"), ("workspace", "read-only")],
)
def test_a_task_in_a_weaker_sandbox_cannot_be_touched(free: str, bound: str) -> None:
    """To type into a shell outside would be a way out."""
    task = started(profile("default", limpet.Policy(sandbox=free)), command="bash")  # type: ignore[arg-type]  # a mode
    box = profile("default", limpet.Policy(sandbox=bound))  # type: ignore[arg-type]  # a mode
    calls = (("bash_send", {"task": task, "text": "touch ran\n"}), ("bash_stop", {"task": task}))
    for tool, given in calls:
        answer = box.call_sync(given, tool=tool)
        assert answer.is_error
        assert "sandbox of this conversation" in answer.text
    assert not box.call_sync({"task": task}, tool="bash_output").is_error
    assert is_running(box.bash.task(task).pid)
    assert not Path("ran").exists()


def test_a_task_with_network_cannot_be_touched_from_a_sandbox_without() -> None:
    """The mode is the same, but not what it keeps from."""
    sandboxes = [limpet.SandboxPolicy(mode="workspace", network=has) for has in (True, False)]
    free, bound = (profile("default", limpet.Policy(sandbox=one)) for one in sandboxes)
    task = started(free)
    calls: list[tuple[str, dict[str, float]]] = [("bash_send", {"wait_s": 0.05}), ("bash_stop", {})]
    for tool, given in calls:
        assert bound.call_sync({"task": task, **given}, tool=tool).is_error
    assert is_running(bound.bash.task(task).pid)
    own = started(bound)
    assert not bound.call_sync({"task": own}, tool="bash_stop").is_error


def test_a_restricted_conversation_cannot_touch_an_open_task(box: Toolbox) -> None:
    ctx = limpet.ToolContext(restricted=True)
    task, own = started(box), started(box, ctx)
    calls: list[tuple[str, dict[str, object]]] = [
        ("bash_send", {"text": "hi\n"}),
        ("bash_stop", {}),
    ]
    for tool, given in calls:
        assert box.call_sync({"task": task, **given}, ctx, tool=tool).is_error
        assert not box.call_sync({"task": own, **given}, ctx, tool=tool).is_error
    assert is_running(box.bash.task(task).pid)
    assert box.call_sync({"task": task}, tool="bash_output").data["text"] == ""


def test_a_task_in_a_stricter_sandbox_can_be_touched(box: Toolbox) -> None:
    task = started(box, limpet.ToolContext(restricted=True))
    assert box.call_sync({"task": task, "text": "hi\n"}, tool="bash_send").text.startswith("hi\n")
    assert not box.call_sync({"task": task}, tool="bash_stop").is_error


@pytest.mark.parametrize(
    ("name", "field"), [("report", "cwd"), ("tasks", "cwd"), ("streams", "working_dir")]
)
def test_a_directory_that_the_model_gives_does_not_widen_the_workspace(
    name: str, field: str, work: Path
) -> None:
    with tempfile.TemporaryDirectory(dir=Path.home()) as outside:  # none where all may write
        box = profile(name, limpet.Policy(sandbox=limpet.SandboxPolicy(mode="workspace")))
        ctx = limpet.ToolContext(work)
        answer = box.call_sync({"command": "touch ran", field: outside}, ctx)
        assert answer.data["exit_code"] != 0
        assert not list(Path(outside).iterdir())
        assert box.call_sync({"command": "touch ran"}, ctx).data["exit_code"] == 0


def test_a_directory_that_the_model_gives_does_not_move_the_conversation(work: Path) -> None:
    (work / "below").mkdir()
    box = profile("tasks", limpet.Policy(persist_cwd=True))
    ctx = limpet.ToolContext(work)
    box.call_sync({"command": "cd ..", "cwd": "below"}, ctx)
    assert box.call_sync({"command": "pwd"}, ctx).data["stdout"] == f"{work}\n"
    box.call_sync({"command": "cd below"}, ctx)
    assert box.call_sync({"command": "pwd"}, ctx).data["stdout"] == f"{work}/below\n"


def test_a_restricted_conversation_writes_nothing_in_any_profile(work: Path) -> None:
    for name in NAMES:
        ctx = limpet.ToolContext(work, restricted=True)
        profile(name).call_sync({"command": "touch ran"}, ctx)
        assert not (work / "ran").exists()


def test_no_parameter_is_about_the_sandbox() -> None:
    for name in NAMES:
        for tool in profile(name).definitions():
            words = " ".join(tool.input_schema["properties"])
            for word in ("sandbox", "restrict", "network", "rules", "permission", "session"):
                assert word not in words


def test_importing_limpet_does_not_import_pydantic() -> None:
    import subprocess
    import sys

    code = "import limpet, sys; limpet.Bash().run_sync('true'); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
