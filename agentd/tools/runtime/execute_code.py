"""execute_code: a definition only; the loop carries it out.

So each call of the program goes the way of the model's own: agent/programs.py.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from agentd.config import Config
from agentd.domain.errors import ToolError
from agentd.domain.run import Run
from agentd.toolkit.definition import Effect, tool


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """`value`: of the last expression (Python) or of `return` (TypeScript)."""

    printed: str
    value: Any
    calls: int


def _available(config: Config) -> bool:
    return config.code.enabled


@tool(
    group="runtime",
    effect=Effect.IDEMPOTENT,
    routed=True,
    available=_available,
)
def execute_code(
    run: Run,
    code: Annotated[str, Field(min_length=1, description="The program, at most 51,200 bytes.")],
    language: Annotated[
        Literal["python", "typescript"], Field(description="What it is written in.")
    ] = "python",
) -> ProgramOutput:
    """Run a program that calls your tools: for many calls, loops, and filtering what they give.

    Python: `await tool(name=value)`; several at once: `await asyncio.gather(...)`. You get what was
    printed, and the value of the last expression. No classes with a base, no generators; of the
    standard library json, re, math, datetime, collections, itertools, functools, asyncio and such.
    TypeScript: `await tool({name: value})`, console.log, and `return value`.

    A tool gives an object (dict) or text, and raises (RuntimeError; Error) when it fails. What a
    name can not have is `_`. There are no files, no network and no processes but through tools.
    60 seconds, 25 tool calls. Not from inside: tools that end the task, execute_code.
    """
    raise ToolError("unavailable", f"{language} code runs in the loop of a run: {run.id}, {code}")
