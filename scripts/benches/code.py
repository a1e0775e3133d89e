"""Programs of the model: how long to their first tool call, and 25 calls beside 25 model turns."""

import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

import anyio

from agentd.daemon.logs import configure_logs
from agentd.sandbox.code.program import Function, Interpreter, Limits, Paused, Setting
from agentd.sandbox.code.python import PythonCode
from agentd.sandbox.code.typescript import TypeScriptCode, find_deno
from scripts.benches.figures import Figure
from tests.desk import desk
from tests.messages_turns import DONE, Turn, call

_TIMES = 15
_CALLS = 25
_SETTING = Setting({"look": Function("look", {})}, Limits(), seed="bench")
_PYTHON = f"for n in range({_CALLS}):\n    await list_tasks(limit=n + 1)"
_TYPESCRIPT = f"for (let n = 0; n < {_CALLS}; n++) await list_tasks({{ limit: n + 1 }});"


def measure() -> list[Figure]:
    figures = anyio.run(_starts)
    turns = anyio.run(_task, *(call("list_tasks", limit=n + 1) for n in range(_CALLS)))
    figures.append(Figure(f"{_CALLS} tool calls in {_CALLS} model turns", turns * 1000, "ms"))
    for language, code in _programs().items():
        took = anyio.run(_task, call("execute_code", code=code, language=language))
        figures.append(Figure(f"… in one {language} program", took * 1000, "ms"))
    return figures


def _programs() -> dict[str, str]:
    found = {"python": _PYTHON}
    return found | {"typescript": _TYPESCRIPT} if find_deno() else found


async def _starts() -> list[Figure]:
    cold = await anyio.run_process([sys.executable, "-m", "scripts.benches.code"])
    python = PythonCode(processes=1)
    await _first_call(python, "await look()")
    warm = median([await _first_call(python, "await look()") for _ in range(_TIMES)])
    await python.aclose()
    figures = [
        Figure("Python program to its first tool call", warm * 1000, "ms", at_most=20),
        Figure("… the first one of a daemon, which loads Monty", float(cold.stdout), "ms"),
    ]
    if deno := find_deno():
        typescript = TypeScriptCode(deno)
        taken = [await _first_call(typescript, "await look({});") for _ in range(_TIMES)]
        name = "TypeScript program to its first tool call"
        figures.append(Figure(name, median(taken) * 1000, "ms"))
    return figures


async def _cold() -> float:
    python = PythonCode(processes=1)
    took = await _first_call(python, "await look()")
    await python.aclose()
    return took * 1000


async def _first_call(interpreter: Interpreter, code: str) -> float:
    start = time.monotonic()
    async with interpreter.open(_SETTING) as program:
        step = await program.start(code)
        took = time.monotonic() - start
    assert isinstance(step, Paused), step
    return took


async def _task(*turns: Turn) -> float:
    """How long a task with these turns takes, its model answering at once."""
    configure_logs(level="error", style="auto")
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="agentd-bench-"))
        here = await stack.enter_async_context(
            desk(
                Path(folder),
                *turns,
                DONE,
                guards__same_call=0,
                guards__same_result=0,
                agent__max_tool_iterations=99,
            )
        )
        task = await here.work()
        assert task.state == "completed", task.error
        assert task.started_at
        assert task.finished_at
        return (task.finished_at - task.started_at).total_seconds()


if __name__ == "__main__":
    print(anyio.run(_cold))
