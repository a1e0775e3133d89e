"""The scripted model plays what is written, and says plainly when that can not be played."""

import os
from pathlib import Path
from typing import Any

import pytest

from agentd.domain.errors import ConfigError, ModelError, ModelErrorKind
from agentd.domain.usage import Usage
from agentd.models.model import ModelReply, ModelRequest
from agentd.models.scripted import ScriptedModel
from tests.messages_rules import check_messages

ROOT = Path(__file__).parents[3]


def user(*texts: str, results: tuple[str, ...] = ()) -> dict[str, Any]:
    blocks = [
        {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": text}
        for n, text in enumerate(results)
    ]
    return {"role": "user", "content": blocks + [{"type": "text", "text": t} for t in texts]}


SAID = {"role": "assistant", "content": [{"type": "text", "text": "Said."}]}


def request(turn: int, *messages: dict[str, Any]) -> ModelRequest:
    return ModelRequest("x", "System.", [], messages or (user("Do it."),), 100, turn)


def scripted(tmp_path: Path, text: str) -> ScriptedModel:
    path = tmp_path / "script.toml"
    path.write_text(text, encoding="utf-8")
    return ScriptedModel(str(path))


async def failing(model: ScriptedModel, asked: ModelRequest) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.reply(asked)
    return caught.value


async def test_a_turn_is_thinking_text_and_calls_in_this_order(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        [[turn]]
        text = "I look."
        thinking = "Where?"
        usage = { input_tokens = 1, output_tokens = 2, cache_read_tokens = 4 }
        [[turn.call]]
        tool = "ls"
        input = { path = "." }
        [[turn.call]]
        tool = "date"
        """,
    )
    reply = await model.reply(request(0))
    thinking, text, ls, date = reply.content
    assert thinking["thinking"] == "Where?"
    assert text == {"type": "text", "text": "I look."}
    assert (ls["name"], ls["input"]) == ("ls", {"path": "."})
    assert (date["name"], date["input"]) == ("date", {})
    assert reply.stop_reason == "tool_use"
    assert reply.usage == Usage(1, 2, 0, 4)
    assert reply.model == model.name == f"scripted:{tmp_path / 'script.toml'}"
    answer = user(results=("a", "b"))
    for block, made in zip(answer["content"], (ls, date), strict=True):
        block["tool_use_id"] = made["id"]
    said = {"role": "assistant", "content": list(reply.content)}
    assert check_messages([user("Do it."), said, answer]) == []


async def test_the_turn_is_chosen_by_the_number_of_replies_so_far(tmp_path: Path) -> None:
    """A new process that opens the script goes on where the journal ends."""
    text = '[[turn]]\ntext = "one"\n[[turn]]\ntext = "two"\nstop_reason = "max_tokens"'
    reply = await scripted(tmp_path, text).reply(request(1))
    assert (reply.content[0]["text"], reply.stop_reason) == ("two", "max_tokens")


async def test_every_call_has_an_id_of_its_own(tmp_path: Path) -> None:
    model = scripted(tmp_path, '[[turn]]\n[[turn.call]]\ntool = "a"\n[[turn.call]]\ntool = "a"')
    replies = [await model.reply(request(0)) for _ in range(2)]
    assert len({block["id"] for reply in replies for block in reply.content}) == 4


async def test_a_script_that_runs_out_says_so(tmp_path: Path) -> None:
    error = await failing(scripted(tmp_path, '[[turn]]\ntext = "one"'), request(1))
    assert error.kind is ModelErrorKind.SCRIPT
    assert not error.retryable
    assert "has 1 turns" in error.message
    assert "complete_task" in str(error.hint)


async def test_placeholders_are_filled_at_any_depth(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        [[turn]]
        [[turn]]
        text = "${prompt}: ${result.2}, ${result.1}"
        [[turn.call]]
        tool = "write"
        input = { deep = [{ text = "<${result.1}>" }], n = 1, "${prompt}" = "the key stays" }
        """,
    )
    asked = request(1, user("Do it."), SAID, user("More.", results=("first", "second")))
    text, call = (await model.reply(asked)).content
    assert text["text"] == "Do it.: second, first"
    assert call["input"] == {"deep": [{"text": "<first>"}], "n": 1, "${prompt}": "the key stays"}


async def test_a_result_that_looks_like_a_placeholder_is_text(tmp_path: Path) -> None:
    model = scripted(tmp_path, '[[turn]]\ntext = "${result.1}"')
    asked = request(0, user("Do it."), SAID, user(results=("${prompt}",)))
    assert (await model.reply(asked)).content[0]["text"] == "${prompt}"


async def test_a_result_of_several_blocks_is_their_text(tmp_path: Path) -> None:
    model = scripted(tmp_path, '[[turn]]\ntext = "${result.1}"')
    answer = user(results=("",))
    answer["content"][0]["content"] = [{"type": "text", "text": t} for t in ("a", "b")]
    asked = request(0, user("Do it."), SAID, answer)
    assert (await model.reply(asked)).content[0]["text"] == "a\nb"


@pytest.mark.parametrize("turn", [0, 1])
async def test_in_an_older_session_the_prompt_is_that_of_this_task(
    tmp_path: Path, turn: int
) -> None:
    model = scripted(tmp_path, '[[turn]]\ntext = "${prompt}"\n' * 2)
    messages = [user("First task."), SAID, user("Second task.", results=("done",))]
    later = [SAID, user("A reminder.")] if turn else []
    reply = await model.reply(request(turn, *messages, *later))
    assert reply.content[0]["text"] == "Second task."


async def test_what_is_expected_must_stand_in_the_last_message(tmp_path: Path) -> None:
    model = scripted(tmp_path, '[[turn]]\nexpect = ["42", "Do"]\ntext = "Good."')
    first = request(0, user("Do it."), SAID, user("Do", results=("the answer is 42",)))
    assert (await model.reply(first)).content[0]["text"] == "Good."
    error = await failing(model, request(0, user("42"), SAID, user("Do", results=("41",))))
    assert error.kind is ModelErrorKind.SCRIPT
    assert "'42'" in error.message
    assert "41" in error.message


async def test_an_error_comes_as_often_as_written_for_each_task(tmp_path: Path) -> None:
    text = '[[turn]]\ntext = "At last."\nerror = { kind = "overloaded", message = "no", times = 2 }'
    model = scripted(tmp_path, text)
    for prompt in ("one", "another"):
        asked = request(0, user(prompt))
        for _ in range(2):
            error = await failing(model, asked)
            assert (error.kind, error.message) == (ModelErrorKind.OVERLOADED, "no")
            assert error.retryable
        assert (await model.reply(asked)).content[0]["text"] == "At last."


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "turn"),
        ("turn = []", "turn"),
        ("[[turn]]\nspeech = 'x'", "turn.0.speech"),
        ("[[turn]]\n[[turn.call]]\ninput = {}", "turn.0.call.0.tool"),
        ("[[turn]]\n[[turn.call]]\ntool = 'ls'\ninputs = {}", "turn.0.call.0.inputs"),
        ("[[turn]]\ndelay_s = -1", "turn.0.delay_s"),
        ("[[turn]]\nerror = { kind = 'bad luck' }", "turn.0.error.kind"),
        ("[[turn]]\ntext = 5", "turn.0.text"),
        ("[[turn", "TOML"),
    ],
)
def test_a_script_that_is_wrong_names_the_file_and_the_key(
    tmp_path: Path, text: str, named: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        scripted(tmp_path, text)
    assert "script.toml" in caught.value.message
    assert named in caught.value.message


def test_a_script_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name in ("missing", "binary", "."):
        with pytest.raises(ConfigError, match="can not be read"):
            ScriptedModel(str(tmp_path / name))


async def test_the_demo_quotes_what_it_was_told_and_ends_its_task() -> None:
    model = ScriptedModel("demo")
    notes = [(ROOT / "config/demo/notes" / name).read_text() for name in ("meeting.md", "todo.md")]
    messages = [user("Report."), SAID, user(results=("meeting.md\ntodo.md",))]
    _, *reads = (await model.reply(request(1, *messages))).content
    assert [read["input"]["path"] for read in reads] == ["notes/meeting.md", "notes/todo.md"]
    messages += [SAID, user(results=tuple(notes))]
    written = call_of(await model.reply(request(2, *messages)))["input"]["content"]
    assert all(note in written for note in [*notes, "Report."])
    messages += [SAID, user(results=("written",))]
    assert call_of(await model.reply(request(3, *messages)))["name"] == "complete_task"


def call_of(reply: ModelReply) -> Any:
    return next(block for block in reply.content if block["type"] == "tool_use")


async def test_a_script_that_was_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("[[turn]]\ntext = 'one'\n")
    model = ScriptedModel(str(path))
    path.write_text("[[turn]]\ntext = 'two'\n")
    os.utime(path, ns=(1, 1))
    assert (await model.reply(request(0))).content[0]["text"] == "two"
