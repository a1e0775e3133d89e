"""What a call gives, and the one place that truncates."""

import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.toolkit.definition import Tool, tool, tool_of
from agentd.toolkit.result import ToolResult, model_content, render, truncate


@dataclass(frozen=True)
class Report:
    message: str
    pages: int


@tool(group="x")
def text() -> str:
    """Text."""
    return "plain"


@tool(group="x")
def report() -> Report:
    """Report."""
    return Report("three pages", 3)


@tool(group="x")
def numbers() -> list[int]:
    """Numbers."""
    return [1, 2]


def made(function: object) -> Tool:
    found = tool_of(function)
    assert found is not None
    return found


@pytest.mark.requirement("S1-16")
@pytest.mark.parametrize(
    "wrong",
    [
        {"ok": True, "error": "no"},
        {"ok": True, "error_type": "x"},
        {"ok": False},
        {"ok": False, "error": "no"},
        {"ok": False, "error_type": "x"},
    ],
)
def test_there_is_an_error_if_and_only_if_it_is_not_ok(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="if and only if"):
        ToolResult(**wrong)  # type: ignore[arg-type]


@pytest.mark.requirement("S2-03", "S0-11", "S1-22")
def test_a_value_becomes_text_for_the_model_and_data_for_programs() -> None:
    assert render(made(text), text()).content == "plain"
    made_report = render(made(report), report())
    assert (made_report.content, made_report.data) == (
        "three pages",
        {"message": "three pages", "pages": 3},
    )
    assert not made_report.is_error
    assert render(made(numbers), numbers()).data == [1, 2]


@pytest.mark.requirement("S0-11")
def test_a_value_of_another_shape_than_promised_is_an_error() -> None:
    assert render(made(numbers), ["not a number"]).error_type == "invalid_output"


def test_the_model_is_told_the_type_the_error_and_what_to_try() -> None:
    failed = ToolResult.failure("path_conflict", "it is there", next_action_hint="read it")
    assert model_content(failed, limit_chars=1000) == "path_conflict: it is there\nread it"


@given(st.text(max_size=300), st.integers(1, 200))
def test_the_head_is_kept_and_the_notice_says_how_much_is_missing(whole: str, limit: int) -> None:
    shown = truncate(whole, limit)
    if len(whole) <= limit:
        assert shown == whole
        return
    assert shown.startswith(whole[:limit])
    found = re.search(r"\[cut: (\d+) of (\d+) characters", shown)
    assert found is not None
    assert (int(found[1]), int(found[2])) == (len(whole) - limit, len(whole))
    assert shown.endswith("]")


def test_a_text_that_can_be_had_in_parts_is_cut_at_a_line_and_names_the_next_call() -> None:
    whole = "\n".join(f"line {number}" for number in range(100))
    shown = truncate(whole, 50, lambda kept: f"read(offset={kept.count(chr(10))})")
    kept, notice = shown.rsplit("\n[cut: ", 1)
    assert whole.startswith(kept)
    assert kept.endswith("\n")
    assert f"read(offset={kept.count(chr(10))})" in notice
