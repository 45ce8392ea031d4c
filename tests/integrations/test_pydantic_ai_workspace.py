"""limpet as a pydantic-ai workspace passes the package's own suite, and its sandbox holds."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.workspaces import (
    Workspace,
    WorkspaceBackend,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite
from support import marked_processes, wait_until

import limpet
from limpet.integrations.pydantic_ai import LimpetWorkspaceBackend


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "place"
    path.mkdir()
    return path


@pytest.fixture
def made() -> Iterator[list[LimpetWorkspaceBackend]]:
    """Hold the workspaces whose directories are new, and remove those in the end."""
    backends: list[LimpetWorkspaceBackend] = []
    yield backends
    for backend in backends:
        if backend.ref is not None:
            shutil.rmtree(backend.ref.id, ignore_errors=True)


class TestConformance(WorkspaceBackendSuite):
    """The rules that pydantic-ai publishes for every workspace."""

    policy = limpet.Policy()

    @pytest.fixture
    def backend(self, place: Path) -> WorkspaceBackend:
        return LimpetWorkspaceBackend(place, self.policy)

    @pytest.fixture
    def fresh_backend(self, made: list[LimpetWorkspaceBackend]) -> Callable[[], WorkspaceBackend]:
        def fresh() -> WorkspaceBackend:
            made.append(LimpetWorkspaceBackend(policy=self.policy))
            return made[-1]

        return fresh

    @pytest.fixture
    def attach_backend(self) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return lambda ref: LimpetWorkspaceBackend(ref.id, self.policy)

    @pytest.fixture
    def destroy_environment(self) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        async def destroy(backend: WorkspaceBackend) -> None:
            assert backend.ref is not None
            shutil.rmtree(backend.ref.id)

        return destroy


class TestConformanceInASandbox(TestConformance):
    """The same where the kernel keeps commands and file operations inside the directory."""

    policy = limpet.Policy(sandbox=limpet.SandboxPolicy(mode="workspace"))


def test_output_comes_back_as_it_was_written(place: Path) -> None:
    """A model is better off without control characters; a program that splits at NUL is not."""
    printed = asyncio.run(
        LimpetWorkspaceBackend(place).run(r"printf 'a\r\n\033[1mb\0c'", shell=True)
    )
    assert printed.stdout == "a\r\n\x1b[1mb\0c"


@pytest.mark.parametrize("word", ["cd", "if", "NAME=value", "-c"])
def test_an_argv_is_a_program_and_never_a_word_of_the_shell(place: Path, word: str) -> None:
    assert asyncio.run(LimpetWorkspaceBackend(place).run([word])).exit_code == 127


def test_too_much_output_is_an_error_with_its_beginning(place: Path, state_dir: Path) -> None:
    backend = LimpetWorkspaceBackend(place, output_bytes=1000)
    with pytest.raises(WorkspaceOutputLimitError) as caught:
        asyncio.run(backend.run("echo begin; yes", shell=True))
    assert caught.value.limit == 1000
    assert caught.value.stdout.startswith("begin\ny\n")
    assert not marked_processes()
    assert not list(state_dir.rglob("*.log"))
    assert asyncio.run(backend.run("printf %01000d 0", shell=True)).stdout == "0" * 1000


def test_a_time_limit_has_what_was_printed_and_kills_the_tree(place: Path) -> None:
    backend = LimpetWorkspaceBackend(place, limpet.Policy(kill_grace_s=0.05))
    with pytest.raises(WorkspaceTimeoutError) as caught:
        asyncio.run(
            backend.run("echo out; echo err >&2; sleep 60 | sleep 60", shell=True, timeout=0.3)
        )
    assert (caught.value.stdout, caught.value.stderr) == ("out\n", "err\n")
    assert not marked_processes()


def test_a_cancelled_command_is_dead_when_the_caller_hears_of_it(place: Path) -> None:
    async def main() -> None:
        running = asyncio.create_task(
            LimpetWorkspaceBackend(place).run("touch begun; sleep 60 & sleep 60", shell=True)
        )
        await asyncio.to_thread(wait_until, (place / "begun").exists)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not marked_processes()

    asyncio.run(main())


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_a_time_limit_must_be_positive_and_finite(place: Path, timeout: float) -> None:
    with pytest.raises(ValueError):
        asyncio.run(LimpetWorkspaceBackend(place).run(["true"], timeout=timeout))


def test_a_refused_command_says_why_and_does_not_run(place: Path) -> None:
    backend = LimpetWorkspaceBackend(place)
    with pytest.raises(WorkspaceError, match="git-push-force") as caught:
        asyncio.run(backend.run(["git", "push", "--force"]))
    assert isinstance(caught.value.__cause__, limpet.CommandRefused)


def test_a_command_that_nobody_approves_is_refused(place: Path) -> None:
    policy = limpet.Policy(permissions=limpet.PermissionPolicy(ask=("touch *",)))
    with pytest.raises(WorkspaceError, match="approve"):
        asyncio.run(LimpetWorkspaceBackend(place, policy).run(["touch", "x"]))
    assert not (place / "x").exists()


def test_file_operations_are_no_way_around_the_sandbox(place: Path, tmp_path: Path) -> None:
    """They are jailed as commands are: also by a link that leads outside."""
    outside = Path.home() / f".limpet-test-{tmp_path.name}"
    outside.mkdir()
    try:
        (outside / "file").write_text("old")
        (place / "link").symlink_to(outside)
        backend = LimpetWorkspaceBackend(
            place, limpet.Policy(sandbox=limpet.SandboxPolicy(mode="workspace"))
        )

        async def main() -> None:
            await backend.write_bytes(f"{place}/inside", b"new")
            for operation in (
                backend.write_bytes(f"{outside}/file", b"new"),
                backend.write_bytes(f"{place}/link/file", b"new"),
                backend.write_bytes(f"{outside}/more/new", b"new"),
                backend.make_dir(f"{outside}/new"),
                backend.remove(f"{outside}/file"),
            ):
                with pytest.raises(OSError):
                    await operation

        asyncio.run(main())
        assert (place / "inside").read_text() == "new"
        assert [path.name for path in outside.iterdir()] == ["file"]
        assert (outside / "file").read_text() == "old"
    finally:
        shutil.rmtree(outside)


def test_hidden_files_cannot_be_read_by_file_operations(place: Path) -> None:
    (place / "secret").write_text("s3cret")
    policy = limpet.Policy(
        sandbox=limpet.SandboxPolicy(mode="workspace"), hide=(str(place / "secret"),)
    )
    backend = LimpetWorkspaceBackend(place, policy)
    with pytest.raises(OSError):
        asyncio.run(backend.read_bytes(f"{place}/secret"))


def test_a_read_only_workspace_can_be_looked_at(place: Path) -> None:
    """Without a place for temporary files too."""
    (place / "file").write_text("text")
    backend = LimpetWorkspaceBackend(
        place, limpet.Policy(sandbox=limpet.SandboxPolicy(mode="read-only"))
    )

    async def main() -> None:
        assert await backend.read_bytes(f"{place}/file") == b"text"
        assert [entry.name for entry in await backend.list_dir(str(place))] == ["file"]
        assert (await backend.stat(f"{place}/file")).size == 4
        assert await Workspace(backend).realpath("file") == f"{place}/file"
        with pytest.raises(OSError):
            await backend.write_bytes(f"{place}/file", b"")

    asyncio.run(main())
    assert (place / "file").read_text() == "text"


def test_permissions_of_commands_leave_file_operations_alone(place: Path) -> None:
    policy = limpet.Policy(permissions=limpet.PermissionPolicy(allow=("ls",), unmatched="deny"))
    backend = LimpetWorkspaceBackend(place, policy)
    asyncio.run(backend.write_bytes(f"{place}/file", b"text"))
    assert asyncio.run(backend.read_bytes(f"{place}/file")) == b"text"


def test_names_that_are_no_text_survive_a_round_trip(place: Path) -> None:
    name = "odd\udcff \n'$(x)`"
    backend = LimpetWorkspaceBackend(place)

    async def main() -> None:
        await backend.write_bytes(f"{place}/{name}", b"text")
        (entry,) = await backend.list_dir(str(place))
        assert (entry.name, entry.path) == (name, f"{place}/{name}")
        assert await backend.read_bytes(entry.path) == b"text"
        await backend.remove(entry.path)

    asyncio.run(main())
    assert not list(place.iterdir())


def test_many_at_once_keep_their_files_apart(place: Path) -> None:
    backend = LimpetWorkspaceBackend(place)
    texts = [str(number).encode() * 20_000 for number in range(8)]

    async def main() -> None:
        paths = [f"{place}/{number}" for number in range(8)]
        await asyncio.gather(*map(backend.write_bytes, paths, texts))
        assert await asyncio.gather(*map(backend.read_bytes, paths)) == texts

    asyncio.run(main())


def test_a_file_is_never_read_while_it_is_half_written(place: Path) -> None:
    class Watched(LimpetWorkspaceBackend):
        at_once = most = 0

        async def _do(self, script: str, path: str, stdin: bytes | None = None) -> bytes:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            try:
                return await super()._do(script, path, stdin)
            finally:
                self.at_once -= 1

    async def main() -> int:
        backend = Watched(place)
        path = f"{place}/file"
        await backend.write_bytes(path, b"old")
        writing = asyncio.gather(*(backend.write_bytes(path, b"new") for _ in range(4)))
        await asyncio.gather(writing, *(backend.read_bytes(path) for _ in range(4)))
        return backend.most

    assert asyncio.run(main()) == 1


def test_a_directory_that_is_gone_is_not_made_again(place: Path) -> None:
    backend = LimpetWorkspaceBackend(place)
    place.rmdir()
    for operation in (backend.working_dir(), backend.run(["true"]), backend.read_bytes("/etc/x")):
        with pytest.raises(WorkspaceUnavailableError):
            asyncio.run(operation)
    assert not place.exists()


def test_an_agents_tools_work_in_it(place: Path) -> None:
    """As `ctx.workspace`, which is how tools of any make reach it."""

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last: Any = messages[-1].parts[-1]
        if last.part_kind == "tool-return":
            return ModelResponse(parts=[TextPart(f"it says: {last.content}")])
        return ModelResponse(parts=[ToolCallPart("count", {"name": "file"})])

    agent = Agent(FunctionModel(model))

    @agent.tool
    async def count(ctx: RunContext[object], name: str) -> str:
        await ctx.workspace.write_text(name, "1\n2\n")
        return (await ctx.workspace.run(["wc", "-l", name])).stdout

    done = asyncio.run(agent.run("How many?", workspace=LimpetWorkspaceBackend(place)))
    assert done.output == "it says: 2 file\n"
