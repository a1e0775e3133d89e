"""Ids sort by age."""

import time
import uuid

from agentd.domain.ids import new_id


def test_ids_are_version_7_and_later_ones_sort_later() -> None:
    before = time.time_ns() // 1_000_000
    ids = [new_id() for _ in range(1000)]
    assert ids == sorted(set(ids))
    first = uuid.UUID(ids[0])
    assert first.version == 7
    assert before <= first.int >> 80 <= time.time_ns() // 1_000_000  # RFC 9562: milliseconds
