"""Tools that the suite calls by name; lies in the `tools/` of the home that is served."""

from typing import Annotated

from pydantic import Field

from agentd.domain.errors import ToolError
from agentd.toolkit.definition import tool
from agentd.toolkit.progress import Progress
from agentd.toolkit.result import ToolResult

_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5E"
    "rkJggg=="
)


@tool(group="suite", effect="read")
def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


@tool(group="suite", effect="read")
def test_image_content() -> ToolResult:
    """Give an image."""
    source = {"type": "base64", "media_type": "image/png", "data": _PIXEL}
    return ToolResult.success([{"type": "image", "source": source}])


@tool(group="suite", effect="read")
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("failed", "This tool intentionally returns an error for testing")


@tool(group="suite", effect="read")
async def test_tool_with_progress(progress: Progress | None) -> str:
    """Tell of its progress."""
    for done in (0, 50, 100):
        if progress is not None:
            progress.tell(done, 100, None)
    return "done"


@tool(group="suite", effect="read")
def json_schema_2020_12_tool(
    name: Annotated[str | None, Field(description="Anything.")] = None,
) -> str:
    """Give a text."""
    return str(name)
