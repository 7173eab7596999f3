"""A whole conversation by the protocol's own Python library."""
import asyncio
import os

import acp
from acp.schema import ClientCapabilities
from acp.schema import RequestPermissionResponse


class Editor(acp.Client):
    def __init__(self):
        self.updates = []
        self.news = asyncio.Event()

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        self.news.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        wanted = "reject_once" if "refused" in (tool_call.title or "") else "allow_once"
        option = next(option for option in options if option.kind == wanted)
        outcome = {"outcome": "selected", "optionId": option.option_id}
        return RequestPermissionResponse.model_validate({"outcome": outcome})

    def kinds(self):
        return [update.session_update for update in self.updates]

    def said(self):
        chunks = [it for it in self.updates if it.session_update == "agent_message_chunk"]
        return "".join(chunk.content.text for chunk in chunks)

    async def until(self, kind, seen):
        while kind not in self.kinds()[seen:]:
            self.news.clear()
            await self.news.wait()


async def main():
    workspace = os.environ["WORKSPACE"]
    editor = Editor()
    spawned = acp.spawn_agent_process(
        editor, os.environ["CALIBAN"], "serve", "acp", env=dict(os.environ), cwd=workspace
    )
    async with spawned as (agent, _):
        met = await agent.initialize(protocol_version=1, client_capabilities=ClientCapabilities())
        assert met.protocol_version == 1 and met.agent_capabilities.load_session, met
        session = await agent.new_session(cwd=workspace, mcp_servers=[])
        assert session.modes.current_mode_id == "default", session
        answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("hi")])
        assert answer.stop_reason == "end_turn", answer
        assert editor.said() == "hello from the model", editor.said()
        assert "agent_thought_chunk" in editor.kinds(), editor.kinds()

        answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("make")])
        assert answer.stop_reason == "end_turn", answer
        ends = [getattr(it, "status", None) for it in editor.updates]
        assert "completed" in ends and "failed" in ends, ends

        seen = len(editor.updates)
        working = asyncio.create_task(
            agent.prompt(session_id=session.session_id, prompt=[acp.text_block("long")])
        )
        await editor.until("agent_message_chunk", seen)
        await agent.cancel(session_id=session.session_id)
        answer = await working
        assert answer.stop_reason == "cancelled", answer

        listed = await agent.list_sessions(cwd=workspace)
        assert [it.session_id for it in listed.sessions] == [session.session_id], listed
        await agent.set_session_mode(session_id=session.session_id, mode_id="plan")
        await agent.close_session(session_id=session.session_id)
        seen = len(editor.updates)
        await agent.load_session(
            session_id=session.session_id, cwd=workspace, mcp_servers=[]
        )
        assert "user_message_chunk" in editor.kinds()[seen:], editor.kinds()[seen:]
        answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("last")])
        assert answer.stop_reason == "end_turn", answer
        assert editor.said().endswith("after"), editor.said()


asyncio.run(asyncio.wait_for(main(), 120))
