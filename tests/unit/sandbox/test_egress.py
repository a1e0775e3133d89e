"""The policy: only the resolved address counts, and nothing but public ones are reached."""

import ipaddress
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.addresses import is_own
from agentd.sandbox.egress import Egress, Rules
from agentd.sandbox.http import Http, Request
from tests.site import Site, answer, egress_for

PUBLIC = "93.184.216.34"
_HERE = Path(__file__).parent


def says(*addresses: str) -> Callable[[str, int], list[str]]:
    return lambda _host, _port: list(addresses)


async def refusal(egress: Egress, host: str = "somewhere.example", port: int = 80) -> str:
    with pytest.raises(ToolError) as caught:
        await egress.addresses(host, port)
    return caught.value.error_type


NOT_PUBLIC = _HERE.joinpath("not_public.txt").read_text().split()


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert await refusal(Egress(Rules(), says(address))) == "address_refused"
    assert await refusal(Egress(Rules(), says(PUBLIC, address))) == "address_refused"


@pytest.mark.parametrize(
    "address",
    [PUBLIC, "1.1.1.1", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "64:ff9b::101:101",
     "2600::5efe:101:101", "::ffff:1.1.1.1"],
)  # fmt: skip
async def test_a_public_address_is_not(address: str) -> None:
    found = await Egress(Rules(), says(address)).addresses("somewhere.example", 80)
    assert list(found) == [address] or found[0].startswith("::ffff:")


# URLs that mean this machine, a private one, or nothing: {port} is that of a real server.
ATTACKS = _HERE.joinpath("url_attacks.txt").read_text(encoding="utf-8").splitlines()
_NAMES = {
    "evil.test": ["127.0.0.1"],
    "rebound.test": ["::ffff:127.0.0.1"],
    "mixed.test": [PUBLIC, "127.0.0.1"],
    "metadata.test": ["169.254.169.254"],
    "metadata.google.internal": ["169.254.169.254"],
    "localhost": ["127.0.0.1", "::1"],
}


def numbers_or_names(host: str, port: int) -> list[str]:
    """What a resolver says without asking anybody."""
    if host in _NAMES:
        return _NAMES[host]
    found = socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


@pytest.mark.parametrize("url", ATTACKS)
async def test_no_spelling_of_a_url_reaches_this_machine(url: str) -> None:
    async with Site({"/": answer(200, b"inside")}) as site:
        http = Http(Egress(Rules(), numbers_or_names))
        with pytest.raises(ToolError) as caught:
            await http.send(Request(url.format(port=site.port, long="x" * 250)))
        assert caught.value.error_type in ("address_refused", "invalid_url", "dns_error")
        assert site.connections == 0


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]])
    asked: list[str] = []
    egress = Egress(Rules(), lambda _host, _port: next(answers))

    async def to(address: str) -> str:
        asked.append(address)
        return address

    assert await egress.connect("rebinding.test", 80, to) == PUBLIC
    assert asked == [PUBLIC]
    assert await refusal(egress, "rebinding.test") == "address_refused"


async def test_every_checked_address_is_tried_in_turn() -> None:
    egress = Egress(Rules(), says(PUBLIC, "1.1.1.1"))
    asked: list[str] = []

    async def to(address: str) -> str:
        asked.append(address)
        if address == PUBLIC:
            raise ConnectionRefusedError(111, "Connection refused")
        return address

    assert await egress.connect("somewhere.example", 80, to) == "1.1.1.1"
    assert asked == [PUBLIC, "1.1.1.1"]


async def test_what_can_not_be_reached_says_why() -> None:
    async def to(address: str) -> str:
        raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(ToolError, match=r"93.184.216.34: Connection refused"):
        await Egress(Rules(), says(PUBLIC)).connect("somewhere.example", 80, to)


async def test_the_owner_lets_in_one_port_of_one_private_host() -> None:
    egress = Egress(Rules(private=["NAS.local:443", "[::1]:80"]), says("192.168.1.5"))
    assert await egress.addresses("nas.local.", 443) == ["192.168.1.5"]
    assert await refusal(egress, "nas.local", 80) == "address_refused"
    assert await refusal(egress, "other.local", 443) == "address_refused"
    assert await refusal(egress, "192.168.1.5", 443) == "address_refused"
    assert await egress.addresses("0::1", 80)


@pytest.mark.parametrize(
    ("host", "reached"),
    [
        ("example.org", True),
        ("EXAMPLE.org.", True),
        ("docs.example.org", False),
        ("a.below.test", True),
        ("a.b.below.test", True),
        ("below.test", False),
        ("notbelow.test", False),
        ("example.org.evil.test", False),
        ("bücher.test", True),
        ("xn--bcher-kva.test", True),
    ],
)
async def test_with_an_allow_list_nothing_else_is_reached(host: str, reached: bool) -> None:
    egress = Egress(Rules(allow=["example.org", "*.below.test", "Bücher.test"]), says(PUBLIC))
    if reached:
        assert await egress.addresses(host, 80) == [PUBLIC]
    else:
        assert await refusal(egress, host) == "address_refused"


async def test_an_allowed_host_must_still_be_public() -> None:
    egress = Egress(Rules(allow=["evil.test"]), says("127.0.0.1"))
    assert await refusal(egress, "evil.test") == "address_refused"


async def test_a_network_may_be_allowed() -> None:
    egress = Egress(Rules(allow=["93.184.0.0/16"]), says(PUBLIC))
    assert await egress.addresses("somewhere.example", 80) == [PUBLIC]
    assert await refusal(Egress(Rules(allow=["1.1.1.0/24"]), says(PUBLIC))) == "address_refused"


@pytest.mark.parametrize(
    "rule", ["somewhere.example", "*.example", "93.184.216.34", "93.184.216.0/24"]
)
async def test_what_is_denied_is_not_reached_by_any_name(rule: str) -> None:
    rules = Rules(deny=[rule], allow=["*.example"], private=["somewhere.example:80"])
    assert await refusal(Egress(rules, says(PUBLIC)), "Somewhere.Example.") == "address_refused"


@pytest.mark.parametrize("host", ["1572395042", "0x5db8d822", "93.184.55330"])
async def test_an_odd_spelling_of_a_denied_address_is_denied(host: str) -> None:
    assert await refusal(Egress(Rules(deny=[PUBLIC]), numbers_or_names), host) == "address_refused"


async def test_a_public_address_that_this_machine_itself_has_is_known() -> None:
    assert is_own(ipaddress.ip_address("127.0.0.1"))
    assert not is_own(ipaddress.ip_address(PUBLIC))


async def test_a_resolver_that_hangs_is_given_up() -> None:
    over = threading.Event()

    def hang(_host: str, _port: int) -> list[str]:
        over.wait(5)
        return [PUBLIC]

    with anyio.fail_after(5):
        assert await refusal(Egress(Rules(), hang, resolve_s=0.05)) == "dns_error"
    over.set()


async def test_an_unknown_name_is_told() -> None:
    def unknown(_host: str, _port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(ToolError, match=r"nowhere.test is not known: Name or service not known"):
        await Egress(Rules(), unknown).addresses("nowhere.test", 80)


async def test_a_site_of_these_tests_is_reached_when_it_is_let_in() -> None:
    async with Site({"/": answer(200, b"hello")}) as site:
        got = await Http(egress_for(site)).get(site.url("/"))
    assert (got.status, got.body) == (200, b"hello")


@pytest.mark.parametrize("rule", ["http://x.org", "a b", "*", "*.", "x/24", ""])
def test_a_rule_that_means_nothing_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="must be a host"):
        Egress(Rules(deny=[rule]))


@pytest.mark.parametrize("entry", ["nas.local", "nas.local:0", "nas.local:x", ":80", "a b:80"])
def test_a_private_entry_is_a_host_and_a_port(entry: str) -> None:
    with pytest.raises(ValueError, match="must be HOST:PORT"):
        Egress(Rules(private=[entry]))
