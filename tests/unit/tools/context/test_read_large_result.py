"""read_large_result: the pages of a stored result, joined, are the result."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentd.domain.errors import ToolError
from agentd.domain.event import LargeResult
from agentd.domain.ids import SessionId, TaskId, new_id
from agentd.store.large_results import LargeResultStore, add_large
from agentd.store.store import Store
from agentd.tools.context.read_large_result import read_large_result
from tests.clock import HandClock

_TEXTS = st.text(st.sampled_from("aé\u0301☃😀\U0001f468\u200d\r\n\0'$"), min_size=1, max_size=200)


async def stored(store: Store, content: str, page_chars: int, *, outside: bool = False) -> str:
    large = LargeResult(
        id=f"lr_{new_id()}",
        session_id=SessionId("s"),
        task_id=TaskId("t"),
        call_id="c",
        tool="web_fetch",
        outside=outside,
        content=content,
        page_chars=page_chars,
    )
    async with store.transaction() as conn:
        await add_large(conn, large, HandClock().now())
    return large.id


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=_TEXTS, page_chars=st.integers(1, 50))
async def test_pages_joined_are_the_stored_text(
    store: Store, content: str, page_chars: int
) -> None:
    id_ = await stored(store, content, page_chars)
    results = LargeResultStore(store)
    pages: list[str] = []
    while True:
        page = await read_large_result(results, id_, len(pages) + 1)
        pages.append(page.content)
        assert page.left_chars == len(content) - sum(map(len, pages))
        if page.notice is None:
            break
        assert page.notice.endswith(f'read_large_result(id="{id_}", page={len(pages) + 1})]')
    assert "".join(pages) == content
    assert len(pages) == page.pages
    assert all(len(each) == page_chars for each in pages[:-1])


async def test_a_page_beyond_the_end_and_an_unknown_id_are_said_in_words(store: Store) -> None:
    id_ = await stored(store, "x" * 25, 10)
    results = LargeResultStore(store)
    with pytest.raises(ToolError) as beyond:
        await read_large_result(results, id_, 4)
    assert beyond.value.error_type == "past_end"
    assert "3 pages" in beyond.value.message
    assert f'(id="{id_}", page=3)' in (beyond.value.next_action_hint or "")
    with pytest.raises(ToolError) as unknown:
        await read_large_result(results, "lr_nothing")
    assert unknown.value.error_type == "not_found"


async def test_a_page_of_outside_text_says_from_where_it_is(store: Store) -> None:
    results = LargeResultStore(store)
    foreign = await read_large_result(results, await stored(store, "x", 10, outside=True))
    own = await read_large_result(results, await stored(store, "y", 10))
    assert (foreign.outside_of, own.outside_of) == ("web_fetch", None)
