"""The policy: only the resolved address counts, and nothing but public ones are reached."""

import ipaddress
import socket
import threading
from collections.abc import Callable

import anyio
import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.addresses import is_own
from agentd.sandbox.egress import Egress, Rules
from agentd.sandbox.http import Http, Request
from tests.site import Site, answer, egress_for

PUBLIC = "93.184.216.34"


def says(*addresses: str) -> Callable[[str, int], list[str]]:
    return lambda _host, _port: list(addresses)


async def refusal(egress: Egress, host: str = "somewhere.example", port: int = 80) -> str:
    with pytest.raises(ToolError) as caught:
        await egress.addresses(host, port)
    return caught.value.error_type


NOT_PUBLIC = """
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254
    169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192
    192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7
    203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 168.63.129.16
    :: ::1 ::2 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
    ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254
    64:ff9b:1::8.8.8.8 64:ff9b:1::10.0.0.1 100::1 2001::1 2001:0:7f00:1:: 2001:db8::1 2001:20::1
    2002:7f00:1:: 2002:a00:1:: 2002:a9fe:a9fe:: 2600::5efe:10.0.0.1 2600::200:5efe:127.0.0.1
    3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd20:ce::254 fe80::1 fe80::1%lo fec0::1 ff02::1 ff0e::1
    4000::1 8000::1
""".split()


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


# Hosts and whole URLs that mean this machine, a private one, or nothing: {port} is a real server's.
ATTACKS = r"""
http://127.0.0.1:{port}/
http://localhost:{port}/
http://LOCALHOST.:{port}/
http://127.1:{port}/
http://127.0.1:{port}/
http://127.0.0.1.:{port}/
http://2130706433:{port}/
http://017700000001:{port}/
http://0177.0.0.1:{port}/
http://0x7f000001:{port}/
http://0x7f.0.0.1:{port}/
http://0x7F.1:{port}/
http://0:{port}/
http://0.0.0.0:{port}/
http://127.000.000.001:{port}/
http://[::1]:{port}/
http://[::]:{port}/
http://[0:0:0:0:0:0:0:1]:{port}/
http://[::ffff:127.0.0.1]:{port}/
http://[::ffff:7f00:1]:{port}/
http://[::127.0.0.1]:{port}/
http://[64:ff9b::7f00:1]:{port}/
http://[::1%25lo]:{port}/
http://[fe80::1%25lo]:{port}/
http://[::1%lo]:{port}/
http://１２７.0.0.1:{port}/
http://①②⑦.0.0.1:{port}/
http://127。0。0。1:{port}/
http://ｌocalhost:{port}/
http://%6c%6f%63alhost:{port}/
http://127.0.0.1%00.example.org:{port}/
http://127.0.0.1%2f@example.org:{port}/
http://example.org@127.0.0.1:{port}/
http://example.org:80@127.0.0.1:{port}/
http://example.org%40127.0.0.1:{port}/
http://127.0.0.1:{port}@evil.test/
http://127.0.0.1:{port}\@evil.test/
http://evil.test\@127.0.0.1:{port}/
http://evil.test#@127.0.0.1:{port}/
http:\\127.0.0.1:{port}\
http:/127.0.0.1:{port}/
http:127.0.0.1:{port}/
http:///127.0.0.1:{port}/
//127.0.0.1:{port}/
127.0.0.1:{port}/
/etc/passwd
file:///etc/passwd
file://localhost/etc/passwd
ftp://127.0.0.1:{port}/
gopher://127.0.0.1:{port}/_GET%20/
dict://127.0.0.1:{port}/
unix:///run/docker.sock
http+unix://%2Frun%2Fdocker.sock/
data:text/html,x
javascript:alert(1)
jar:http://127.0.0.1:{port}!/
ws://127.0.0.1:{port}/
http://evil.test:{port}/
http://rebound.test:{port}/
http://mixed.test:{port}/
http://metadata.test/latest/meta-data/
http://169.254.169.254/latest/meta-data/
http://[fd00:ec2::254]/latest/meta-data/
http://100.100.100.200/latest/meta-data/
http://metadata.google.internal/
http://0xA9FEA9FE/
http://2852039166/
http://0251.0376.0251.0376/
http://10.0.0.1/
http://192.168.1.1/
http://172.16.0.1/
http://a..b:{port}/
http://-a.test:{port}/
http://{long}.test:{port}/
http://127.0.0.1:{port}:80/
http://127.0.0.1:99999/
http://127.0.0.1:-1/
http://127.0.0.1 :{port}/
http://127.0.0.1:{port} /
http://evil.test:{port}/%0d%0aHost:%20x
"""
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


@pytest.mark.parametrize("url", ATTACKS.strip().splitlines())
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

    with pytest.raises(ToolError, match="93.184.216.34: Connection refused"):
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

    with pytest.raises(ToolError, match="nowhere.test is not known: Name or service not known"):
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
