"""Secrets planted in every place stand nowhere afterwards but where their owner put them."""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from agentd.store.asking import answer, reading
from tests.processes import Home, new_home

_ENV, _URL, _CONFIG, _FILE, _PIN, _GOOGLE = (
    f'c4nary/{name}"+é={number}-8Qx7Zt0Lm'
    for number, name in enumerate(("env", "url", "config", "file", "pin", "google"))
)
_URL = "c4naryUrl-8Qx7Zt0Lm"
_KEY_LINES = [base64.b64encode(bytes([row]) * 48).decode() for row in range(3)]
_CANARIES = {
    "ENV": _ENV,
    "URL": _URL,
    "CONFIG": _CONFIG,
    "FILE": _FILE,
    "PIN": _PIN,
    "GOOGLE": _GOOGLE,
    **{f"KEY_LINE_{number}": line for number, line in enumerate(_KEY_LINES)},
}
_TOOLS = '''
import base64, json, os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import Field

from agentd.domain.errors import ToolError
from agentd.store.connection import Connection
from agentd.toolkit.definition import tool

How = Annotated[str, Field(description="In which spelling.")]
VALUES = [os.environ["CANARY_API_KEY"], os.environ["DB_URL"].split(":")[2].split("@")[0]]
VALUES += [line for line in Path(os.environ["SSH_KEY_PATH"]).read_text().splitlines() if line]
ALL = "\\n".join(VALUES)


@dataclass
class Leaked:
    content: str
    extra: dict[str, Any]


@tool(group="leak", effect="read", outside=True)
def leak(how: How) -> Leaked:
    """Say every secret of the environment."""
    match how:
        case "base64":
            padded = (b"x" * n + ALL.encode() for n in range(3))
            text = "\\n".join(base64.encodebytes(each).decode() for each in padded)
        case "url":
            text = quote(ALL, safe="")
        case "hex":
            text = ALL.encode().hex()
        case "json":
            text = json.dumps(VALUES)
        case "long":  # over the end of a page, and far behind it
            text = "x" * 7990 + ALL + "y" * 20_000 + ALL
        case _:
            text = ALL
    return Leaked(text, {"values": VALUES, "by name": dict.fromkeys(VALUES, 1)})


@tool(group="leak", effect="read")
def wrong(how: How) -> str:
    """Fail and say why."""
    if how == "error":
        raise ToolError("leaked", f"it is {ALL}", next_action_hint=f"try {ALL}")
    raise RuntimeError(f"it is {ALL}")


@tool(group="leak", effect="transactional")
async def note(conn: Connection, text: Annotated[str, Field(description="What.")]) -> str:
    """Write into the database."""
    await conn.execute(
        "INSERT INTO messages VALUES ($id, 'nobody', 'note', $body, now(), now())",
        id="note-1",
        body=f"{text} {ALL}",
    )
    return ALL
'''


def _script() -> str:
    """What the model says: every secret that it could have seen, in every kind of call."""
    said = json.dumps(f"I know {_ENV} and {_CONFIG} and {base64.b64encode(_ENV.encode()).decode()}")
    leaks = "\n".join(
        f'[[turn]]\n[[turn.call]]\ntool = "leak"\ninput = {{ how = "{how}" }}\n'
        for how in ("plain", "base64", "url", "hex", "json", "long")
    )
    return f"""
[[turn]]
error = {{ kind = "overloaded", message = {said} }}
text = {said}
[[turn.call]]
tool = "write"
input = {{ path = "copy.txt", content = {said} }}
[[turn.call]]
tool = "no_such_tool"
input = {{ x = {said} }}
[[turn.call]]
tool = "ls"
input = {{ path = {said} }}
[[turn.call]]
tool = "read"
input = {{ path = ".env" }}
[[turn.call]]
tool = "read"
input = {{ wrong = {said} }}
{leaks}
[[turn]]
[[turn.call]]
tool = "exec"
input = {{ command = "cat .env; base64 .env; od -An -v -tx1 .env | tr -d ' \\n'; env" }}
[[turn.call]]
tool = "exec"
input = {{ command = "cat .env; seq 30000; cat .env" }}
[[turn.call]]
tool = "exec"
input = {{ command = "cat .env; sed 's/./&x/9999' .env; echo ended", background = true }}
[[turn]]
delay_s = 0.5
[[turn.call]]
tool = "process"
input = {{ action = "list" }}
[[turn]]
[[turn.call]]
tool = "wrong"
input = {{ how = "error" }}
[[turn.call]]
tool = "wrong"
input = {{ how = "crash" }}
[[turn.call]]
tool = "note"
input = {{ text = {said} }}
[[turn.call]]
tool = "create_task"
input = {{ prompt = {said}, title = {said}, at = "30d" }}
[[turn]]
[[turn.call]]
tool = "complete_task"
input = {{ summary = {said} }}
"""


@dataclass(frozen=True)
class Planted:
    """`owned`: the files in which the owner himself has put secrets."""

    home: Home
    script: Path
    failing: Path
    owned: frozenset[Path]


def _plant(folder: Path) -> Planted:
    home = new_home(folder)
    key, pin = home.path / "id_key", home.path / "pin.txt"
    google, dotenv = home.path / "google.json", home.workspace / ".env"
    key.write_text("\n".join(["-----BEGIN KEY-----", *_KEY_LINES, "-----END KEY-----", ""]))
    pin.write_text(_PIN)
    google.write_text(json.dumps({"type": "service_account", "private_key": _GOOGLE}))
    dotenv.write_text(f"CANARY_API_KEY={_ENV}\nPIN='{_PIN}'\nFILE={_FILE}\nGOOGLE={_GOOGLE}\n")
    secrets = home.path / "app.env"
    secrets.write_text(f"# of the app\nexport TOKEN_OF_FILE={_FILE}\n")
    settings = home.path / "agentd.toml"
    settings.write_text(
        f"[models.openai]\napi_key = {json.dumps(_CONFIG)}\n"
        '[secrets]\nvariables = ["PIN_OF_ALL"]\nfiles = ["pin.txt", "app.env"]\n'
    )
    settings.chmod(0o600)
    (home.path / "tools" / "leak.py").write_text(_TOOLS)
    script, failing = folder / "script.toml", folder / "failing.toml"
    script.write_text(_script())
    failing.write_text(
        f'[[turn]]\n[[turn.call]]\ntool = "fail_task"\ninput = {{ reason = {json.dumps(_ENV)} }}\n'
    )
    variables = {
        **home.variables,
        "AGENTD_AGENT__MODEL": f"scripted:{script}",
        "AGENTD_MODELS__RETRY_BASE_SECONDS": "0.001",
        "CANARY_API_KEY": _ENV,
        "DB_URL": f"postgresql://me:{_URL}@host/db",
        "SSH_KEY_PATH": str(key),
        "GOOGLE_APPLICATION_CREDENTIALS": str(google),
        "PIN_OF_ALL": _PIN,
    }
    owned = frozenset({settings, key, pin, google, dotenv, secrets})
    return Planted(Home(home.path, variables), script, failing, owned)


def _spellings(value: str) -> Iterator[str]:
    """As text, and as it comes out of the usual encoders; made otherwise than the product does."""
    yield from (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    yield from (quote(value), quote(value, safe=""), value.encode().hex())
    for before in range(3):
        encoded = base64.b64encode(b"x" * before + value.encode() + b"x" * 3).decode()
        yield encoded[4:-8]
    yield value[: len(value) // 2 + 4]  # the larger half alone is no comfort
    yield value[-(len(value) // 2 + 4) :]


def _found(where: str, text: str) -> list[str]:
    flat = re.sub(r"[\r\n]|\\r|\\n", "", text)
    return [
        f"{name} in {where}: …{spelling}…"
        for name, value in _CANARIES.items()
        for spelling in _spellings(value)
        if spelling in text or spelling in flat
    ]


def _tables(home: Home) -> dict[str, str]:
    """Every table and view as text, the archive included."""
    where = {"folder": home.path / "run", "archive": home.path / "archive", "busy_s": 5}
    with reading(home.path / "agentd.duckdb", **where) as instance:
        names = [str(name) for (name,) in answer(instance, "SHOW TABLES").rows]
        assert {"events", "large_results", "all_events"} <= set(names)
        return {
            name: "\n".join(
                str(cell) for row in answer(instance, f"SELECT * FROM {name}").rows for cell in row
            )
            for name in names
        }


@pytest.mark.timeout(120)
async def test_no_planted_secret_is_anywhere_after_a_run(tmp_path: Path) -> None:
    planted = _plant(tmp_path)
    home = planted.home
    said: dict[str, str] = {}

    async def do(*arguments: str, code: int = 0) -> str:
        done = await home.run(*arguments, timeout_s=30)
        assert done.code == code, (arguments, done)
        said[" ".join(arguments[:3])] = done.out + done.err
        return done.out

    task_id = await home.enqueue(f"Use {_ENV}.", "--title", f"with {_PIN}")
    failing = await home.enqueue("Fail.", "--model", f"scripted:{planted.failing}")
    assert (await home.run("schedule", "add", "every 1h", f"Use {_ENV}.")).code == 0
    await do("run", "--drain")
    assert "[secret CANARY_API_KEY]" in said["run --drain"]  # the provider's error, a traceback
    assert (await home.run("session", "send", task_id, f"Mind {_ENV}.")).code == 0

    viewed = json.loads(await do("task", "view", task_id, "--json"))
    assert viewed["state"] == "completed"
    assert viewed["output"].startswith("I know [secret CANARY_API_KEY] and [secret models.openai")
    assert json.loads(await do("task", "view", failing, "--json"))["state"] == "failed"
    history = await do("session", "history", task_id, "--full", "--limit", "200")
    for name in ("CANARY_API_KEY", "DB_URL", "SSH_KEY_PATH", "PIN_OF_ALL", "app.env"):
        assert f"[secret {name}]" in history, name
    assert "read_large_result" in history
    (log,) = (home.path / "run/processes").iterdir()
    assert log.read_text().endswith("ended\n")
    await do("fs", "read", ".env")
    await do("tools", "call", "leak", '{"how": "base64"}', "--json")
    await do("leak", "wrong", "crash", code=1)
    await do("leak", "wrong", "error", code=1)
    await do("task", "view", _ENV, code=1)
    await do("config")
    assert "[secret CANARY_API_KEY]" in (home.workspace / "copy.txt").read_text()

    tables = _tables(home)
    await do("db", "backup")
    assert "moved 0 sessions" not in await do("prune", "--older-than", "0s")
    assert list((home.path / "archive").rglob("*.parquet"))
    archived = _tables(home)

    leaks = [each for where, text in said.items() for each in _found(where, text)]
    for when, found in (("live", tables), ("archived", archived)):
        leaks += [e for name, text in found.items() for e in _found(f"{when} {name}", text)]
    for path in (path for path in home.path.rglob("*") if path.is_file()):
        if path not in planted.owned:
            leaks += _found(str(path), path.read_bytes().decode("utf-8", errors="replace"))
    assert not leaks, "\n".join(sorted(set(leaks)))


async def test_the_search_itself_finds_what_is_there(tmp_path: Path) -> None:
    """Else the test above would pass whatever stands in the home."""
    for value in _CANARIES.values():
        for before in range(3):
            text = base64.encodebytes(b"x" * before + value.encode() + b"tail").decode()
            assert _found("here", text), text
        assert _found("here", f"a {quote(value)} b")
        assert _found("here", json.dumps({"x": value}))
    assert not _found("here", "nothing of that kind [secret CANARY_API_KEY]")
