"""init, config, doctor, completion."""

import json
import stat
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Agentd


def test_init_makes_a_home_that_nobody_else_can_read_and_is_repeatable(
    agentd: Agentd, tmp_path: Path
) -> None:
    home = tmp_path / "new"
    first = agentd("init", "--home", str(home), "--json")
    assert str(home / "agentd.toml") in first.json["made"]
    for path in [home, *home.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    (home / "agentd.toml").write_text("[daemon]\nconcurrency = 9\n")
    again = agentd("--home", str(home), "init")
    assert "it was complete" in again.out
    assert "concurrency = 9" in (home / "agentd.toml").read_text()


def test_init_where_it_can_not_be(agentd: Agentd, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = agentd("init", "--home", str(tmp_path / "file"))
    assert done.code == 2
    assert str(tmp_path / "file") in done.err


def test_config_shows_each_value_and_where_it_came_from(
    agentd: Agentd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "agentd.toml").write_text("[daemon]\nconcurrency = 9\n")
    monkeypatch.setenv("AGENTD_AGENT__MAX_TOKENS", "100")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-very-secret")
    settings = {each["key"]: each for each in agentd("config", "--json").json}
    assert (settings["daemon.concurrency"]["value"], settings["daemon.concurrency"]["source"]) == (
        9,
        "file",
    )
    assert settings["agent.max_tokens"]["source"] == "environment"
    assert settings["models.anthropic.api_key"]["value"] == "********"
    table = agentd("config")
    assert "AGENTD_AGENT__MAX_TOKENS" in table.out
    assert "very-secret" not in table.out + json.dumps(list(settings.values()))
    assert len(agentd("config", "log").out.splitlines()) == 3


def test_a_wrong_setting_stops_every_command_with_file_key_and_expectation(
    agentd: Agentd, home: Path
) -> None:
    (home / "agentd.toml").write_text("[daemon]\nconcurency = 9\n")
    for arguments in (("task", "list"), ("run", "--drain"), ("enqueue", "x")):
        done = agentd(*arguments)
        assert done.code == 2
        assert str(home / "agentd.toml") in done.err
        assert "daemon.concurency" in done.err
        assert "concurrency" in done.err
    assert agentd("--help").code == 0


def test_the_doctor_finds_everything_well(
    agentd: Agentd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home.is_dir()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-1")
    done = agentd("doctor")
    assert done.code == 0, done.out
    assert "✗" not in done.out
    assert {each["check"] for each in agentd("doctor", "--json").json} == {
        "home",
        "configuration",
        "disk",
        "database",
        "workspace",
        "sandbox",
        "model",
        "fallback",
        "prices",
        "tools",
        "secrets",
        "daemon",
    }


@pytest.mark.parametrize(
    ("harm", "check", "says"),
    [
        (lambda home: home.chmod(0o755), "home", "chmod 700"),
        (lambda home: (home / "agentd.toml").write_text("x = 1"), "home", "x"),
        (
            lambda home: (home / "agentd.duckdb").write_bytes(b"no database " * 2000),
            "database",
            "agentd.duckdb",
        ),
        (lambda home: (home / "workspace").rmdir(), "workspace", "workspace"),
        (lambda home: (home / "tools" / "bad.py").write_text("def ("), "tools", "bad.py"),
        (lambda _: None, "model", "ANTHROPIC_API_KEY"),
    ],
)
def test_the_doctor_says_what_is_wrong_and_what_to_do(
    harm: object, check: str, says: str, agentd: Agentd, home: Path
) -> None:
    harm(home)  # type: ignore[operator]
    done = agentd("doctor", "--json")
    assert done.code == 1
    (finding,) = [each for each in done.json if each["check"] == check]
    assert finding["ok"] is False
    assert says in f"{finding['text']} {finding['hint']}"


def doctors(agentd: Agentd, home: Path, check: str, **settings: str) -> dict[str, object]:
    """What the doctor finds, with these keys in the home's file (`__` for the dots)."""
    lines = [f"{key.replace('__', '.')} = {value}\n" for key, value in settings.items()]
    (home / "agentd.toml").write_text("".join(lines))
    (home / "agentd.toml").chmod(0o600)
    (finding,) = [each for each in agentd("doctor", "--json").json if each["check"] == check]
    return dict(finding)


@pytest.mark.parametrize(
    ("settings", "ok", "says"),
    [
        ({}, False, "OPENAI_API_KEY"),
        ({"models__openai__api_key": '"k"'}, True, "with a key"),
        ({"models__openai__base_url": '"http://localhost:1/v1"'}, True, "localhost:1"),
    ],
)
def test_the_doctor_looks_at_a_model_of_openai(
    settings: dict[str, str], ok: bool, says: str, agentd: Agentd, home: Path
) -> None:
    finding = doctors(agentd, home, "model", agent__model='"openai:gpt"', **settings)
    assert finding["ok"] is ok
    assert says in f"{finding['text']} {finding['hint']}"


@pytest.mark.parametrize(
    ("fallback", "ok", "says"),
    [
        ('"openai:gpt"', False, "OPENAI_API_KEY"),
        ('"anthropic:claude-haiku-4-5"', None, "same provider"),
        ('"scripted:demo"', None, "written file"),
    ],
)
def test_the_doctor_looks_at_the_fallback(
    fallback: str, ok: bool | None, says: str, agentd: Agentd, home: Path
) -> None:
    finding = doctors(agentd, home, "fallback", models__fallback=fallback)
    assert finding["ok"] is ok
    assert says in f"{finding['text']} {finding['hint']}"


def test_the_doctor_misses_further_roots(agentd: Agentd, home: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    table = "{{ path = {} }}"
    there, gone = (table.format(json.dumps(str(tmp_path / name))) for name in ("data", "gone"))
    finding = doctors(agentd, home, "workspace", workspace__roots=f"[{there}]")
    assert (finding["ok"], str(finding["text"])[-17:]) == (True, ", 1 further roots")
    finding = doctors(agentd, home, "workspace", workspace__roots=f"[{there}, {gone}]")
    assert finding["ok"] is False
    assert "there is no folder" in str(finding["text"])


def test_the_doctor_names_the_model_whose_price_nobody_knows(agentd: Agentd, home: Path) -> None:
    unknown = '"anthropic:claude-of-tomorrow"'
    finding = doctors(agentd, home, "prices", agent__model=unknown)
    assert finding["ok"] is None
    assert "claude-of-tomorrow" in str(finding["text"])
    price = "{ input = 1, output = 2, cache_write = 1, cache_read = 1 }"
    known = {"models__prices__claude-of-tomorrow": price}
    assert doctors(agentd, home, "prices", agent__model=unknown, **known)["ok"] is True


def test_the_doctor_names_what_is_secret_and_never_shows_it(
    agentd: Agentd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "t0ken-of-mine")
    finding = doctors(agentd, home, "secrets")
    assert finding["ok"] is True
    assert "MY_TOKEN" in str(finding["text"])
    assert "t0ken" not in str(finding)
    lost = doctors(agentd, home, "secrets", secrets__files='["gone.txt"]')
    assert lost["ok"] is False
    assert str(home / "gone.txt") in str(lost["text"])


def test_an_error_does_not_repeat_a_secret(
    agentd: Agentd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "t0ken-of-mine")
    assert home.is_dir()
    done = agentd("task", "view", "t0ken-of-mine")
    assert done.code == 1
    assert "[secret MY_TOKEN]" in done.err
    assert "t0ken" not in done.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_for_each_shell(shell: str, agentd: Agentd) -> None:
    done = agentd("completion", shell)
    assert done.code == 0
    assert "_AGENTD_COMPLETE" in done.out


def test_the_doctor_says_that_commands_run_unconfined(agentd: Agentd, home: Path) -> None:
    found = doctors(agentd, home, "sandbox", sandbox='"off"')
    assert found["ok"] is None
    assert "all rights of the daemon" in str(found["text"])
