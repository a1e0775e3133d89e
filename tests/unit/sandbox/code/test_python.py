"""Python programs on Monty: processes come back whatever became of a program."""

import pytest

from agentd.sandbox.code.program import (
    Broken,
    Ended,
    Function,
    Limits,
    NotRestored,
    Paused,
    Setting,
    Snapshot,
    Unavailable,
)
from agentd.sandbox.code.python import PythonCode

SETTING = Setting({"look": Function("look", {})}, Limits(run_s=0.2))


async def test_a_process_that_had_to_be_ended_is_replaced() -> None:
    python = PythonCode(processes=1)
    try:
        for code in ("while True: pass", "while True: print('x' * 99_999)"):
            async with python.open(SETTING) as program:
                assert isinstance(await program.start(code), Broken)
            async with python.open(SETTING) as program:
                assert await program.start("1 + 1") == Ended(2)
    finally:
        await python.aclose()


async def test_nothing_of_a_program_is_left_for_the_next() -> None:
    python = PythonCode(processes=1)
    try:
        async with python.open(SETTING) as program:
            assert await program.start("import json\nleft = 1\njson.left = 2") != Ended(None)
        async with python.open(SETTING) as program:
            step = await program.start("left")
            assert isinstance(step, Broken)
            assert "NameError" in step.message
    finally:
        await python.aclose()


async def test_a_snapshot_that_is_none_is_refused() -> None:
    python = PythonCode(processes=1)
    try:
        async with python.open(SETTING) as program:
            with pytest.raises(NotRestored):
                await program.restore(Snapshot(b"nonsense", {}, 0))
    finally:
        await python.aclose()


async def test_a_snapshot_that_is_too_large_is_not_kept() -> None:
    python = PythonCode(processes=1)
    setting = Setting({"look": Function("look", {})}, Limits(snapshot_bytes=100_000))
    try:
        async with python.open(setting) as program:
            assert isinstance(await program.start("x = 'x' * 200_000\nawait look()"), Paused)
            assert program.snapshot() is None
    finally:
        await python.aclose()


async def test_a_machine_without_the_interpreter_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONTY_BIN", "/nonexistent/monty")
    python = PythonCode(processes=1)
    with pytest.raises(Unavailable, match="can not be started"):
        async with python.open(SETTING):
            pass
