"""The section of the settings that says where tools and commands may connect to: [egress]."""

from typing import Annotated

from pydantic import AfterValidator, Field

from agentd.config_sections import Section
from agentd.domain.hosts import HostPort, HostRule


def _rule(text: str) -> str:
    HostRule.parse(text)
    return text


def _host_port(text: str) -> str:
    HostPort.parse(text)
    return text


_Rule = Annotated[str, AfterValidator(_rule)]
_HostPort = Annotated[str, AfterValidator(_host_port)]


class EgressConfig(Section):
    allow: tuple[_Rule, ...] = Field(
        (),
        description="Hosts, *.HOST for all below one, addresses or networks: if there are any, "
        "nothing else is reached. Empty: every public address.",
    )
    deny: tuple[_Rule, ...] = Field(
        (), description="The same kinds of entries, never reached; stronger than allow and private."
    )
    private: tuple[_HostPort, ...] = Field(
        (),
        description="HOST:PORT that may be reached although its address is private, e.g. "
        "nas.local:443.",
    )
