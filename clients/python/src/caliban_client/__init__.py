"""Speaks the line protocol of ``caliban serve app``. No dependencies."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from inspect import isawaitable
from typing import Any, Literal

__all__ = ["Caliban", "CalibanError", "Event", "Tab"]

Event = dict[str, Any]
"""A frame of the session, or one of the tab's own (state, answered, changed, snapshot, gap)."""

Content = str | list[dict[str, Any]]
Answer = dict[str, Any]
Mode = Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
QuestionHandler = Callable[[Event], Answer | Awaitable[Answer]]
EventHandler = Callable[[Event, dict[str, Any]], None]

# The longest line of a server, in bytes.
_LONGEST = 64 * 1024 * 1024


class CalibanError(Exception):
    """A request that was not granted; ``code`` stays the same from version to version."""

    def __init__(self, code: str, message: str, how: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.how = how
        """How a question was answered, where it was (``already_answered``)."""


class Caliban:
    """A server and everything it tells."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        process: asyncio.subprocess.Process | None = None,
    ) -> None:
        self._writer = writer
        self._process = process
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._tabs: dict[str, Tab] = {}
        self._ids = 0
        self._over = False
        self._hearing = asyncio.ensure_future(self._hear(reader))

    @classmethod
    async def start(
        cls,
        command: str = "caliban",
        args: Sequence[str] = (),
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Caliban:
        """Starts ``caliban serve app`` as a child of this process."""
        process = await asyncio.create_subprocess_exec(
            command,
            *args,
            "serve",
            "app",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=env,
            limit=_LONGEST,
        )
        assert process.stdin is not None and process.stdout is not None
        server = cls(process.stdout, process.stdin, process)
        try:
            await server.request("hello", protocol=1)
        except CalibanError as error:
            code = await process.wait()
            reason = f"the server ended at once, with the exit code {code}"
            raise CalibanError("ended", reason) from error
        return server

    @classmethod
    async def connect(cls, path: str) -> Caliban:
        """Connects to a server that listens at a socket."""
        reader, writer = await asyncio.open_unix_connection(path, limit=_LONGEST)
        server = cls(reader, writer)
        await server.request("hello", protocol=1)
        return server

    async def request(self, op: str, **fields: Any) -> Any:
        """Sends a request and waits for its answer."""
        if self._over:
            raise CalibanError("ended", "the server is gone")
        self._ids += 1
        line_id = f"c{self._ids}"
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[line_id] = answer
        given = {name: value for name, value in fields.items() if value is not None}
        self._writer.write((json.dumps({"op": op, "id": line_id, **given}) + "\n").encode())
        return await answer

    async def open(
        self,
        *,
        tab: str | None = None,
        cwd: str | None = None,
        resume: str | None = None,
        fork: bool = False,
        name: str | None = None,
        model: str | None = None,
        mode: Mode | None = None,
        effort: Effort | None = None,
        system: str | None = None,
        append_system: str | None = None,
        settings: Mapping[str, Any] | None = None,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        tools: Sequence[str] | None = None,
        max_turns: int | None = None,
        max_budget_usd: float | None = None,
        on_event: EventHandler | None = None,
        on_question: QuestionHandler | None = None,
    ) -> Tab:
        """Opens a tab, or joins one that is open."""
        called = tab or resume or str(uuid.uuid4())
        session = {
            "tab": called,
            "cwd": cwd,
            "resume": resume,
            "fork": fork or None,
            "name": name,
            "model": model,
            "mode": mode,
            "effort": effort,
            "system": system,
            "append_system": append_system,
            "settings": None if settings is None else dict(settings),
            "allow": list(allow) or None,
            "deny": list(deny) or None,
            "tools": None if tools is None else list(tools),
            "max_turns": max_turns,
            "max_budget_usd": max_budget_usd,
        }
        return await self._join(called, session, Tab(self, called, on_event, on_question))

    async def _join(self, name: str, session: dict[str, Any], tab: Tab) -> Tab:
        self._tabs[name] = tab
        try:
            tab.view = await self.request("open", **session)
        except CalibanError:
            del self._tabs[name]
            raise
        if tab.view["tab"] != name:
            # It is open under another name.
            del self._tabs[name]
            tab.name = tab.view["tab"]
            self._tabs[tab.name] = tab
        return tab

    async def tabs(self) -> list[dict[str, Any]]:
        """How all tabs are doing."""
        return list((await self.request("tabs"))["tabs"])

    async def shutdown(self) -> int | None:
        """Ends every session and the server; returns its exit code."""
        await self.request("shutdown")
        self._writer.close()
        await self._hearing
        return await self._process.wait() if self._process else None

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._take(json.loads(line))
        finally:
            # Whatever ended it, nobody waits for what cannot come any more.
            self._end()

    def _take(self, told: dict[str, Any]) -> None:
        if "re" not in told:
            if tab := self._tabs.get(told["tab"]):
                tab._hear(told)
            return
        waiting = self._waiting.pop(told["re"], None) if told["re"] else None
        if waiting is None or waiting.done():
            return
        if error := told.get("error"):
            refused = CalibanError(error["code"], error["message"], error.get("how"))
            waiting.set_exception(refused)
        else:
            waiting.set_result(told["ok"])

    def _end(self) -> None:
        self._over = True
        gone = CalibanError("ended", "the server is gone")
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(gone)
        for tab in self._tabs.values():
            tab._end(gone)


class Tab:
    """One session with its queue."""

    def __init__(
        self,
        server: Caliban,
        name: str,
        on_event: EventHandler | None,
        on_question: QuestionHandler | None,
    ) -> None:
        self.name = name
        self.seq = 0
        """The number of the last event that was heard."""
        self.view: dict[str, Any] = {}
        self._server = server
        self._on_event = on_event
        self._on_question = on_question
        self._results: dict[str, list[asyncio.Future[Event]]] = {}
        self._contents: dict[str, Content] = {}
        self._asking: set[asyncio.Task[None]] = set()

    async def send(self, content: Content, request: str | None = None) -> Event:
        """Sends a prompt and waits for its result. The same ``request`` is worked on once."""
        request = request or str(uuid.uuid4())
        ended: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._results.setdefault(request, []).append(ended)
        self._contents[request] = content
        try:
            sent = await self._server.request(
                "send", tab=self.name, request=request, content=content
            )
        except CalibanError:
            self._results[request].remove(ended)
            if not self._results[request]:
                self._forget(request)
            raise
        # What ended before is not told again.
        if sent.get("duplicate") and sent.get("result"):
            self._settle(request, sent["result"])
        return await ended

    async def cancel(self, request: str | None = None, queue: str | None = None) -> None:
        """Stops what is worked on, or takes a request back."""
        await self._server.request("cancel", tab=self.name, request=request, queue=queue)

    async def answer(self, question: str, **answer: Any) -> None:
        await self._server.request("answer", tab=self.name, question=question, **answer)

    async def set(
        self, model: str | None = None, mode: Mode | None = None, effort: Effort | None = None
    ) -> None:
        await self._server.request("set", tab=self.name, model=model, mode=mode, effort=effort)

    async def events(self, since: int | None = None) -> int:
        """Hears everything after an event again; returns the number that comes next."""
        since = self.seq if since is None else since
        heard = await self._server.request("events", tab=self.name, since=since)
        return int(heard["next"])

    async def close(self, session: str | None = None) -> None:
        await self._server.request("close", tab=self.name, session=session)

    def _hear(self, line: dict[str, Any]) -> None:
        self.seq = line["seq"]
        event = line["event"]
        if self._on_event:
            try:
                self._on_event(event, line)
            except Exception as error:  # What is told goes on, whatever a handler makes of it.
                self._report("a handler of events failed", error)
        if event["type"] == "question" and self._on_question:
            self._start(self._ask(self._on_question, event))
        if event["type"] == "result" and line.get("request"):
            self._settle(line["request"], event)
        if event["type"] == "snapshot":
            # It stands for what was not told, which may have been results: they are asked for.
            for request in list(self._results):
                self._start(self._catch_up(request))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    @staticmethod
    def _report(message: str, error: Exception) -> None:
        context = {"message": message, "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)

    async def _catch_up(self, request: str) -> None:
        content = self._contents.get(request)
        try:
            sent = await self._server.request(
                "send", tab=self.name, request=request, content=content
            )
        except CalibanError:
            # It is told when everything ends.
            return
        if sent.get("result"):
            self._settle(request, sent["result"])

    async def _ask(self, handler: QuestionHandler, event: Event) -> None:
        try:
            answer = handler(event)
            if isawaitable(answer):
                answer = await answer
        except Exception as error:
            self._report("a handler of questions failed, so the answer is no", error)
            is_call = event.get("kind", "permission") == "permission"
            answer = {"decision": "deny"} if is_call else {"action": "cancel"}
        try:
            await self.answer(event["question"], **answer)
        except CalibanError:
            # Somebody else may have answered, or nobody is there any more.
            pass

    def _settle(self, request: str, result: Event) -> None:
        for ended in self._forget(request):
            if not ended.done():
                ended.set_result(result)

    def _forget(self, request: str) -> list[asyncio.Future[Event]]:
        self._contents.pop(request, None)
        return self._results.pop(request, [])

    def _end(self, error: CalibanError) -> None:
        for waiting in self._results.values():
            for ended in waiting:
                if not ended.done():
                    ended.set_exception(error)
        self._results.clear()
        self._contents.clear()
