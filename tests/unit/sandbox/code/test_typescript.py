"""TypeScript programs on Deno: what a program says of its calls is not believed."""

import signal
import sys
from pathlib import Path

import anyio
import pytest

from agentd.sandbox.code.program import Broken, Ended, Function, Limits, Setting, Step
from agentd.sandbox.code.typescript import TypeScriptCode, find_deno

deno = find_deno()
pytestmark = pytest.mark.skipif(deno is None, reason="deno is not installed (extra: deno)")
SETTING = Setting({"look": Function("look", {})}, Limits(run_s=10, tool_calls=3))
# JSON.stringify asks every object, also that of the calls, for its toJSON.
_SAYS = """Object.prototype.toJSON = function () {{
  return this.asked ? {{ asked: {calls} }} : this;
}};
return await look();"""


async def first_step(code: str) -> Step:
    assert deno is not None
    async with TypeScriptCode(deno).open(SETTING) as program:
        return await program.start(code)


def said(**changed: object) -> str:
    call = {"number": 1, "tool": "'look'", "arguments": "'{}'", "line": 1, **changed}
    return "{" + ", ".join(f"{key}: {value}" for key, value in call.items()) + "}"


@pytest.mark.parametrize(
    ("calls", "kind"),
    [
        ([said(number=999), said()], "crashed"),
        ([said(), said()], "crashed"),
        ([said(number=n) for n in (1, 2, 3, 4)], "too_many_calls"),
        ([said(arguments="'[1, 2]'")], "crashed"),
        ([said(arguments="""'{"a": NaN}'""")], "program_error"),
        ([said(tool="{}")], "crashed"),
        ([said(tool="'other'")], "crashed"),
        ([said(line="{}")], "crashed"),
        ([], "crashed"),
    ],
    ids=["number", "twice", "more", "list", "nan", "tool", "unknown", "line", "none"],
)
async def test_calls_that_a_program_makes_up_end_it(calls: list[str], kind: str) -> None:
    step = await first_step(_SAYS.format(calls=f"[{', '.join(calls)}]"))
    assert isinstance(step, Broken)
    assert step.error_type == kind


async def test_what_a_program_gives_is_bounded() -> None:
    step = await first_step("return 'x'.repeat(2 << 20)")
    assert isinstance(step, Broken)
    assert step.error_type == "invalid_result"


@pytest.mark.parametrize(
    "code",
    [
        "const c = await caches.open('x'); await c.put('http://a/', new Response('x'));",
        "localStorage.setItem('a', 'b');",
    ],
    ids=["caches", "storage"],
)
async def test_without_a_wall_a_program_stores_nothing(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would lie on the disk, unbounded, and be there for the next one."""
    monkeypatch.setattr("agentd.sandbox.code.typescript.wall", lambda *_: [])
    step = await first_step(code)
    assert isinstance(step, Broken)
    assert step.error_type == "program_error"


async def test_behind_a_wall_what_a_program_stores_is_little_and_gone_with_it() -> None:
    fill = (
        "const c = await caches.open('x'); let n = 0;"
        "try { for (; n < 100; n++) await c.put(`http://a/${n}`, new Response('x'.repeat(60000))) }"
        "catch {} return n"
    )
    filled = await first_step(fill)
    assert isinstance(filled, Ended)
    assert filled.value < 17  # of 60 KB; there is 1 MiB
    look = "return (await (await caches.open('x')).match('http://a/0')) === undefined"
    assert await first_step(look) == Ended(True)


_DAEMON = """
import anyio
from agentd.sandbox.code.program import Limits, Setting
from agentd.sandbox.code import typescript

async def main():
    typescript.wall = lambda *_: []  # as on a machine that can build none
    code = typescript.TypeScriptCode(typescript.find_deno())
    sleeps = "console.log('begun'); await new Promise((done) => setTimeout(done, 1e8))"
    async with code.open(Setting({}, Limits())) as program, anyio.create_task_group() as group:
        group.start_soon(program.start, sleeps)
        while not program.printed:
            await anyio.sleep(0.01)
        print(program._process.pid, flush=True)

anyio.run(main)
"""


async def test_without_a_wall_a_program_ends_with_its_daemon_too() -> None:
    async with await anyio.open_process([sys.executable, "-c", _DAEMON]) as daemon:
        assert daemon.stdout is not None
        pid = int(await daemon.stdout.receive())
        daemon.send_signal(signal.SIGKILL)
        await daemon.wait()
    with anyio.fail_after(10):
        while is_alive(pid):  # noqa: ASYNC110 - a process that is nobody's child
            await anyio.sleep(0.02)


def is_alive(pid: int) -> bool:
    """A zombie is not, and its adoptive parent may take its time."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
