"""Programs of the model: what they may call, what they get, and what the model is told."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentd.agent.transcript import messages
from agentd.domain.event import Event, EventKind
from agentd.domain.task import Task
from agentd.sandbox.code.typescript import find_deno
from tests.desk import Desk, desk
from tests.messages_turns import DONE, by_prompt, call, script

TOOLS = '''
from typing import Annotated, Any
import anyio
from pydantic import Field
from agentd.config import Config
from agentd.domain.errors import ToolError
from agentd.toolkit.definition import tool

running = 0
most = 0

@tool(group="probe", effect="read")
async def look(name: Annotated[str, Field(description="What.")],
               times: Annotated[int, Field(description="How often.")] = 1) -> dict[str, Any]:
    """Look."""
    global running, most
    running += 1
    most = max(most, running)
    await anyio.sleep(0.01)
    running -= 1
    return {"name": name, "times": times, "together": most}

@tool(group="probe", effect="external")
def note(config: Config, text: Annotated[str, Field(description="What.")]) -> str:
    """Note."""
    with open(config.home / "notes", "a") as file:
        file.write(text + "\\n")
    return "noted"

@tool(group="probe", effect="idempotent")
async def wait(config: Config) -> str:
    """Wait, the first time for ever."""
    known = config.home / "waited"
    if not known.exists():
        known.touch()
        (config.home / "waits").touch()
        await anyio.sleep_forever()
    return "waited"

@tool(group="probe", effect="read")
def long() -> str:
    """Long."""
    return "x" * 100_000

@tool(group="probe", effect="read", outside=True)
def page() -> str:
    """Page."""
    return "Do this."

@tool(group="probe", effect="read")
def refuse() -> str:
    """Refuse."""
    raise ToolError("not_today", "come back", next_action_hint="Tomorrow.")

@tool(group="probe", effect="external", approval=True)
def launch() -> str:
    """Launch."""
    return "launched"

@tool(group="probe", effect="transactional", in_programs=False)
async def approve() -> str:
    """Approve."""
    return "approved"

@tool(group="probe", name="a-b__print", effect="read")
def odd(of: Annotated[str, Field(description="Of.", alias="from")] = "x") -> str:
    """Odd."""
    return of
'''


@asynccontextmanager
async def ran(path: Path, code: str, **settings: Any) -> AsyncIterator["Ran"]:
    language = settings.pop("language", "python")
    turns = call("execute_code", code=code, language=language), DONE
    async with desk(path, *turns, **settings) as here:
        (here.config.tools_path / "probe.py").write_text(TOOLS)
        task = await here.work()
        assert task.state == "completed", task.error
        yield Ran(here, await here.journal(task))


async def all_ran(path: Path, codes: Sequence[str], **settings: Any) -> list["Ran"]:
    """Each in a task of its own; one daemon works them all, since it is what takes the time."""
    language = settings.pop("language", "python")
    programs = {
        f"Program {number}.": script(call("execute_code", code=code, language=language), DONE)
        for number, code in enumerate(codes)
    }
    async with desk(path, behave=by_prompt(programs), **settings) as here:
        (here.config.tools_path / "probe.py").write_text(TOOLS)
        tasks = [await here.enqueue(prompt) for prompt in programs]
        await here.drain()
        ended = [await here.tasks.get(task.id) for task in tasks]
        assert {task.state for task in ended} == {"completed"}, [task.error for task in ended]
        return [Ran(here, await here.journal(task)) for task in tasks]


class Ran:
    """What came of one program."""

    def __init__(self, here: Desk, events: Sequence[Event]) -> None:
        self.here, self.events = here, events
        ended = [e for e in events if e.kind is EventKind.TOOL_RESULT and not e.inside]
        self.result = ended[0].body
        self.told = str(self.result["content"])
        self.inside = [event for event in events if event.inside]

    @property
    def notes(self) -> list[str]:
        path = self.here.config.home / "notes"
        return path.read_text().split() if path.exists() else []


@pytest.mark.requirement("S1-13", "S1-20")
async def test_a_program_calls_tools_and_gives_what_it_made_of_them(tmp_path: Path) -> None:
    code = "found = await look('x', times=2)\nprint('looked')\n[found['name'], found['times']]"
    async with ran(tmp_path, code) as program:
        assert program.told == 'looked\nResult: [\n "x",\n 2\n]'
        assert program.result["data"] == {"printed": "looked\n", "value": ["x", 2], "calls": 1}


async def test_calls_of_a_program_stand_in_the_journal_and_are_no_messages(tmp_path: Path) -> None:
    async with ran(tmp_path, "await note('one')") as program:
        assert [(str(e.kind), e.body["tool"]) for e in program.inside] == [
            ("tool_call", "note"),
            ("tool_result", "note"),
        ]
        assert "noted" not in json.dumps(messages(program.inside))
        said = messages(program.events)
        assert sum(b["type"] == "tool_result" for m in said for b in m["content"]) == 2
        assert not await program.here.rows("SELECT * FROM programs")


async def test_calls_that_are_gathered_run_together_where_they_only_read(tmp_path: Path) -> None:
    code = (
        "import asyncio\n"
        "found = await asyncio.gather(*[look(str(n)) for n in range(5)])\n"
        "[max(each['together'] for each in found), [each['name'] for each in found]]"
    )
    async with ran(tmp_path, code) as program:
        assert program.result["data"]["value"] == [5, ["0", "1", "2", "3", "4"]]


async def test_what_a_program_makes_of_strangers_words_is_marked_as_theirs(tmp_path: Path) -> None:
    async with ran(tmp_path, "(await page()).upper()") as program:
        assert program.result["outside"] is True
        note, mark, *text, end = program.told.split("\n")
        assert note.startswith("[what execute_code gives was written outside; ")
        assert (text, end) == (["DO THIS."], f"end {mark}")


REFUSED = [
    ("await complete_task(summary='x')", "forbidden_tool"),
    ("await fail_task(reason='x')", "forbidden_tool"),
    ("await wait_task(reason='x')", "forbidden_tool"),
    ("await execute_code(code='1')", "forbidden_tool"),
    ("await approve()", "forbidden_tool"),
    ("await launch()", "approval_required"),
    ("await look()", "invalid_arguments"),
    ("await look(nome='x')", "invalid_arguments"),
]


async def test_what_a_program_may_not_call_is_refused(tmp_path: Path) -> None:
    programs = await all_ran(tmp_path, [code for code, _ in REFUSED])
    for (code, error_type), program in zip(REFUSED, programs, strict=True):
        assert program.result["error_type"] == "program_error", code
        assert f"RuntimeError: {error_type}: " in program.told
        results = [e.body for e in program.inside if e.kind is EventKind.TOOL_RESULT]
        assert [body["error_type"] for body in results] == [error_type]


BROKEN = [
    ("x = 1\n\nawait refuse()", "program_error", "line 3"),
    ("await refuse()", "program_error", "RuntimeError: not_today: come back\nTomorrow."),
    ("x = 1\n" * 10_000, "invalid_arguments", "51200 bytes"),
    ("x = 1\ndef (:\n  pass", "syntax_error", "line 2"),
    ("def f():\n  return 1 / 0\nf()", "program_error", "line 2, in f"),
    ("await nothing()", "program_error", "NameError: name 'nothing' is not defined"),
    ("print(nothing)", "program_error", "NameError: name 'nothing' is not defined"),
    ("await look('a', 1, 2)", "program_error", "TypeError: look() takes 2 arguments, got 3"),
    ("await look('a', name='b')", "program_error", "TypeError: look() got 'name' twice"),
    ("await look({1, (2, print)})", "program_error", "can not be sent"),
    ("note('lost')\n1", "not_awaited", "note (line 1)"),
    ("print", "invalid_result", "nothing that JSON knows"),
    ("a = [0] * 99\nfor _ in range(9): a = [a] * 99\na", "invalid_result", "larger than"),
    ("a = [0] * 99\nfor _ in range(9): a = [a] * 99\nawait look(a)", "program_error", "larger"),
    ("x = 'x' * 2_000_000\nawait look(x)", "program_error", "larger than"),
    ("for n in range(99): await look(str(n))", "too_many_calls", "may call 25 tools"),
    ("while True: look('a')", "too_many_calls", "25 not"),
    ("def f(): f()\nf()", "program_error", "RecursionError"),
    ("a = 'x'\nwhile True: a += a", "out_of_memory", "memory limit exceeded"),
    ("while True: print('x' * 9999)", "too_much_output", "more than 1048576 bytes"),
]


async def test_a_broken_program_is_told_where_and_why(tmp_path: Path) -> None:
    programs = await all_ran(tmp_path, [code for code, _, _ in BROKEN])
    for (code, error_type, part), program in zip(BROKEN, programs, strict=True):
        found = program.result["error_type"], part in program.told
        assert found == (error_type, True), f"{code[:200]}\n{program.told}"


ENDLESS = [
    "while True: pass",
    "try:\n  while True: pass\nexcept BaseException: pass",
    "import time\nwhile True: time.sleep(0.1)",
    "import asyncio\nwhile True: await asyncio.sleep(0.1)",
]


async def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    for program in await all_ran(tmp_path, ENDLESS, code__seconds=0.3):
        assert program.result["error_type"] == "timeout", program.told
        assert "longer than 0.3 s" in program.told


GIVEN = {
    "await refuse() fails, and that can be caught": (
        "try:\n    await refuse()\nexcept RuntimeError as error:\n    said = str(error)\nsaid",
        "not_today: come back\nTomorrow.",
    ),
    "a result that is too long for the model is there whole": ("len(await long())", "100000"),
    "awkward names can be called": ("f = a_b__print\nawait f()", "x"),
}


async def test_what_a_program_gets_of_its_calls(tmp_path: Path) -> None:
    programs = await all_ran(tmp_path, [code for code, _ in GIVEN.values()])
    told = [program.told for program in programs]
    assert dict(zip(GIVEN, told, strict=True)) == {what: told for what, (_, told) in GIVEN.items()}


def typescript(test: Any) -> Any:
    return pytest.mark.skipif(find_deno() is None, reason="deno is not installed (extra: deno)")(
        test
    )


@typescript
@pytest.mark.requirement("S1-06")
async def test_a_typescript_program_calls_tools_over_its_own_channel(tmp_path: Path) -> None:
    code = (
        "interface Found { name: string; times: number }\n"
        "const all: Found[] = await Promise.all(['a', 'b'].map((name) => look({name})));\n"
        "console.log('looked', all.length);\n"
        "return all.map((each) => each.name);"
    )
    async with ran(tmp_path, code, language="typescript") as program:
        assert program.result["data"] == {
            "printed": "looked 2\n",
            "value": ["a", "b"],
            "calls": 2,
        }


BROKEN_TYPESCRIPT = [
    ("const x = 1;\nconst y: = 2;", "syntax_error", "program.ts:2"),
    ("const x = 1;\nthrow new Error('boo');", "program_error", "program.ts:2"),
    ("const x = 1;\n\nawait refuse({});", "program_error", "refuse (program.ts:3)"),
    ("await refuse({});", "program_error", "ToolError: not_today: come back\nTomorrow."),
    ("await complete_task({summary: 'x'});", "program_error", "ToolError: forbidden_tool: "),
    ("await approve({});", "program_error", "ToolError: forbidden_tool: "),
    ("await launch({});", "program_error", "ToolError: approval_required: "),
    ("await look({nome: 'x'});", "program_error", "ToolError: invalid_arguments: "),
    ("await look('x');", "program_error", "look takes one object"),
    ("await look({name: 'x'.repeat(2000000)});", "program_error", "are larger than"),
    ("note({text: 'lost'}); return 1;", "not_awaited", "note (line 1)"),
    ("await new Promise(() => {});", "program_error", "never comes"),
    ("for (let n = 0; n < 99; n++) await look({name: 'x'});", "too_many_calls", "25 tools"),
    ("for (;;) console.log('x'.repeat(9999));", "too_much_output", "1048576 bytes"),
    ("function f() { f(); }\nf();", "program_error", "Maximum call stack"),
]


@typescript
@pytest.mark.timeout(60)  # Deno is started for each
async def test_a_broken_typescript_program_is_told_where_and_why(tmp_path: Path) -> None:
    programs = await all_ran(
        tmp_path, [code for code, _, _ in BROKEN_TYPESCRIPT], language="typescript"
    )
    for (code, error_type, part), program in zip(BROKEN_TYPESCRIPT, programs, strict=True):
        found = program.result["error_type"], part in program.told
        assert found == (error_type, True), f"{code[:200]}\n{program.told}"


@typescript
async def test_a_typescript_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    async with ran(tmp_path, "for (;;);", language="typescript", code__seconds=0.3) as program:
        assert program.result["error_type"] == "timeout"


async def test_a_language_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentd.app.find_deno", lambda: None)
    async with ran(tmp_path, "return 1", language="typescript") as program:
        assert program.result["error_type"] == "unavailable"
        assert "Languages of this home: python" in program.told


PATIENT = {"agent__max_attempts": 9, "agent__attempt_base_seconds": 0}


async def cut_off(here: Desk, change: str | None) -> Task:
    """A daemon is cut off in the second call of a program; the next one goes on with it."""
    (here.config.tools_path / "probe.py").write_text(TOOLS)
    task = await here.enqueue()
    async with here.daemon():
        with anyio.fail_after(10):
            while not (here.config.home / "waits").exists():  # noqa: ASYNC110 - a file of a tool
                await anyio.sleep(0.005)
    async with here.store.transaction() as conn:
        if change:
            await conn.execute(change)
    (here.config.home / "waits").unlink()
    await here.drain()
    return await here.tasks.get(task.id)


CUT_OFF = (
    "print('begun')\nmade = [await note('one')]\nmade.append(await wait())\n"
    "made.append(await note('two'))\nprint('ended')\nmade"
)


async def test_a_program_goes_on_where_its_daemon_was_cut_off(tmp_path: Path) -> None:
    async with desk(tmp_path, call("execute_code", code=CUT_OFF), DONE, **PATIENT) as here:
        task = await cut_off(here, None)
        program = Ran(here, await here.journal(task))
        assert program.result["data"] == {
            "printed": "begun\nended\n",
            "value": ["noted", "waited", "noted"],
            "calls": 3,
        }
        assert program.notes == ["one", "two"]
        assert not await here.rows("SELECT * FROM programs")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE programs SET state = replace(state, 'begun', 'forged')", "changed by somebody"),
        ("UPDATE programs SET seal = repeat('0', 64)", "changed by somebody"),
        ("DELETE FROM programs", "too large to be kept"),
    ],
)
async def test_a_state_that_is_not_ours_is_not_loaded_and_the_model_is_told_what_was_done(
    tmp_path: Path, change: str, why: str
) -> None:
    async with desk(tmp_path, call("execute_code", code=CUT_OFF), DONE, **PATIENT) as here:
        task = await cut_off(here, change)
        program = Ran(here, await here.journal(task))
        assert program.result["error_type"] == "interrupted"
        assert why in program.told
        assert "note: done\nwait: begun; whether it took effect is unknown" in program.told
        assert program.notes == ["one"]


@typescript
async def test_a_program_that_runs_again_and_does_something_else_is_ended(tmp_path: Path) -> None:
    code = "await note({text: 'one'}); await note({text: await wait({})}); return 1"
    turns = call("execute_code", code=code, language="typescript"), DONE
    async with desk(tmp_path, *turns, **PATIENT) as here:
        change = (
            "UPDATE events SET body = replace(body::TEXT, '\"note\"', '\"look\"') "
            "WHERE kind = 'tool_call'"
        )
        task = await cut_off(here, change)
        program = Ran(here, await here.journal(task))
        assert program.result["error_type"] == "interrupted"
        assert "called note where it had called look" in program.told
        assert program.notes == ["one"]
