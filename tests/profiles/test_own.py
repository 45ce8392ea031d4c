"""A profile of one's own takes ten lines."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import limpet
from limpet.events import Output
from limpet.profiles import Answer, Input, Profile, Run, Tool, profile


class Lines(Input):
    command: str
    most: int = 3


def first_lines(given: Lines, result: limpet.Result) -> Answer:
    return Answer("\n".join(result.output.splitlines()[: given.most]), result.is_error)


OWN = Profile(
    "own", (Tool("sh", "Runs it.", Lines, lambda given: Run(given.command), first_lines),)
)


def test_it_answers_as_it_says() -> None:
    assert profile(OWN).call_sync({"command": "seq 9"}) == Answer("1\n2\n3")
    assert profile(OWN).call_sync({"command": "seq 9", "most": 1}).text == "1"


def test_its_input_is_validated() -> None:
    said = profile(OWN).call_sync({"command": "seq 9", "most": "all"})
    assert said.text == 'most must be a whole number, not "all"'
    assert "there is no 'x'" in profile(OWN).call_sync({"command": "true", "x": 1}).text


def test_it_is_described() -> None:
    (tool,) = profile(OWN).definitions(limpet.ToolContext("/tmp"))
    assert tool.name == tool.title == "sh"
    assert tool.description.splitlines() == ["Runs it.", "", "Working directory: /tmp"]
    assert tool.input_schema["required"] == ["command"]


def test_it_streams_the_engines_own_events() -> None:
    async def events() -> list[object]:
        return [one async for one in profile(OWN).stream({"command": "echo hi"})]

    *seen, answer = asyncio.run(events())
    assert any(isinstance(one, Output) and one.text == "hi\n" for one in seen)
    assert answer == Answer("hi")


def test_it_may_shape_the_policy_and_each_call() -> None:
    def shape(policy: limpet.Policy) -> limpet.Policy:
        return replace(policy, rules=limpet.RulePolicy(blocked_patterns=("secret",)))

    box = profile(replace(OWN, shape=shape))
    assert box.call_sync({"command": "echo secret"}).is_error


def test_it_takes_no_options_and_the_others_only_their_own() -> None:
    with pytest.raises(TypeError, match="local_mode"):
        profile(OWN, local_mode=True)
    with pytest.raises(TypeError):
        profile("modes", local_mode=True)
    with pytest.raises(LookupError, match="default, report, tasks, modes, tail, streams"):
        profile("nothing")


def test_a_tool_that_fails_is_a_defect_and_not_an_answer() -> None:
    def broken(given: Lines, result: limpet.Result) -> Answer:
        raise KeyError("a defect")

    tool = Tool("sh", "Runs it.", Lines, lambda given: Run(given.command), broken)
    with pytest.raises(KeyError):
        profile(Profile("own", (tool,))).call_sync({"command": "true"})
