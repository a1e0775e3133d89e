"""Programs in Python, on Monty: an interpreter that was never given files, network or processes.

It runs in a process of its own, with an empty environment. Tools are names that the program does
not define; a call of one stops the interpreter and is answered from here.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import anyio

from agentd.sandbox.code.jsonable import NotJson, jsonable
from agentd.sandbox.code.program import (
    Answer,
    Asked,
    Broken,
    Ended,
    NotRestored,
    Paused,
    Setting,
    Snapshot,
    Step,
    Unavailable,
)

if TYPE_CHECKING:
    import pydantic_monty as monty

_SCRIPT = "program.py"
_GRACE_S = 2.0  # beyond its time, for the interpreter to say itself where it stood
_RECYCLE_AFTER = 100
_SLEEPS = ("system.sleep", "system.async_sleep")


class PythonCode:
    """Processes that are kept warm; the first program starts the first one."""

    keeps_state = True

    def __init__(self, *, processes: int) -> None:
        self._processes = processes
        self._pool: monty.AsyncMonty | None = None
        self._opening = anyio.Lock()

    @asynccontextmanager
    async def open(self, setting: Setting) -> AsyncGenerator["PythonProgram"]:
        limits = setting.limits
        async with AsyncExitStack() as stack:
            try:
                checkout = (await self._opened()).checkout(
                    script_name=_SCRIPT,
                    limits={
                        "max_feed_duration_secs": limits.run_s,
                        "max_memory": limits.memory_bytes,
                        "max_recursion_depth": limits.recursion,
                    },
                )
                session = await stack.enter_async_context(checkout)
            except (ImportError, OSError, RuntimeError) as error:
                raise Unavailable(f"Monty can not be started: {error}") from error
            yield PythonProgram(session, setting)

    async def _opened(self) -> "monty.AsyncMonty":
        import pydantic_monty  # noqa: PLC0415 - 30 ms that only programs need

        async with self._opening:
            if self._pool is None:
                pool = pydantic_monty.AsyncMonty(
                    max_processes=self._processes, max_checkouts_per_worker=_RECYCLE_AFTER
                )
                await pool.__aenter__()
                self._pool = pool
            return self._pool

    async def aclose(self) -> None:
        """End the processes."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.__aexit__(None, None, None)


class _TooManyCalls(Exception):
    """The program is to be ended: it could catch what is raised inside."""


class _Printed:
    """What a program prints. Called in a thread of the interpreter's client.

    The client tells a program only at its next pause that its output was refused, and a program may
    have none: `full` ends it at once.
    """

    def __init__(self, most_bytes: int, full: Callable[[], None]) -> None:
        self._left_bytes = most_bytes
        self._full = full
        self._parts: list[str] = []

    def __call__(self, _stream: str, text: str) -> None:
        if self._left_bytes < 0:
            return
        self._left_bytes -= len(text.encode())
        if self._left_bytes < 0:
            self._full()
        else:
            self._parts.append(text)

    @property
    def is_full(self) -> bool:
        return self._left_bytes < 0

    @property
    def text(self) -> str:
        return "".join(self._parts)


class PythonProgram:
    """One program in one checked out process."""

    def __init__(self, session: "monty.AsyncMontySession", setting: Setting) -> None:
        import pydantic_monty  # noqa: PLC0415 - loaded already

        self._monty = pydantic_monty
        self._session = session
        self._setting = setting
        self._code = ""
        self._running = anyio.CancelScope()
        self._loop = asyncio.get_running_loop()
        left_bytes = setting.limits.output_bytes - len(setting.printed.encode())
        self._output = _Printed(left_bytes, self._cut_off)
        self._at: Any = None
        self._open: dict[int, Asked] = {}  # by the interpreter's own number
        self._asked = 0
        self._spent_s = setting.spent_s

    @property
    def printed(self) -> str:
        return self._setting.printed + self._output.text

    @property
    def spent_s(self) -> float:
        return self._spent_s

    async def start(self, code: str) -> Step:
        self._code = code
        return await self._go(lambda: self._session.feed_start(code, print_callback=self._output))

    async def restore(self, snapshot: Snapshot) -> Step:
        self._open = {int(own): each for own, each in snapshot.open.items()}
        self._asked = snapshot.asked
        try:
            at = await self._session.load_snapshot(snapshot.state, print_callback=self._output)
        except (self._monty.MontyError, RuntimeError, ValueError) as error:
            raise NotRestored(str(error)) from error
        if not isinstance(at, self._monty.AsyncFutureSnapshot):
            raise NotRestored("it does not wait for a call")
        self._at = at
        return self._paused(at.pending_call_ids)

    async def resume(self, answers: Mapping[int, Answer]) -> Step:
        given: dict[int, Any] = {}
        for own in self._at.pending_call_ids:
            answer = answers[self._open.pop(own).number]
            given[own] = (
                {"return_value": answer.value}
                if answer.error is None
                else {"exc_type": "RuntimeError", "message": answer.error}
            )
        return await self._go(lambda: self._at.resume(given))

    def snapshot(self) -> Snapshot | None:
        state: bytes = self._at.dump()
        if len(state) > self._setting.limits.snapshot_bytes:
            return None
        open_calls = {str(own): asked for own, asked in self._open.items()}
        return Snapshot(state, open_calls, self._asked)

    async def _go(self, step: Callable[[], Any]) -> Step:
        """Run to the next pause or to the end, within the time that is left."""
        started = anyio.current_time()
        left_s = self._setting.limits.run_s - self._spent_s
        self._running = anyio.CancelScope(deadline=started + max(left_s, 0) + _GRACE_S)
        try:
            with self._running:
                self._at = await step()
                return await self._to_a_pause()
        except _TooManyCalls:
            return Broken("too_many_calls", self._too_many())
        except self._monty.MontyError as error:
            return self._broken(error)
        finally:
            self._spent_s += anyio.current_time() - started
        return self._too_much() if self._output.is_full else self._out_of_time()

    def _cut_off(self) -> None:
        self._loop.call_soon_threadsafe(self._running.cancel)

    async def _to_a_pause(self) -> Step:
        m = self._monty
        while True:
            at = self._at
            if isinstance(at, m.MontyComplete):
                return self._ended(at)
            if isinstance(at, m.AsyncFutureSnapshot):
                return self._paused(at.pending_call_ids)
            if isinstance(at, m.AsyncNameLookupSnapshot):
                self._at = await self._look_up(at)
            elif at.is_os_function:
                self._at = await self._system(at)
            else:
                self._at = await at.resume(self._ask(at))

    async def _system(self, at: Any) -> Any:
        """It may sleep, on its own time; everything else is refused by the interpreter."""
        if at.function_name not in _SLEEPS:
            return await at.resume_not_handled()
        ends_at = self._running.deadline - _GRACE_S
        await anyio.sleep(min(at.args[0], ends_at - anyio.current_time()))
        if anyio.current_time() >= ends_at:
            self._running.cancel()
        return await at.resume({"return_value": None})

    async def _look_up(self, at: Any) -> Any:
        name = at.variable_name
        if at.object_id is not None or name not in self._setting.functions:
            return await at.resume()

        def function() -> NoReturn:
            raise AssertionError(name)  # it stands for the name only; calls of it stop there

        function.__name__ = name
        return await at.resume(value=function)

    def _ask(self, at: Any) -> Any:
        """What the call expression gives: something to await, or an exception at once."""
        name = at.function_name
        function = self._setting.functions.get(name)
        if function is None or at.object_id is not None:
            return _raise("NameError", f"name {name!r} is not defined")
        names = list(function.parameters)
        args, kwargs = at.args, at.kwargs
        if len(args) > len(names):
            return _raise("TypeError", f"{name}() takes {len(names)} arguments, got {len(args)}")
        given = dict(zip(names, args, strict=False))
        if twice := given.keys() & kwargs.keys():
            return _raise("TypeError", f"{name}() got {min(twice)!r} twice")
        given |= kwargs
        try:
            arguments = jsonable(
                # As the stubs do: None is what was left out.
                {function.parameters.get(k, k): v for k, v in given.items() if v is not None},
                most_bytes=self._setting.limits.value_bytes,
            )
        except NotJson as error:
            return _raise("TypeError", f"the arguments of {name}() can not be sent: {error}")
        if self._asked == self._setting.limits.tool_calls:
            raise _TooManyCalls
        self._asked += 1
        line = self._line(at.position.start)
        self._open[at.call_id] = Asked(self._asked, function.tool, arguments, line)
        return {"future": ...}

    def _line(self, offset: int) -> int:
        """0 when the program was restored: its text is in the interpreter only."""
        return self._code.encode()[:offset].count(b"\n") + 1 if self._code else 0

    def _paused(self, waited_for: list[int]) -> Paused:
        return Paused(sorted((self._open[own] for own in waited_for), key=lambda a: a.number))

    def _too_much(self) -> Broken:
        most = self._setting.limits.output_bytes
        return Broken("too_much_output", f"The program printed more than {most} bytes.")

    def _too_many(self) -> str:
        most = self._setting.limits.tool_calls
        left = len(self._open)
        return (
            f"A program may call {most} tools, and this one wanted more; it was ended there. "
            f"{most - left} calls were carried out{f', {left} not' if left else ''}."
        )

    def _ended(self, at: "monty.MontyComplete") -> Step:
        if self._open:
            calls = ", ".join(f"{each.tool} (line {each.line})" for each in self._open.values())
            return Broken(
                "not_awaited",
                f"called without await, so it was not carried out: {calls}. "
                "Write `await tool(...)`. Everything before has happened.",
            )
        try:
            return Ended(jsonable(at.output, most_bytes=self._setting.limits.value_bytes))
        except NotJson as error:
            return Broken("invalid_result", f"the value of the last line can not be sent: {error}")

    def _broken(self, error: Exception) -> Broken:
        m = self._monty
        if isinstance(error, m.MontySyntaxError):
            return Broken("syntax_error", _shown(error.display("traceback")))
        if not isinstance(error, m.MontyRuntimeError):
            return Broken("crashed", f"the interpreter has ended: {error}")
        text = _shown(error.display("traceback"))
        cause = error.exception()
        if isinstance(cause, TimeoutError) and "limit exceeded" in str(cause):
            return self._out_of_time(text)
        if isinstance(cause, MemoryError):
            return Broken("out_of_memory", text)
        return Broken("program_error", text)

    def _out_of_time(self, text: str = "") -> Broken:
        run_s = self._setting.limits.run_s
        return Broken("timeout", f"{text}\nThe program ran longer than {run_s:g} s.".strip())


def _raise(kind: str, message: str) -> dict[str, str]:
    return {"exc_type": kind, "message": message}


def _shown(traceback: str) -> str:
    return traceback.replace("<python-input-0>", _SCRIPT)
