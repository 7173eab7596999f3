"""One case per capability of the Python SDK. The first argument names the case; CLAUDE_CLI is the
program. A case that does not hold raises."""

import asyncio
import os
import sys

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from claude_agent_sdk.types import PermissionRuleValue


def options(**more):
    return ClaudeAgentOptions(cli_path=os.environ["CLAUDE_CLI"], cwd=os.getcwd(), **more)


async def once(prompt, **more):
    return [message async for message in query(prompt=prompt, options=options(**more))]


def texts(messages):
    blocks = [b for m in messages if isinstance(m, AssistantMessage) for b in m.content]
    return [b.text for b in blocks if isinstance(b, TextBlock)]


def results(messages):
    blocks = [b for m in messages if isinstance(m, UserMessage) and isinstance(m.content, list) for b in m.content]
    return [b for b in blocks if isinstance(b, ToolResultBlock)]


async def turn(client, prompt):
    await client.query(prompt)
    return [message async for message in client.receive_response()]


async def one_shot():
    messages = await once("hi")
    assert isinstance(messages[0], SystemMessage) and messages[0].subtype == "init"
    assert texts(messages) == ["Hello."], messages
    end = messages[-1]
    assert isinstance(end, ResultMessage) and end.result == "Hello." and not end.is_error
    assert end.num_turns == 1 and end.total_cost_usd > 0 and end.usage["output_tokens"] == 7
    assert end.session_id


async def several_turns():
    async with ClaudeSDKClient(options()) as client:
        info = await client.get_server_info()
        assert "models" in info and "commands" in info, info
        assert texts(await turn(client, "first")) == ["one"]
        assert texts(await turn(client, "second")) == ["two"]


async def interrupt():
    async with ClaudeSDKClient(options(include_partial_messages=True)) as client:
        await client.query("go")
        stream = client.receive_response()
        async for message in stream:
            if isinstance(message, StreamEvent):
                break
        await client.interrupt()
        rest = [message async for message in stream]
        assert rest[-1].subtype == "error_during_execution", rest
        assert texts(await turn(client, "again")) == ["after"]


async def consent():
    asked = []

    async def decide(name, given, context):
        asked.append((name, given["command"]))
        match given["command"]:
            case "touch allowed":
                return PermissionResultAllow()
            case "touch changed":
                return PermissionResultAllow(updated_input={"command": "touch other"})
            case "touch ruled":
                rule = PermissionRuleValue(tool_name="Bash", rule_content="touch ruled:*")
                update = PermissionUpdate(type="addRules", rules=[rule], behavior="allow", destination="session")
                return PermissionResultAllow(updated_permissions=[update])
            case _:
                return PermissionResultDeny(message="Not that.")

    async with ClaudeSDKClient(options(can_use_tool=decide)) as client:
        messages = await turn(client, "go")
    assert [command for _, command in asked] == [
        "touch allowed", "touch changed", "touch ruled", "touch denied",
    ], asked
    found = set(os.listdir("."))
    assert {"allowed", "other", "ruled", "ruled2"} <= found, found
    assert not {"changed", "denied"} & found, found
    denied = results(messages)[-1]
    assert denied.is_error and denied.content == "Not that."
    assert messages[-1].permission_denials[0]["tool_name"] == "Bash"


async def hooks():
    seen = []

    async def before(given, tool_use_id, context):
        seen.append((given["hook_event_name"], given["tool_name"]))
        if "secret" in given["tool_input"]["command"]:
            return {"hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "No secrets.",
            }}
        return {}

    async def after(given, tool_use_id, context):
        seen.append((given["hook_event_name"], given["tool_name"]))
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "well done"}}

    async def prompt(given, tool_use_id, context):
        seen.append((given["hook_event_name"], given["prompt"]))
        return {}

    registered = {
        "PreToolUse": [HookMatcher(matcher="Bash", hooks=[before])],
        "PostToolUse": [HookMatcher(matcher="Bash", hooks=[after])],
        "UserPromptSubmit": [HookMatcher(hooks=[prompt])],
    }
    async with ClaudeSDKClient(options(hooks=registered)) as client:
        messages = await turn(client, "go")
    assert seen == [
        ("UserPromptSubmit", "go"),
        ("PreToolUse", "Bash"),
        ("PreToolUse", "Bash"),
        ("PostToolUse", "Bash"),
    ] or seen == [
        ("UserPromptSubmit", "go"),
        ("PreToolUse", "Bash"),
        ("PostToolUse", "Bash"),
        ("PreToolUse", "Bash"),
    ], seen
    assert results(messages)[-1].content == "No secrets."


async def changes():
    async with ClaudeSDKClient(options()) as client:
        first = await turn(client, "first")
        assert first[0].data["model"] == "claude-sonnet-4-6"
        await client.set_model("claude-haiku-4-5")
        await client.set_permission_mode("acceptEdits")
        second = await turn(client, "second")
        init = [m for m in second if isinstance(m, SystemMessage) and m.subtype == "init"][0]
        assert init.data["model"] == "claude-haiku-4-5", init
        assert init.data["permissionMode"] == "acceptEdits", init


async def partial():
    messages = await once("hi", include_partial_messages=True)
    events = [m.event for m in messages if isinstance(m, StreamEvent)]
    assert events[0]["type"] == "message_start" and events[-1]["type"] == "message_stop"
    deltas = [e["delta"]["text"] for e in events if e["type"] == "content_block_delta"]
    assert "".join(deltas) == "Hello there." and len(deltas) > 1, deltas


async def sub_agents():
    scout = AgentDefinition(description="Looks", prompt="You are a scout.", tools=["Bash"])
    messages = await once("outer", agents={"scout": scout})
    calls = [b for m in messages if isinstance(m, AssistantMessage) for b in m.content if isinstance(b, ToolUseBlock)]
    assert [call.name for call in calls] == ["Task", "Bash"], calls
    inner = [m for m in messages if getattr(m, "parent_tool_use_id", None) == calls[0].id]
    assert inner, messages
    assert messages[-1].result == "All done."


async def sessions():
    first = (await once("first"))[-1]
    resumed = await once("second", resume=first.session_id)
    assert resumed[-1].session_id == first.session_id
    continued = await once("third", continue_conversation=True)
    assert continued[-1].session_id == first.session_id
    forked = await once("fourth", resume=first.session_id, fork_session=True)
    assert forked[-1].session_id != first.session_id


async def structured():
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    messages = await once("go", output_format={"type": "json_schema", "schema": schema})
    assert messages[-1].structured_output == {"ok": True}, messages[-1]


async def limits():
    messages = []
    try:
        async for message in query(prompt="go", options=options(max_turns=1)):
            messages.append(message)
    except Exception as error:
        assert "maximum number of turns" in str(error), error
    assert messages[-1].subtype == "error_max_turns" and messages[-1].num_turns == 2
    messages = []
    try:
        async for message in query(prompt="go", options=options(max_budget_usd=0.00001)):
            messages.append(message)
    except Exception:
        pass
    assert messages[-1].subtype == "error_max_budget_usd", messages[-1]


async def own_tools():
    @tool("add", "Adds two numbers", {"a": int, "b": int})
    async def add(given):
        return {"content": [{"type": "text", "text": f"sum {given['a'] + given['b']}"}]}

    server = create_sdk_mcp_server("calc", "1.0.0", [add])
    async with ClaudeSDKClient(options(mcp_servers={"calc": server}, allowed_tools=["mcp__calc__add"])) as client:
        messages = await turn(client, "add")
    init = [m for m in messages if isinstance(m, SystemMessage) and m.subtype == "init"][0]
    assert "mcp__calc__add" in init.data["tools"], init
    assert init.data["mcp_servers"][0]["status"] == "connected", init
    content = results(messages)[0].content
    assert content == "sum 5" or content == [{"type": "text", "text": "sum 5"}], content


async def checkpoints():
    kept = dict(
        enable_file_checkpointing=True,
        permission_mode="acceptEdits",
        extra_args={"replay-user-messages": None},
    )
    with open("a.txt", "w") as file:
        file.write("one\n")
    point = session = None
    async with ClaudeSDKClient(options(**kept)) as client:
        await client.query("make it two")
        async for message in client.receive_response():
            if isinstance(message, UserMessage) and message.uuid and not point:
                point = message.uuid
            if isinstance(message, ResultMessage):
                session = message.session_id
    assert open("a.txt").read() == "two\n"
    async with ClaudeSDKClient(options(resume=session, **kept)) as client:
        await client.query("")
        async for _ in client.receive_response():
            await client.rewind_files(point)
            break
    assert open("a.txt").read() == "one\n"


asyncio.run(globals()[sys.argv[1]]())
