"""What a program gets of one of its calls (agent/inside.py): all of it, within bounds."""

from typing import Any

from agentd.agent.inside import InsideJournal, InsideResults
from agentd.domain.redactor import Redactor
from agentd.store.programs import ProgramKey
from agentd.toolkit.result import ToolResult
from tests.unit.agent.test_results import layer

_MOST = 300


def given(result: ToolResult) -> Any:
    """The body of its event."""
    journal = layer().journal
    inside = InsideJournal(journal, ProgramKey(journal.run.session_id, 1, "c"))
    return InsideResults(inside, Redactor(()), _MOST).event("c#1", "probe", result).body


def picture(chars: int) -> ToolResult:
    source = {"type": "base64", "media_type": "image/png", "data": "x" * chars}
    return ToolResult.success([{"type": "text", "text": "A"}, {"type": "image", "source": source}])


def test_data_that_no_program_could_hold_is_left_out() -> None:
    assert given(ToolResult.success("Short.", {"more": "x" * 100}))["data"] == {"more": "x" * 100}
    large = given(ToolResult.success("It is large.", {"more": "x" * _MOST}))
    assert "data" not in large
    assert large["content"] == "It is large."


def test_pictures_that_no_program_could_hold_are_left_out() -> None:
    small = picture(10)
    assert given(small)["content"] == small.content
    assert given(picture(_MOST))["content"] == (
        "A\n[the pictures are left out: they are larger than what a program can take]"
    )
