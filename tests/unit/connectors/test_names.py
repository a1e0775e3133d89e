"""Whatever servers and tools are called, their names here are legal and told apart."""

import pytest

from agentd.connectors.names import exported, prefixes, split
from agentd.toolkit.definition import NAME


@pytest.mark.requirement("C25")
def test_a_legal_name_stays_and_an_illegal_one_is_mended() -> None:
    assert exported("time", ["get.time/x", "get-time"]) == {
        "get-time": "time__get-time",
        "get.time/x": "time__get_time_x",
    }


@pytest.mark.requirement("C25")
def test_names_that_become_the_same_get_numbers_and_the_legal_one_keeps_its_own() -> None:
    found = exported("a", ["x.y", "x y", "x_y"])
    assert found == {"x_y": "a__x_y", "x y": "a__x_y_2", "x.y": "a__x_y_3"}


def test_the_order_of_a_listing_does_not_decide() -> None:
    assert exported("a", ["x.y", "x y"]) == exported("a", ["x y", "x.y"])


def test_prefixes_can_not_be_confused() -> None:
    found = prefixes(["a", "a__b", "a_", "a.b", "ä", ""])
    assert len(set(found.values())) == len(found)
    assert not [each for each in found.values() if "__" in each or each.endswith("_")]
    for server, prefix in found.items():
        for name in exported(prefix, ["_x", "b__c", "c"]).values():
            parts = split(name)
            assert parts is not None
            assert parts[0] == prefix, server


@pytest.mark.requirement("C25")
def test_long_names_are_cut_and_still_told_apart() -> None:
    tools = ["t" * 200 + "a", "t" * 200 + "b"]
    (prefix,) = prefixes(["s" * 300]).values()
    found = exported(prefix, tools)
    assert len(set(found.values())) == 2
    assert all(NAME.fullmatch(each) for each in found.values())


def test_what_is_no_name_of_a_tool_is_told() -> None:
    assert split("read_file") is None
    assert split("__x") is None
