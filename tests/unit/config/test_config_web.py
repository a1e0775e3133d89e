"""[egress]: what means nothing is refused where it is written, not where it is used."""

from pathlib import Path

import pytest

from agentd.config import load_config
from agentd.domain.errors import ConfigError
from agentd.sandbox.egress import Egress, Rules


def test_by_default_every_public_address_is_reached_and_no_other(tmp_path: Path) -> None:
    egress = load_config(tmp_path).egress
    assert (egress.allow, egress.deny, egress.private) == ((), (), ())


def test_lists_of_the_file_become_rules(tmp_path: Path) -> None:
    (tmp_path / "agentd.toml").write_text(
        '[egress]\nallow = ["*.example.org", "10.0.0.0/8"]\nprivate = ["nas.local:443"]\n'
    )
    Egress(Rules(**load_config(tmp_path).egress.model_dump()))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('deny = ["https://x.org/"]', "must be a host"),
        ('allow = ["*"]', "must be a host"),
        ('private = ["nas.local"]', "must be HOST:PORT"),
        ('private = ["nas.local:99999"]', "must be HOST:PORT"),
    ],
)
def test_an_entry_that_means_nothing_is_named(line: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "agentd.toml").write_text(f"[egress]\n{line}\n")
    with pytest.raises(ConfigError, match=told):
        load_config(tmp_path)
