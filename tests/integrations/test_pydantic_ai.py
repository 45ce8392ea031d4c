"""limpet's tools in real pydantic-ai agents; only the model is scripted."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    ModelResponse,
    RunContext,
    TextPart,
    ToolApproved,
    ToolCallPart,
    ToolDenied,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from support import marked_processes, wait_until

import limpet
from limpet.integrations.pydantic_ai import LimpetToolset
from limpet.profiles import NAMES

ASKS = limpet.Policy(permissions=limpet.PermissionPolicy(ask=("touch *",)))


class Script:
    """A model that makes the given calls one by one, and then answers."""

    def __init__(self, *steps: list[dict[str, Any] | str] | dict[str, Any] | str) -> None:
        self._steps = [step if isinstance(step, list) else [step] for step in steps]
        self.tools: dict[str, Any] = {}

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.tools = {tool.name: tool for tool in info.function_tools}
        done = sum(message.kind == "response" for message in messages)
        if done >= len(self._steps):
            return ModelResponse(parts=[TextPart("done")])
        name = next(iter(self.tools))
        return ModelResponse(
            parts=[
                ToolCallPart(name, arguments, tool_call_id=f"call-{done}-{place}")
                for place, arguments in enumerate(self._steps[done])
            ]
        )


def agent_of(script: Script, toolset: LimpetToolset, **options: Any) -> Agent[Any, Any]:  # noqa: ANN401 -- the package's own
    return Agent(FunctionModel(script), toolsets=[toolset], **options)


def returns(messages: list[ModelMessage]) -> list[Any]:
    """Return what the tools returned to the model."""
    return [
        part for message in messages for part in message.parts if part.part_kind == "tool-return"
    ]


def answered(toolset: LimpetToolset, *steps: Any) -> list[Any]:  # noqa: ANN401 -- arguments
    done = asyncio.run(agent_of(Script(*steps), toolset).run("go"))
    assert done.output == "done"
    return returns(done.all_messages())


def test_a_command_runs_and_the_model_reads_its_output() -> None:
    (part,) = answered(LimpetToolset(), {"command": "echo hi; exit 3"})
    assert (part.content, part.outcome) == ("hi\n[exit code 3]", "success")
    assert part.metadata["exit_code"] == 3


@pytest.mark.parametrize("name", NAMES)
def test_every_profile_is_offered_as_it_is(name: str) -> None:
    toolbox = limpet.profile(name)
    call = {"command": "echo hi"} | ({"description": "say hi"} if name == "tasks" else {})
    script = Script(call)
    done = asyncio.run(agent_of(script, LimpetToolset(toolbox)).run("go"))
    assert {
        tool.name: (tool.description, tool.parameters_json_schema) for tool in script.tools.values()
    } == {tool.name: (tool.description, tool.input_schema) for tool in toolbox.definitions()}
    (part,) = returns(done.all_messages())
    assert part.outcome == "success"
    assert "hi" in part.content


def test_a_host_can_tell_the_tools_that_only_look() -> None:
    script = Script("{}")
    toolset = LimpetToolset().filtered(
        lambda ctx, tool: (tool.metadata or {})["annotations"]["readOnlyHint"]
    )
    asyncio.run(Agent(FunctionModel(script), toolsets=[toolset]).run("go"))
    assert "bash_output" in script.tools
    assert "bash" not in script.tools


def test_wrong_input_is_retried_with_the_field_and_what_is_allowed() -> None:
    toolset = LimpetToolset(limpet.profile("modes"))
    wrong, right = answered(
        toolset, {"command": "ls", "mode": "fast"}, {"command": "echo hi", "mode": "slow"}
    )
    assert wrong.outcome == "retried"
    assert 'mode must be one of "default", "slow", "background"' in wrong.content
    assert (right.outcome, right.content) == ("success", "hi\n")


def test_arguments_that_are_no_object_are_retried() -> None:
    first, _ = answered(LimpetToolset(), "[1]", '{"command": "true"}')
    assert first.outcome == "retried"


def test_a_refused_command_is_retried_with_the_safer_way() -> None:
    refused, _ = answered(LimpetToolset(), {"command": "git push --force"}, {"command": "true"})
    assert refused.outcome == "retried"
    assert "--force-with-lease" in refused.content


def test_an_error_after_the_last_retry_does_not_end_the_run() -> None:
    parts = answered(LimpetToolset(max_retries=1), *[{"command": "git push --force"}] * 3)
    assert [part.outcome for part in parts] == ["retried", "failed", "failed"]
    assert "--force-with-lease" in parts[-1].content


def test_what_the_model_cannot_mend_is_a_failure() -> None:
    cancel = asyncio.Event()
    cancel.set()
    (part,) = answered(LimpetToolset(ctx=limpet.ToolContext(cancel=cancel)), {"command": "ls"})
    assert part.outcome == "failed"
    assert "cancelled" in part.content


# Approvals


def ask(place: Path, *steps: Any, policy: limpet.Policy = ASKS) -> tuple[Agent[Any, Any], Any]:  # noqa: ANN401 -- arguments
    toolset = LimpetToolset(limpet.profile("default", policy), limpet.ToolContext(place))
    agent = agent_of(Script(*steps), toolset, output_type=[str, DeferredToolRequests])
    return agent, asyncio.run(agent.run("go"))


def test_a_command_to_be_approved_is_deferred_with_the_reason(tmp_path: Path) -> None:
    _, first = ask(tmp_path, {"command": "touch it", "description": "make it"})
    requests = first.output
    assert [call.tool_call_id for call in requests.approvals] == ["call-0-0"]
    about = requests.metadata["call-0-0"]
    assert (about["command"], about["description"]) == ("touch it", "make it")
    assert about["reason"].startswith("needs approval: `touch it`")
    assert about["verdict"]["decision"] == "ask"
    assert not (tmp_path / "it").exists()


def resume(agent: Agent[Any, Any], first: Any, results: DeferredToolResults) -> Any:  # noqa: ANN401 -- a run's result
    history = first.all_messages()
    return asyncio.run(agent.run(message_history=history, deferred_tool_results=results))


def test_an_approved_command_runs(tmp_path: Path) -> None:
    agent, first = ask(tmp_path, {"command": "touch it"})
    done = resume(agent, first, first.output.build_results(approve_all=True))
    assert done.output == "done"
    assert (tmp_path / "it").exists()


def test_a_command_that_was_not_approved_never_runs(tmp_path: Path) -> None:
    agent, first = ask(tmp_path, {"command": "touch it"})
    results = DeferredToolResults(approvals={"call-0-0": ToolDenied("not today")})
    done = resume(agent, first, results)
    assert returns(done.all_messages())[-1].content == "not today"
    assert not (tmp_path / "it").exists()


def test_an_approval_is_for_its_own_call_alone(tmp_path: Path) -> None:
    """Of two calls at once one is approved; the next of the same kind is asked about again."""
    agent, first = ask(
        tmp_path, [{"command": "touch a"}, {"command": "touch b"}], {"command": "touch c"}
    )
    results = DeferredToolResults(approvals={"call-0-0": True, "call-0-1": False})
    second = resume(agent, first, results)
    assert [call.tool_call_id for call in second.output.approvals] == ["call-1-0"]
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == ["a"]


def test_an_approver_may_change_the_command(tmp_path: Path) -> None:
    agent, first = ask(tmp_path, {"command": "touch it"})
    approval = ToolApproved(override_args={"command": "touch other"})
    resume(agent, first, DeferredToolResults(approvals={"call-0-0": approval}))
    assert (tmp_path / "other").exists()
    assert not (tmp_path / "it").exists()


def test_an_approval_does_not_lift_a_refusal(tmp_path: Path) -> None:
    policy = limpet.Policy(permissions=limpet.PermissionPolicy(ask=("touch *",)))
    agent, first = ask(tmp_path, {"command": "touch it"}, policy=policy)
    approval = ToolApproved(override_args={"command": "touch it; git push --force"})
    done = resume(agent, first, DeferredToolResults(approvals={"call-0-0": approval}))
    assert returns(done.all_messages())[-1].outcome == "retried"
    assert not (tmp_path / "it").exists()


def test_a_background_task_is_asked_about_too(tmp_path: Path) -> None:
    agent, first = ask(tmp_path, {"command": "touch it", "background": True})
    assert first.output.approvals
    resume(agent, first, first.output.build_results(approve_all=True))
    assert wait_until((tmp_path / "it").exists)


def test_a_policy_that_approves_by_itself_is_left_to_do_so(tmp_path: Path) -> None:
    asked = []

    def approve(question: Any) -> bool:  # noqa: ANN401 -- an Approval
        asked.append(question.command)
        return True

    policy = limpet.Policy(permissions=ASKS.permissions, approve=approve)
    _, done = ask(tmp_path, {"command": "touch it"}, policy=policy)
    assert (done.output, asked) == ("done", ["touch it"])


# Conversations


def test_a_conversation_can_come_from_the_runs_dependencies(tmp_path: Path) -> None:
    def conversation(ctx: RunContext[Any]) -> limpet.ToolContext:
        return limpet.ToolContext(ctx.deps)

    toolset = LimpetToolset(ctx=conversation)
    done = asyncio.run(agent_of(Script({"command": "pwd"}), toolset).run("go", deps=tmp_path))
    assert returns(done.all_messages())[0].content == f"{tmp_path}\n"


def test_a_run_stays_where_its_last_command_went(tmp_path: Path) -> None:
    toolset = LimpetToolset(limpet.profile("default", limpet.Policy(persist_cwd=True)))
    for _ in range(2):  # another run begins where the host is
        first, second = answered(toolset, {"command": f"pwd; cd {tmp_path}"}, {"command": "pwd"})
        assert first.content == f"{Path.cwd()}\n"
        assert second.content == f"{tmp_path}\n"


def test_a_conversation_sees_its_own_tasks_only() -> None:
    async def main() -> None:
        toolset = LimpetToolset()
        script = Script({"command": "true", "background": True})
        await agent_of(script, toolset).run("go", conversation_id="one")
        (task,) = toolset.toolbox.bash.tasks()
        await task.wait("exit", 5)
        for conversation, count in (("one", 1), ("two", 0)):
            ctx = limpet.ToolContext(session_id=conversation)
            listed = await toolset.toolbox.call({}, ctx, tool="bash_list")
            assert len(listed.data["tasks"]) == count

    asyncio.run(main())


def test_a_cancelled_run_leaves_nothing_running(tmp_path: Path) -> None:
    async def main() -> None:
        script = Script({"command": "touch begun; sleep 60 & sleep 60"})
        toolset = LimpetToolset(ctx=limpet.ToolContext(tmp_path))
        running = asyncio.create_task(agent_of(script, toolset).run("go"))
        assert await asyncio.to_thread(wait_until, (tmp_path / "begun").exists)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not marked_processes()

    asyncio.run(main())


def test_many_calls_and_runs_share_one_toolset() -> None:
    toolset = LimpetToolset()

    async def one(number: int) -> list[str]:
        step: list[Any] = [{"command": f"echo {number}-{place}"} for place in range(5)]
        done = await agent_of(Script(step), toolset).run("go")
        return [part.content for part in returns(done.all_messages())]

    async def main() -> list[list[str]]:
        return await asyncio.gather(*map(one, range(6)))

    expected = [[f"{number}-{place}\n" for place in range(5)] for number in range(6)]
    assert asyncio.run(main()) == expected


def test_without_the_package_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "try: import limpet.integrations.pydantic_ai\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert "pip install 'limpet[pydantic-ai]'" in done.stdout
