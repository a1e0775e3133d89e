"""Log lines: for people on a terminal, JSON elsewhere, never a secret."""

import json
import subprocess
import sys

import pytest

_LOG = """
import structlog
from agentd.daemon.logs import configure_logs
from agentd.domain.redactor import Redactor, Secret
known = Redactor([Secret("MY_KEY", 'f00"bar-4711')])
configure_logs(level="info", style={style!r}, redactor=known)
log = structlog.get_logger()
log.debug("too quiet")
log.info('f00"bar-4711', deep={{"a": ['f00"bar-4711']}}, error=ValueError('f00"bar-4711'))
log.info("key sk-ant-abcdefgh12345", header="Bearer abcdefgh.ijkl", plain="kept")
try:
    secret = "sk-ant-local-variable"
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
try:
    raise ValueError('f00"bar-4711')
except ValueError:
    log.exception("failed")
"""


def lines(style: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _LOG.format(style=style)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize("style", ["json", "auto"])
def test_json_where_nobody_looks(style: str) -> None:
    known, first, second, _ = (json.loads(line) for line in lines(style).splitlines())
    assert known["event"] == "[secret MY_KEY]"
    assert (first["level"], first["plain"]) == ("info", "kept")
    assert first["event"] == "key ***"
    assert first["header"] == "***"
    assert "ZeroDivisionError" in second["exception"]


def test_pretty_for_people() -> None:
    text = lines("pretty")
    assert "kept" in text
    assert "too quiet" not in text
    assert "Traceback" in text


@pytest.mark.parametrize("style", ["json", "pretty"])
def test_no_secret_reaches_a_line(style: str) -> None:
    text = lines(style)
    assert "abcdefgh" not in text
    assert "bar-4711" not in text
    assert text.count("[secret MY_KEY]") == 4
    assert "local-variable" not in text.replace('secret = "sk-ant-local-variable"', "")
