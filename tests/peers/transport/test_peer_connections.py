"""How streams come about, who is refused, and what is said of those that cannot be reached."""

import asyncio
import errno
import logging
import socket
import ssl
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_ends import configs_of, elsewhere, opened, until

from edgewise.errors import InputError
from edgewise.peers.config import certificates, revocation
from edgewise.peers.operations import authority, keys
from edgewise.peers.transport import callers, connections
from edgewise.peers.transport.failure_reasons import reason_of, text_of

pytestmark = pytest.mark.filterwarnings("ignore:.*has one neighbour")
PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy", "ALL_PROXY")


def connected(*ends):
    return all(link.connected for end in ends for link in end.links.values())


def spoken_with(port, words=b"", ends=True):
    """A service at a port that says this to whoever calls, and hangs up or does not."""

    @asynccontextmanager
    async def service():
        open_ones = []

        async def answer(reader, writer):
            open_ones.append(writer)
            await reader.read(100)
            writer.write(words)
            if ends:
                writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", port)
        try:
            yield
        finally:
            server.close()
            for writer in open_ones:
                writer.close()

    return service()


def port_of(config):
    return int(config.listen.rpartition(":")[2])


@pytest.fixture
def said(caplog):
    """What was warned of, once a line has come that says this."""

    async def until_said(*words):
        def line():
            texts = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
            return next((t for t in texts if all(word in t for word in words)), None)

        await until(line)
        return line()

    return until_said


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_two_ends_hear_each_other_whatever_proxies_the_environment_names(
    tmp_path, monkeypatch, host
):
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    if host == "[::1]" and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    configs = configs_of(tmp_path, host=host)

    async def talk():
        async with opened(*configs.values()) as (a, b):
            for round in range(3):
                a.post(1, round, np.full(5, round + 1.0))
                b.post(0, round, np.full(5, round - 1.0))
            await until(lambda: a.links[1].has_message(2) and b.links[0].has_message(2))
            for round in range(3):
                assert (b.links[0].take_message(round) == round + 1).all()
                assert (a.links[1].take_message(round) == round - 1).all()
            counts = [(end.bytes_sent, end.bytes_heard) for end in (a.links[1], b.links[0])]
            assert counts[0] == counts[1][::-1]
            assert counts[0][0] > 3 * (56 + 40)

    asyncio.run(talk())


def test_a_wildcard_takes_both_families(tmp_path):
    configs = configs_of(tmp_path)
    port = port_of(configs[1])
    listening = replace(configs[1], listen=f"0.0.0.0:{port}")
    hosts = ["127.0.0.1", *(["[::1]"] if socket.has_dualstack_ipv6() else [])]

    async def talk():
        for host in hosts:
            async with opened(elsewhere(configs[0], 1, f"{host}:{port}"), listening) as ends:
                await until(lambda ends=ends: connected(*ends))

    asyncio.run(talk())


def test_of_several_addresses_of_a_name_the_one_that_answers_is_taken(tmp_path, monkeypatch):
    configs = configs_of(tmp_path)
    port = port_of(configs[1])
    real = socket.getaddrinfo

    def several(host, *rest, **more):
        found = real("127.0.0.1" if host == "hospital" else host, *rest, **more)
        if host != "hospital":
            return found
        family, kind, protocol, name, _ = found[0]
        closed = (family, kind, protocol, name, ("127.0.0.1", 1))
        return [closed, *found]

    monkeypatch.setattr(socket, "getaddrinfo", several)

    async def talk():
        async with opened(elsewhere(configs[0], 1, f"hospital:{port}"), configs[1]) as ends:
            await until(lambda: connected(*ends))

    asyncio.run(talk())


def test_small_frames_do_not_wait_for_others(tmp_path):
    configs = configs_of(tmp_path)

    async def talk():
        async with opened(*configs.values()) as (a, b):
            streams = []
            for end in (a, b):
                link = end.links[1 - end.config.id]
                real = link.run

                async def run(stream, peer, real=real):
                    streams.append(stream)
                    await real(stream, peer)

                link.run = run
            await until(lambda: connected(a, b))
            assert {stream.dialled for stream in streams} == {True, False}
            for stream in streams:
                end = stream.transport.get_extra_info("socket")
                assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert stream.tls.version() == "TLSv1.3"

    asyncio.run(talk())


def test_a_second_peer_at_one_port_is_refused(tmp_path):
    configs = configs_of(tmp_path)
    second = replace(configs[1], listen=configs[0].listen)

    async def talk():
        async with opened(configs[0]):
            with pytest.raises(InputError, match="peer 1 cannot listen at 127"):
                async with opened(second):
                    pass

    asyncio.run(talk())


def test_a_newer_stream_of_a_neighbour_takes_the_place_of_the_older(tmp_path, caplog):
    configs = configs_of(tmp_path)

    async def talk():
        async with opened(*configs.values()) as (a, b):
            await until(lambda: connected(a, b))
            async with opened(replace(configs[0], listen="127.0.0.1:0")) as (twin,):
                await until(lambda: connected(twin))
                await until(lambda: b.links[0].streams >= 2 and b.links[0].connected)
                assert not any("peer 0 is away" in text for text in caplog.messages)

    asyncio.run(talk())


# --- certificates that change ---------------------------------------------------------------------


def test_renewed_certificates_are_shown_to_all_who_connect_at_once(tmp_path):
    configs = configs_of(tmp_path, nodes=3)

    async def shown(config, by):
        """The serial number of the certificate that a caller sees."""
        context = ssl.create_default_context(cafile=by.authority)
        context.check_hostname = False
        context.load_cert_chain(by.certificate, by.key)
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port_of(config), ssl=context, server_hostname="x"
        )
        number = writer.get_extra_info("peercert")["serialNumber"]
        writer.close()
        return number

    async def talk():
        async with opened(configs[2]) as (end,):
            old = await shown(configs[2], configs[0])
            made = end.connections.contexts.made
            assert old == await shown(configs[2], configs[1])
            assert end.connections.contexts.made is made  # files that are as they were are not read
            keys.renew(tmp_path, 2, 2)
            both = [shown(configs[2], configs[k % 2]) for k in range(8)]
            new = set(await asyncio.gather(*both))
            assert len(new) == 1
            assert old not in new

    asyncio.run(talk())


@pytest.mark.parametrize("which", [0, 1])  # that dials, and that is dialled
def test_a_revoked_neighbour_is_hung_up_on_and_comes_back_with_a_new_certificate(
    tmp_path, said, which
):
    configs = configs_of(tmp_path)

    async def talk():
        async with opened(*configs.values()) as ends:
            other = ends[1 - which]
            await until(lambda: connected(*ends))
            await other.connections.look_for_revoked()
            assert connected(*ends), "nobody is revoked"
            assert keys.revoke(tmp_path, which) == 1
            assert keys.revoke(tmp_path, which) == 0, "it is on the list already"
            await other.connections.look_for_revoked()
            await said(f"the certificate of peer {which} is revoked: it is hung up on")
            await said(f"the certificate of peer-{which}.{configs[0].mesh}.edgewise is revoked")
            assert not other.links[which].connected
            streams = other.links[which].streams
            keys.renew(tmp_path, which, 2)
            await until(lambda: other.links[which].streams > streams and connected(*ends))

    asyncio.run(talk())


def test_a_list_that_the_authority_has_not_signed_says_nothing(tmp_path, said):
    configs = configs_of(tmp_path)
    strangers = tmp_path / "strangers"
    strangers.mkdir()
    serial = certificates.certificate_in(configs[0].certificate.read_bytes()).serial_number
    revocation.write_list(strangers, certificates.make_authority(), {serial})

    async def talk():
        async with opened(configs[1]) as (b,):
            (strangers / revocation.LIST).rename(tmp_path / revocation.LIST)
            async with opened(configs[0]) as (a,):
                await until(lambda: connected(a, b))
                await said("is not signed by this network's authority", "goes on with")

    with pytest.raises(InputError, match="not signed by this network's authority"):
        asyncio.run(talk())
    (tmp_path / revocation.LIST).unlink()


def test_files_that_do_not_fit_leave_what_was_there(tmp_path, said, monkeypatch):
    monkeypatch.setattr("edgewise.peers.config.identity.PATIENCE_WITH_FILES", 0.05)
    configs = configs_of(tmp_path)

    async def talk():
        async with opened(configs[1]) as (b,):
            configs[1].key.write_bytes(configs[0].key.read_bytes())
            async with opened(configs[0]) as (a,):
                await until(lambda: connected(a, b))
                line = await said("is not the key of peer.certificate")
                assert "goes on with the one from before" in line

    asyncio.run(talk())


# --- neighbours that cannot be reached ------------------------------------------------------------


def reasons(config, words, service=None, **patched):
    """Dial peer 1, where this service is, until all of these words are in one warning."""

    async def talk(said):
        if service is None:
            async with opened(config):
                return await said("peer 1 at ", "cannot be reached: ", *words)
        async with service, opened(config):
            return await said("peer 1 at ", "cannot be reached: ", *words)

    return talk


def test_a_name_without_an_address(tmp_path, said):
    config = elsewhere(configs_of(tmp_path)[0], 1, "hospital-b.invalid:24701")
    line = asyncio.run(reasons(config, ["leads to no address"])(said))
    assert "peer 1 at hospital-b.invalid:24701 cannot" in line


def test_a_port_where_nobody_listens(tmp_path, said):
    asyncio.run(reasons(configs_of(tmp_path)[0], ["connection refused"])(said))


def test_an_address_that_does_not_answer(tmp_path, said, monkeypatch):
    monkeypatch.setattr(connections, "CONNECT_TIMEOUT", 0.05)

    async def never(*_):
        await asyncio.sleep(60)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", never)
    asyncio.run(reasons(configs_of(tmp_path)[0], ["no answer (timed out)"])(said))


@pytest.mark.parametrize(
    ("words", "ends", "why"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", True, "no TLS: another service, or a proxy"),
        (b"", True, "hung up in the TLS handshake"),
        (b"", False, "no TLS handshake within"),
    ],
)
def test_an_address_where_something_else_is(tmp_path, said, monkeypatch, words, ends, why):
    monkeypatch.setattr(connections, "HANDSHAKE_TIMEOUT", 0.2)
    configs = configs_of(tmp_path)
    service = spoken_with(port_of(configs[1]), words, ends)
    asyncio.run(reasons(configs[0], [why], service)(said))


def test_a_neighbour_of_another_authority_is_refused_and_both_say_why(tmp_path, said, caplog):
    ours, theirs = configs_of(tmp_path / "ours"), configs_of(tmp_path / "theirs")
    there = replace(theirs[1], listen=ours[1].listen, neighbours=())
    asyncio.run(reasons(ours[0], ["a certificate of another authority"], opened(there))(said))
    assert "failed: it takes this peer's certificate for one of another authority" in caplog.text


def test_who_is_refused_for_its_authority_hears_it(tmp_path, said, caplog):
    """With TLS 1.3 its handshake is over by then."""
    ours = configs_of(tmp_path)
    pair = certificates.issue(*certificates.make_authority(), ours[0].mesh, 0, 2)
    for path, content in zip((ours[0].key, ours[0].certificate), pair, strict=True):
        path.write_bytes(content)
    why = "it takes this peer's certificate for one of another authority"
    asyncio.run(reasons(ours[0], [why], opened(ours[1]))(said))
    assert "failed: a certificate of another authority" in caplog.text


def test_another_peer_of_the_mesh_is_not_taken_for_the_neighbour(tmp_path, said):
    configs = configs_of(tmp_path, nodes=3)
    config = elsewhere(configs[0], 1, configs[2].listen)
    line = asyncio.run(reasons(config, ["is there: give the address"], opened(configs[2]))(said))
    mesh_name = configs[0].mesh
    assert f"peer-2.{mesh_name}.edgewise is there" in line
    assert line.endswith(f"of peer-1.{mesh_name}.edgewise")


def test_one_that_does_not_take_it_for_a_neighbour(tmp_path, said):
    configs = configs_of(tmp_path)
    there = replace(configs[1], neighbours=())
    words = ["hung up without a greeting", "does not take it for a neighbour"]
    asyncio.run(reasons(configs[0], words, opened(there))(said))


def in_the_past(days):
    class Past(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(days=days)

    return Past


def expire(folder, config):
    signer = [(folder / name).read_bytes() for name in (authority.KEY, authority.CERTIFICATE)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "datetime", in_the_past(3))
        pair = certificates.issue(*signer, config.mesh, config.id, 1)
    for path, content in zip((config.key, config.certificate), pair, strict=True):
        path.write_bytes(content)


def test_its_own_certificate_has_expired_while_it_ran(tmp_path, said):
    configs = configs_of(tmp_path)
    expire(tmp_path, configs[0])
    line = asyncio.run(
        reasons(configs[0], ["own certificate expired at 20"], opened(configs[1]))(said)
    )
    assert "`edgewise network renew`" in line


def test_the_neighbours_certificate_has_expired_and_both_say_so(tmp_path, said, caplog):
    configs = configs_of(tmp_path)
    expire(tmp_path, configs[1])
    asyncio.run(reasons(configs[0], ["a certificate that has expired"], opened(configs[1]))(said))
    assert "failed: it takes this peer's certificate for expired" in caplog.text


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "Network is unreachable"),
        (ssl.SSLError(1, "x"), "tls failed"),
        (ValueError("50 %"), "ValueError('50 %')"),
    ],
)
def test_whatever_fails_has_a_reason_and_a_line_of_its_own(failure, reason, caplog):
    assert reason_of(failure) == reason
    log = logging.getLogger("edgewise.peers")
    log.warning("peer %d: " + text_of(failure), 1)
    assert caplog.messages == [f"peer 1: {reason}"]


def test_one_that_has_finished_need_not_be_there(tmp_path, caplog):
    configs = configs_of(tmp_path)

    async def talk():
        async with opened(configs[0]) as (a,):
            a.links[1].gone = True
            caplog.clear()
            await asyncio.sleep(0.4)
        assert not [r for r in caplog.records if r.levelname == "WARNING"]

    asyncio.run(talk())


# --- callers --------------------------------------------------------------------------------------


def test_silent_callers_hold_a_bounded_number_of_descriptors_and_keep_nobody_out(
    tmp_path, monkeypatch, said
):
    monkeypatch.setattr(callers, "MOST_UNKNOWN", 10)
    configs = configs_of(tmp_path)

    async def talk():
        async with opened(configs[1]) as (b,):
            silent = [
                await asyncio.open_connection("127.0.0.1", port_of(configs[1])) for _ in range(30)
            ]
            await until(lambda: b.connections.failed_handshakes == 20)
            assert len(b.connections.callers.unknown) == 10
            for reader, _ in silent[:20]:
                with suppress(ConnectionError):
                    assert await reader.read(1) == b""  # the oldest are those that are gone
            assert "too many connections" in await said("a TLS handshake with 127.0.0.1:")
            async with opened(configs[0]) as (a,):
                await until(lambda: connected(a, b))
            for _, writer in silent:
                writer.close()

    asyncio.run(talk())


def test_a_caller_that_says_nothing_is_let_go(tmp_path, monkeypatch, said):
    monkeypatch.setattr(connections, "HANDSHAKE_TIMEOUT", 0.1)
    configs = configs_of(tmp_path)

    async def talk():
        async with opened(configs[1]) as (b,):
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(configs[1]))
            assert await reader.read(1) == b""
            assert b.connections.failed_handshakes == 1
            writer.close()
            await until(lambda: not b.connections.callers.unknown)

    asyncio.run(talk())


def test_the_limits_are_as_documented():
    assert connections.HANDSHAKE_TIMEOUT == 10
    assert callers.MOST_UNKNOWN == 128
