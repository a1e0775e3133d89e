"""From "provider:name" to a provider."""

import subprocess
import sys

import pytest

from agentd.domain.errors import ConfigError
from agentd.models.select import ProviderSettings, open_model

SETTINGS = ProviderSettings(anthropic_key="key-1", anthropic_base_url=None, stall_s=5)


@pytest.mark.parametrize("spec", ["scripted:demo", "anthropic:claude-haiku-4-5", "openai:qwen3:8b"])
async def test_a_model_is_named_as_it_was_asked_for(spec: str) -> None:
    model = open_model(spec, SETTINGS)
    assert model.name == spec
    await model.aclose()


@pytest.mark.parametrize(
    "spec", ["", "demo", "scripted:", "anthropic", "openai", "openai:", ":", "x:y"]
)
def test_an_unknown_model_is_a_wrong_setting(spec: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_model(spec, SETTINGS)
    assert repr(spec) in caught.value.message
    assert "scripted:demo" in str(caught.value.hint)


def test_a_script_that_is_not_there_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        open_model("scripted:nowhere", SETTINGS)


def test_the_sdk_is_not_loaded_before_it_is_used() -> None:
    code = (
        "import sys; from agentd.models.select import *\n"
        "open_model('scripted:demo', ProviderSettings(None, None, 5))\n"
        "sys.exit(not {'anthropic', 'openai', 'httpx2'}.isdisjoint(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=15)
    assert done.returncode == 0


def test_a_missing_sdk_is_said_with_the_command_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['openai'] = None; from agentd.models.select import *\n"
        "from agentd.domain.errors import ConfigError\n"
        "try: open_model('openai:gpt', ProviderSettings(None, None, 5))\n"
        "except ConfigError as error: sys.exit(str(error))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, timeout=15, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "pip install 'agentd[openai]'" in done.stderr
    assert "Traceback" not in done.stderr
