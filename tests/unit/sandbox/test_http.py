"""HTTP to the outside: each hop checked, credentials kept at home, bodies and time bounded."""

import asyncio
import gzip
import shutil
import ssl
import subprocess
import zlib
from pathlib import Path

import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.egress import Egress, Rules
from agentd.sandbox.http import Http, Request
from tests.loopback import head
from tests.site import Site, answer, egress_for, redirect

SECRETS = {
    "Authorization": "Bearer canary",
    "Cookie": "session=canary",
    "X-Api-Key": "canary",
    "Proxy-Authorization": "canary",
}


async def error_of(http: Http, request: Request) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await http.send(request)
    return caught.value


async def test_a_redirect_is_followed_and_the_answer_says_where_it_came_from() -> None:
    async with Site({"/a": redirect("b?x=1#there"), "/b": answer(200, b"here")}) as site:
        got = await Http(egress_for(site)).get(site.url("/a"))
    assert (got.url, got.body) == (site.url("/b?x=1"), b"here")


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.1:{port}/inside",
        "//127.0.0.1:{port}/inside",
        "http://2130706433:{port}/inside",
        "http://[::ffff:127.0.0.1]:{port}/inside",
        "http://other.test:{port}/inside",
        "http://169.254.169.254/latest/meta-data/",
        "http://user:pass@site.test:{port}/inside",
        "file:///etc/passwd",
        "ftp://site.test:{port}/inside",
        "javascript:alert(1)",
        "http://[::1/inside",
        "\\\\127.0.0.1:{port}\\inside",
    ],
)
async def test_no_redirect_leads_inside(to: str) -> None:
    async with Site({"/inside": answer(200, b"inside")}) as site:
        site.pages["/"] = redirect(to.format(port=site.port))
        egress = Egress(
            Rules(private=[f"site.test:{site.port}"]), lambda host, _port: ["127.0.0.1"]
        )
        with pytest.raises(ToolError) as caught:
            await Http(egress).get(site.url("/"))
        assert caught.value.error_type in ("address_refused", "invalid_url", "not_found")
        assert [each.path for each in site.requests if each.path == "/inside"] == []


async def test_a_host_that_changes_its_address_between_two_hops_is_refused() -> None:
    async with Site({"/": redirect("/again"), "/again": answer(200)}) as site:
        answers = iter([["127.0.0.1"], ["169.254.169.254"]])
        egress = Egress(Rules(deny=["169.254.0.0/16"], private=[f"site.test:{site.port}"]),
                        lambda _host, _port: next(answers))  # fmt: skip
        error = await error_of(Http(egress), Request(site.url("/")))
        assert error.error_type == "address_refused"
        assert [each.path for each in site.requests] == ["/"]


async def test_redirects_end_at_some_point() -> None:
    async with Site({"/": redirect("/")}) as site:
        error = await error_of(Http(egress_for(site)), Request(site.url("/")))
        assert error.error_type == "too_many_redirects"
        assert site.connections == 11


async def test_what_the_caller_sends_along_stays_with_its_origin() -> None:
    async with Site({"/": answer(200)}) as other, Site() as site:
        site.pages = {"/": redirect("/same"), "/same": redirect(other.url("/", "other.test"))}
        egress = egress_for(site, other, hosts=["site.test", "other.test"])
        await Http(egress).get(site.url("/"), {**SECRETS, "Accept": "text/html"})
        assert [each.headers.get("authorization") for each in site.requests] == [
            "Bearer canary"
        ] * 2
        [seen] = other.requests
        assert "canary" not in str(seen.headers)
        assert seen.headers["accept"] == "text/html"


@pytest.mark.parametrize("host", ["site.test", "other.test"])
async def test_another_port_or_name_is_another_origin(host: str) -> None:
    async with Site({"/": answer(200)}) as other, Site() as site:
        site.pages["/"] = redirect((other if host == "site.test" else site).url("/there", host))
        other.pages["/there"] = site.pages["/there"] = answer(200)
        egress = egress_for(site, other, hosts=["site.test", "other.test"])
        await Http(egress).get(site.url("/"), SECRETS)
        last = (other.requests or site.requests)[-1]
        assert last.path == "/there"
        assert "canary" not in str(last.headers)


async def test_a_url_with_a_password_is_not_sent_at_all() -> None:
    async with Site({"/": answer(200)}) as site:
        url = site.url("/", "user:canary@site.test")
        error = await error_of(Http(egress_for(site)), Request(url))
        assert error.error_type == "invalid_url"
        assert "canary" not in error.message
        assert site.connections == 0


async def test_cookies_that_a_server_sets_are_not_sent_to_anybody() -> None:
    async with Site({"/": answer(200, set_cookie="a=canary; Domain=test; Path=/")}) as site:
        http = Http(egress_for(site))
        await http.get(site.url("/"))
        await http.get(site.url("/"))
        assert "cookie" not in site.requests[1].headers


@pytest.mark.parametrize(
    ("status", "method", "body"), [(301, "GET", b""), (302, "GET", b""), (303, "GET", b""),
                                   (307, "POST", b"sent"), (308, "POST", b"sent")],
)  # fmt: skip
async def test_what_a_redirect_makes_of_a_post(status: int, method: str, body: bytes) -> None:
    async with Site({"/": redirect("/there", status), "/there": answer(200)}) as site:
        await Http(egress_for(site)).send(Request(site.url("/"), "POST", body=b"sent"))
        assert (site.requests[1].method, site.requests[1].body) == (method, body)


async def test_a_body_is_not_passed_on_to_another_origin() -> None:
    async with Site({"/": answer(200)}) as other, Site() as site:
        site.pages = {"/": redirect(other.url("/", "other.test"), 307)}
        egress = egress_for(site, other, hosts=["site.test", "other.test"])
        error = await error_of(Http(egress), Request(site.url("/"), "POST", body=b"canary"))
        assert error.error_type == "redirect_refused"
        assert other.connections == 0


async def test_variables_of_the_environment_name_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Site() as proxy, Site({"/": answer(200, b"direct")}) as site:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await Http(egress_for(site)).get(site.url("/"))).body == b"direct"
        assert proxy.connections == 0


@pytest.mark.parametrize(
    ("status", "kind"), [(404, "not_found"), (410, "not_found"), (403, "http_error"),
                         (500, "http_error"), (302, "http_error")],
)  # fmt: skip
async def test_a_status_that_is_no_success_comes_with_the_start_of_the_body(
    status: int, kind: str
) -> None:
    async with Site({"/": answer(status, b"because \xff " + b"x" * 9000)}) as site:
        with pytest.raises(ToolError, match=f"status {status}: because \ufffd xxx") as caught:
            await Http(egress_for(site)).get(site.url("/"))
    assert caught.value.error_type == kind
    assert len(caught.value.message) < 700


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(head(200, {"content-type": "text/plain"}))
    while not writer.is_closing():
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.01)


async def drip_headers(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx: ")
    await drip(writer)


async def forever_early(writer: asyncio.StreamWriter) -> None:
    while not writer.is_closing():
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("page", [drip, drip_headers, forever_early])
async def test_time_is_limited_as_a_whole_not_between_two_bytes(page: object) -> None:
    async with Site({"/": page}) as site:  # type: ignore[dict-item]
        error = await error_of(Http(egress_for(site)), Request(site.url("/"), timeout_s=0.2))
        assert error.error_type == "timeout"


async def test_time_is_limited_over_all_redirects() -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        writer.write(redirect("/"))

    async with Site({"/": slow}) as site:
        error = await error_of(Http(egress_for(site)), Request(site.url("/"), timeout_s=0.25))
        assert error.error_type == "timeout"
        assert site.connections <= 3


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(head(200, {"content-length": "1000000000"}))
    while not writer.is_closing():
        writer.write(b"x" * 65536)
        await writer.drain()


async def test_a_body_that_is_too_large_is_not_read_to_its_end() -> None:
    async with Site({"/": endless}) as site:
        http = Http(egress_for(site))
        error = await error_of(http, Request(site.url("/"), most_bytes=100_000))
        assert error.error_type == "too_large"
        got = await http.send(Request(site.url("/"), most_bytes=100_000, cut=True))
        assert (got.cut, len(got.body)) == (True, 100_000)


def bomb(layers: int) -> bytes:
    data = b"\0" * 50_000_000
    for _ in range(layers):
        data = gzip.compress(data, 9)
    return data


async def test_a_bomb_is_cut_where_it_has_grown_too_large() -> None:
    async with Site({"/": answer(200, bomb(1), content_encoding="gzip")}) as site:
        got = await Http(egress_for(site)).send(Request(site.url("/"), most_bytes=10_000, cut=True))
        assert (got.cut, len(got.body)) == (True, 10_000)


@pytest.mark.parametrize("coding", ["gzip, gzip", "br", "zstd", "compress", "gzip, deflate"])
async def test_bodies_are_compressed_once_and_in_a_way_we_know(coding: str) -> None:
    async with Site({"/": answer(200, b"x", content_encoding=coding)}) as site:
        error = await error_of(Http(egress_for(site)), Request(site.url("/")))
        assert error.error_type == "unsupported_type"


@pytest.mark.parametrize(
    ("coding", "body"), [("gzip", gzip.compress(b"hello", mtime=0)),
                         ("deflate", zlib.compress(b"hello")),
                         ("identity", b"hello"), ("", b"hello")],
)  # fmt: skip
async def test_a_compressed_body_is_read(coding: str, body: bytes) -> None:
    async with Site({"/": answer(200, body, content_encoding=coding)}) as site:
        assert (await Http(egress_for(site)).get(site.url("/"))).body == b"hello"


BROKEN = {
    "no HTTP": b"220 smtp.test ESMTP\r\n",
    "huge header": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000 + b"\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 40_000 + b"\r\n",
    "nothing": b"",
    "cut": b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfour",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
    "bad chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "no gzip": answer(200, b"plain", content_encoding="gzip"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_broken_answers_are_told_in_words(name: str) -> None:
    async with Site({"/": BROKEN[name]}) as site:
        error = await error_of(Http(egress_for(site)), Request(site.url("/")))
        assert error.error_type in ("http_error", "connection_failed")
        assert site.url("/") in error.message


async def test_nobody_listens() -> None:
    async with Site() as site:
        egress = egress_for(site)
    error = await error_of(Http(egress), Request(site.url("/")))
    assert error.error_type == "connection_failed"


async def test_headers_can_not_be_smuggled_in_by_a_url() -> None:
    async with Site({"/": answer(200)}) as site:
        http = Http(egress_for(site))
        error = await error_of(http, Request(site.url("/") + "\r\nx-evil: 1"))
        assert error.error_type == "invalid_url"
        with pytest.raises(ToolError):
            await http.get(site.url("/"), {"x": "y\r\nx-evil: 1"})
        assert site.requests == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate for site.test in one file, which is its own authority."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl, to make a certificate")
    path = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "30", "-subj", "/CN=site.test", "-addext",
         "subjectAltName=DNS:site.test", "-keyout", path / "key", "-out", path / "cert"],
        check=True, capture_output=True,
    )  # fmt: skip
    both = path / "both.pem"
    both.write_bytes((path / "key").read_bytes() + (path / "cert").read_bytes())
    return both


def serving(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def test_tls_is_for_the_name_though_the_connection_goes_to_an_address(
    certificate: Path,
) -> None:
    async with Site({"/": answer(200, b"secret")}, tls=serving(certificate)) as site:
        egress = egress_for(site, hosts=["site.test", "other.test"])
        http = Http(egress, lambda: ssl.create_default_context(cafile=str(certificate)))
        assert (await http.get(site.url("/"))).body == b"secret"
        error = await error_of(http, Request(site.url("/", "other.test")))
        assert error.error_type == "tls_error"
        assert "other.test" in error.message
        strangers = Http(egress)
        assert (await error_of(strangers, Request(site.url("/")))).error_type == "tls_error"
        assert len(site.requests) == 1


async def test_https_does_not_lead_back_to_http(certificate: Path) -> None:
    async with Site({"/": answer(200)}) as plain, Site(tls=serving(certificate)) as site:
        site.pages = {"/": redirect(plain.url("/"))}
        http = Http(
            egress_for(site, plain), lambda: ssl.create_default_context(cafile=str(certificate))
        )
        error = await error_of(http, Request(site.url("/")))
        assert error.error_type == "redirect_refused"
        assert plain.connections == 0


async def test_a_server_without_tls_is_told() -> None:
    async def plainly(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(400))
        writer.close()

    async with await asyncio.start_server(plainly, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        egress = Egress(Rules(private=[f"site.test:{port}"]), lambda _host, _port: ["127.0.0.1"])
        error = await error_of(Http(egress), Request(f"https://site.test:{port}/"))
        assert error.error_type == "tls_error"
