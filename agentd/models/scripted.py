"""The scripted model: plays a written TOML file, one `[[turn]]` for each reply. No intelligence.

    [[turn]]
    text = "I look first."
    [[turn.call]]
    tool = "ls"
    input = { path = "." }

    [[turn]]
    expect = ["notes"]            # must stand in the last message, else the script fails
    [[turn.call]]
    tool = "complete_task"
    input = { summary = "${result.1}" }

Further keys of a turn: `thinking`, `stop_reason`, `delay_s`, `usage = { input_tokens = 1 }`,
`error = { kind = "overloaded", message = "…", times = 1 }`. In strings `${prompt}` is the user's
first message of the task and `${result.N}` the text of the N-th result that was sent last. The turn
is chosen by the number of replies that the task has had, so a script survives a crash.
"""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentd.domain.errors import ConfigError, ModelError, ModelErrorKind
from agentd.domain.ids import new_id
from agentd.domain.jsons import is_array, is_object
from agentd.domain.usage import Usage
from agentd.models.model import ModelReply, ModelRequest

_PLACEHOLDER = re.compile(r"\$\{(prompt|result\.(\d+))\}")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptedCall(_Part):
    tool: str
    input: dict[str, Any] = Field(default_factory=dict)


class ScriptedError(_Part):
    kind: ModelErrorKind
    message: str = "scripted error"
    times: int = Field(1, ge=1)


class ScriptedUsage(_Part):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0


class ScriptedTurn(_Part):
    text: str | None = None
    thinking: str | None = None
    call: list[ScriptedCall] = Field(default_factory=list[ScriptedCall])
    expect: list[str] = Field(default_factory=list)
    stop_reason: str | None = None
    delay_s: float = Field(0, ge=0)
    error: ScriptedError | None = None
    usage: ScriptedUsage = ScriptedUsage()


class Script(_Part):
    hint: str | None = None  # what to do when an expectation is not met
    turn: list[ScriptedTurn] = Field(min_length=1)


def _built_in(name: str) -> Traversable:
    return files("agentd.models").joinpath("scripts", f"{name}.toml")


def is_built_in(name: str) -> bool:
    return _built_in(name).is_file()


def read_script(name: str) -> Script:
    """The script in a file, or the one that is built in under that name. Raises ConfigError."""
    try:
        text = (_built_in(name) if is_built_in(name) else Path(name)).read_text(encoding="utf-8")
        return Script.model_validate(tomllib.loads(text))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the script {name} can not be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the script {name} is not valid TOML: {error}") from error
    except ValidationError as error:
        lines = [".".join(map(str, each["loc"])) + ": " + each["msg"] for each in error.errors()]
        raise ConfigError(f"the script {name} is wrong: " + "; ".join(lines)) from error


class ScriptedModel:
    """A provider like any other, except that it reads nothing but its script."""

    def __init__(self, name: str) -> None:
        self._file = name
        self._script = read_script(name)
        self._read_at: int | None = self._changed_at()
        self._errors_given: dict[tuple[str, int], int] = {}

    @property
    def name(self) -> str:
        return f"scripted:{self._file}"

    async def reply(self, request: ModelRequest) -> ModelReply:
        self._read_again_if_changed()
        if request.turn >= len(self._script.turn):
            raise ModelError(
                ModelErrorKind.SCRIPT,
                f"the script {self._file} has {len(self._script.turn)} turns; one more was asked",
                hint="End its last turn with complete_task, fail_task or wait_task.",
            )
        turn = self._script.turn[request.turn]
        await anyio.sleep(turn.delay_s)
        self._fail_if_scripted(turn, request)
        told = _Told(request)
        missing = told.missing(turn.expect)
        if missing is not None:
            raise ModelError(
                ModelErrorKind.SCRIPT,
                f"turn {request.turn + 1} of script {self._file} expects {missing!r} but read: "
                f"{told.last[:2000]}",
                hint=self._script.hint,
            )
        content = _blocks(turn, told)
        stop_reason = turn.stop_reason or ("tool_use" if turn.call else "end_turn")
        usage = Usage(**turn.usage.model_dump())
        return ModelReply(content, stop_reason, usage, self.name)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _changed_at(self) -> int | None:
        """None: built in."""
        path = Path(self._file)
        return path.stat().st_mtime_ns if path.is_file() else None

    def _read_again_if_changed(self) -> None:
        """Who writes a script tries it again and again while the daemon runs."""
        changed_at = self._changed_at()
        if changed_at != self._read_at:
            self._script, self._read_at = read_script(self._file), changed_at

    def _fail_if_scripted(self, turn: ScriptedTurn, request: ModelRequest) -> None:
        if turn.error is None:
            return
        key = (str(request.messages[0]["content"]), request.turn)
        given = self._errors_given.get(key, 0)
        if given < turn.error.times:
            self._errors_given[key] = given + 1
            raise ModelError(turn.error.kind, turn.error.message)


class _Told:
    """What the request says, for the placeholders."""

    def __init__(self, request: ModelRequest) -> None:
        self._last = list(request.messages[-1]["content"])
        self._results = [block for block in self._last if block["type"] == "tool_result"]
        # The session may be older than the task: count back over the replies that are the task's.
        replies = sum(message["role"] == "assistant" for message in request.messages)
        said = [message for message in request.messages if message["role"] == "user"]
        texts = [
            block["text"]
            for message in said[max(0, replies - request.turn) :]
            for block in message["content"]
            if block["type"] == "text"
        ]
        self._prompt = texts[0] if texts else ""

    @property
    def last(self) -> str:
        """The text of the last message."""
        return "\n".join(_text(block) for block in self._last)

    def missing(self, expected: list[str]) -> str | None:
        """The first of `expected` that the last message does not say."""
        return next((each for each in expected if each not in self.last), None)

    def fill(self, value: Any) -> Any:
        """The value with its placeholders replaced, at any depth."""
        if isinstance(value, str):
            return _PLACEHOLDER.sub(self._replacement, value)
        if is_object(value):
            return {name: self.fill(each) for name, each in value.items()}
        if is_array(value):
            return [self.fill(each) for each in value]
        return value

    def _replacement(self, match: re.Match[str]) -> str:
        if match[1] == "prompt":
            return self._prompt
        number = int(match[2])
        if not 1 <= number <= len(self._results):
            return match[0]
        return _text(self._results[number - 1])


def _text(block: Mapping[str, Any]) -> str:
    content = block.get("text", block.get("content", ""))
    return content if isinstance(content, str) else "\n".join(_text(each) for each in content)


def _blocks(turn: ScriptedTurn, told: _Told) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.thinking is not None:
        blocks.append({"type": "thinking", "thinking": turn.thinking, "signature": "scripted"})
    if turn.text is not None:
        blocks.append({"type": "text", "text": told.fill(turn.text)})
    calls = (
        {
            "type": "tool_use",
            "id": f"call_{new_id()}",
            "name": call.tool,
            "input": told.fill(call.input),
        }
        for call in turn.call
    )
    return [*blocks, *calls]
