"""A chat model of LangChain that runs commands with limpet.

pip install 'limpet[langchain]'
python examples/langchain_tool.py
"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from limpet.integrations.langchain import tools


class Scripted(GenericFakeChatModel):
    """Stands in for a model: it makes one call, then answers."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ANN401, D102 -- as the base class
        return self


def main() -> None:
    """Let the model call the tool until it has an answer."""
    offered = {tool.name: tool for tool in tools()}  # bash, and those for background tasks
    call = {"name": "bash", "args": {"command": "echo $((6 * 7))"}, "id": "call-1"}
    script = [AIMessage("", tool_calls=[call]), AIMessage("It is 42.")]
    # A real one: init_chat_model("anthropic:claude-sonnet-4-5") of the package langchain.
    model = Scripted(messages=iter(script)).bind_tools(list(offered.values()))

    history: list[BaseMessage] = [HumanMessage("What is 6 times 7? Use the shell.")]
    while True:
        answer = model.invoke(history)
        history.append(answer)
        if not answer.tool_calls:
            break
        for wanted in answer.tool_calls:
            # A ToolMessage: the content is for the model, the artifact for the program.
            message = offered[wanted["name"]].invoke(wanted)
            print(
                f"{wanted['args']} -> {message.content!r}, {message.artifact['duration_s']:.3f} s"
            )
            history.append(message)
    print("answer:", answer.content)


if __name__ == "__main__":
    main()
