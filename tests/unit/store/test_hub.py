"""The in-memory instance that visits the file: it is renewed, since each visit leaves something."""

from pathlib import Path

import pytest

from agentd.store import hub as hubs
from agentd.store.hub import Hub
from agentd.store.schema import admit


def test_after_many_visits_the_instance_is_a_new_one_and_nothing_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "_RENEW_AFTER", 3)
    hub = Hub(tmp_path / "agentd.duckdb", busy_s=5, admit=admit)
    instances: list[object] = []
    for visit in range(7):
        hub.begin()
        hub.do("INSERT INTO sessions (id, created_at) VALUES ($id, now())", {"id": str(visit)})
        hub.commit()
        instances.append(hub._db)
        hub.detach()
        assert hub.untouched()
    assert len(set(map(id, instances))) == 3
    assert instances[0] is instances[2] is not instances[3]
    hub.begin()
    assert hub.run("SELECT count(*) AS n FROM sessions") == [{"n": 7}]
    hub.commit()
    hub.close()
