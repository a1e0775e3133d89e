"""agentd sandbox: what is in force, and the proof; the battery itself is in tests/guarantees."""

from pathlib import Path

from tests.unit.cli.conftest import Agentd


def test_status_names_each_part(agentd: Agentd, home: Path) -> None:
    done = agentd("sandbox", "status", "--json")
    parts = {each["part"]: each["ok"] for each in done.json}
    assert parts["namespaces"]
    assert parts["capabilities"]
    assert parts["no_new_privs"]
    assert done.code == (0 if all(parts.values()) else 1)
    table = agentd("sandbox", "status")
    assert table.out.splitlines()[0].split() == ["part", "in", "force", "value"]
    assert "user, pid, net, mnt, ipc, uts" in table.out


def test_prove_says_what_stopped_each_attack(agentd: Agentd, home: Path) -> None:
    done = agentd("sandbox", "prove", "--kind", "leaks", "--json")
    attacks = {each["name"]: each for each in done.json["attacks"]}
    assert attacks["environment"]["verdict"] == "held"
    assert attacks["host_name"]["by"] == "UTS namespace"
    assert done.json["held"] == all(each["verdict"] == "held" for each in attacks.values())
    assert done.code == (0 if done.json["held"] else 1)
    table = agentd("sandbox", "prove", "--kind", "leaks")
    assert "find a variable of the daemon" in table.out
    assert "clean environment" in table.out


def test_an_escape_is_told_and_ends_with_1(agentd: Agentd, home: Path) -> None:
    """Without a sandbox all of the home lies open."""
    (home / "agentd.toml").write_text('sandbox = "off"\n')
    done = agentd("sandbox", "prove", "--kind", "files")
    assert done.code == 1
    line = next(each for each in done.out.splitlines() if "read agentd.toml" in each)
    assert "ESCAPED  nothing" in line
