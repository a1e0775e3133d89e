"""read_large_result: the rest of a result that was too long for one look, a page at a time."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agentd.domain.errors import ToolError
from agentd.store.large_results import LargeResultStore
from agentd.toolkit.definition import Effect, tool

_PAGE_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class ResultPage:
    """`tool`: what gave the result. `outside`: strangers wrote it."""

    content: str
    id: str
    page: int
    pages: int
    left_chars: int
    tool: str
    outside: bool

    @property
    def notice(self) -> str | None:
        """What is missing, and the call for it."""
        if not self.left_chars:
            return None
        return (
            f"[page {self.page} of {self.pages}, {self.left_chars} characters follow. Go on with "
            f"{_call(self.id, self.page + 1)}]"
        )

    @property
    def outside_of(self) -> str | None:
        return self.tool if self.outside else None

    def next_call(self, _shown: str) -> str:
        """Says that the result has pages already, so none is made of a page."""
        return _call(self.id, self.page)


@tool(group="context", effect=Effect.READ)
async def read_large_result(
    results: LargeResultStore,
    id: Annotated[  # noqa: A002 - the name that the model reads
        str, Field(description="The id that the notice names: lr_…")
    ],
    page: Annotated[int, Field(ge=1, le=_PAGE_MOST, description="The first is 1.")] = 1,
) -> ResultPage:
    """Read a page of a result that was too long to be shown whole; its notice names the call."""
    found = await results.page(id, page)
    if found is None:
        raise ToolError(
            "not_found",
            f"there is no stored result {id[:80]!r}",
            next_action_hint="Take the id from the notice at the end of a result, lr_ included; or "
            "call the tool that gave the result again.",
        )
    if not found.content:
        raise ToolError(
            "past_end",
            f"{id} has {found.pages} pages, so there is no page {page}",
            next_action_hint=f"{_call(id, found.pages)} shows the last one.",
        )
    return ResultPage(
        found.content, id, page, found.pages, found.left_chars, found.tool, found.outside
    )


def _call(id_: str, page: int) -> str:
    return f'read_large_result(id="{id_}", page={page})'
