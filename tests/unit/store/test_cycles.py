"""Finding who would wait for themselves, against a search through all orders."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentd.store.cycles import find_cycle

names = st.sampled_from("abcdef")


@given(st.lists(st.tuples(names, names), max_size=12), names)
def test_a_cycle_is_a_real_way_and_is_found_when_there_is_one(
    edges: list[tuple[str, str]], start: str
) -> None:
    cycle = find_cycle(edges, start)
    closure = {there for here, there in edges if here == start}
    while True:
        more = {there for here, there in edges if here in closure} | closure
        if more == closure:
            break
        closure = more
    assert (cycle is not None) == (start in closure)
    if cycle is not None:
        assert cycle[0] == cycle[-1] == start
        assert all(step in edges for step in pairwise(cycle))
