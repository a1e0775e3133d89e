"""TypeScript programs on Deno: what a program says of its calls is not believed."""

import pytest

from agentd.sandbox.code.program import Broken, Function, Limits, Setting, Step
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
