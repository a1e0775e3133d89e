"""execute_code is a definition: the loop carries it out. What programs do: unit/agent."""

from agentd.toolkit.definition import tool_of
from agentd.tools.runtime.execute_code import execute_code


def test_execute_code_is_routed_by_the_loop() -> None:
    found = tool_of(execute_code)
    assert found is not None
    assert found.routed
    assert not found.for_programs
