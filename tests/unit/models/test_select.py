"""From "provider:name" to a provider."""

import subprocess
import sys

import pytest

from agentd.domain.errors import ConfigError
from agentd.models.select import ProviderSettings, open_model

SETTINGS = ProviderSettings(anthropic_key="key-1", anthropic_base_url=None, stall_s=5)


@pytest.mark.parametrize("spec", ["scripted:demo", "anthropic:claude-haiku-4-5"])
async def test_a_model_is_named_as_it_was_asked_for(spec: str) -> None:
    model = open_model(spec, SETTINGS)
    assert model.name == spec
    await model.aclose()


@pytest.mark.parametrize("spec", ["", "demo", "scripted:", "anthropic", "openai:gpt", ":", "x:y"])
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
        "sys.exit('anthropic' in sys.modules or 'httpx2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=15)
    assert done.returncode == 0
