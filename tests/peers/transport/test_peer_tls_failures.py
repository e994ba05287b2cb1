"""What is written to stderr gets there, all of it, but for the lines on failed handshakes, which
are counted."""

import os
import subprocess
import sys
import textwrap

import pytest

from edgewise.peers.transport.tls_failures import reason_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file descriptors as POSIX has them")

FAILED = (
    "I1116 02:11:59.090941   29936 ssl_transport_security.cc:2563] Handshake failed with error "
    "SSL_ERROR_SSL: error:100000c0:SSL routines:OPENSSL_internal:PEER_DID_NOT_RETURN_A_CERTIFICATE:"
    " Invalid certificate verification context"
)
OTHER_NAME = (
    "E1116 02:12:16.842468   29938 ssl_transport_security.cc:3238] No match found for server name: "
)
BEGINNING = """
import ctypes, logging, os, signal, subprocess, sys, time
from edgewise.peers.transport.tls_failures import counting_tls_failures

logging.getLogger("edgewise").addHandler(logging.NullHandler())

def until(holds):
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.01)
    raise TimeoutError

"""


def run(script, code=0, **options):
    """What it says on stdout and on stderr."""
    text = (
        BEGINNING + f"FAILED, OTHER_NAME = {FAILED!r}, {OTHER_NAME!r}\n" + textwrap.dedent(script)
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, **options
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_failed_handshakes_are_counted_and_all_else_is_passed_on():
    out, err = run("""
        with counting_tls_failures() as seen:
            print("before", file=sys.stderr)
            os.write(2, f"{FAILED}\\nbetween\\n{FAILED}\\n{OTHER_NAME}x\\n".encode())
            os.write(2, FAILED[:30].encode())
            until(lambda: seen.count == 2)
            os.write(2, f"{FAILED[30:]}\\nE1116 another line\\n50 %".encode())
            until(lambda: seen.count == 3)
        print("after", file=sys.stderr)
        print(seen.count)
    """)
    assert out == "3\n"
    assert err == "before\nbetween\nE1116 another line\n50 %after\n"


def test_part_of_a_line_does_not_wait_for_the_rest():
    out, _ = run("""
        ours, theirs = os.pipe()
        kept = os.dup(2)
        os.dup2(theirs, 2)
        with counting_tls_failures():
            os.write(2, b"Impatient: 50 %")
            print(os.read(ours, 100))
        os.dup2(kept, 2)
    """)
    assert out == "b'Impatient: 50 %'\n"


def test_they_are_logged_with_a_reason():
    out, _ = run("""
        logging.basicConfig(stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
        with counting_tls_failures() as seen:
            os.write(2, f"{FAILED}\\n".encode())
            until(lambda: seen.count == 1)
    """)
    why = "a TLS handshake failed: the other side has no certificate"
    assert out == f"edgewise.peers WARNING {why}\n"


@pytest.mark.parametrize(
    ("detail", "reason"),
    [
        ("OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate has expired", "has expired"),
        ("OPENSSL_internal:SOMETHING_NEW: Invalid certificate", "something new"),
        ("SSL_ERROR_SYSCALL", "SSL_ERROR_SYSCALL"),
    ],
)
def test_reasons(detail, reason):
    assert reason in reason_of(detail)


def test_a_traceback_and_the_last_words_of_a_crash_arrive():
    _, err = run("with counting_tls_failures():\n    raise ZeroDivisionError('traced')", code=1)
    assert "ZeroDivisionError: traced" in err
    crash = """
        with counting_tls_failures():
            libc = ctypes.PyDLL(None)  # with Python's lock held
            libc.write(2, b"last words\\n", 11)
            libc.abort()
    """
    _, err = run(crash, code=-6)
    assert err == "last words\n"


def test_much_is_passed_on_even_where_pythons_lock_is_held():
    _, err = run("""
        with counting_tls_failures():
            text = b"x" * 99 + b"\\n"
            libc = ctypes.PyDLL(None)
            for _ in range(30_000):
                libc.write(2, text, 100)
    """)
    assert len(err) == 3_000_000


def test_stderr_may_be_closed_or_unread():
    closed = """
        os.close(2)
        with counting_tls_failures() as seen:
            os.write(2, f"{FAILED}\\n".encode())
            until(lambda: seen.count == 1)
        print("went on")
    """
    assert run(closed) == ("went on\n", "")
    unread = """
        ours, theirs = os.pipe()
        os.dup2(theirs, 2)
        os.close(theirs)
        os.close(ours)
        with counting_tls_failures() as seen:
            for _ in range(2000):
                os.write(2, b"x" * 99 + b"\\n")
            os.write(2, f"{FAILED}\\n".encode())
            until(lambda: seen.count == 1)
        print("went on")
    """
    assert run(unread)[0] == "went on\n"


def test_signals_for_the_peer_do_not_end_the_sieve():
    out, err = run(
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        with counting_tls_failures() as seen:
            os.write(2, f"{FAILED}\\n".encode())
            until(lambda: seen.count == 1)
            for number in (signal.SIGINT, signal.SIGTERM):
                os.killpg(0, number)
            os.write(2, f"{FAILED}\\nstill there\\n".encode())
            until(lambda: seen.count == 2)
        print("ended")
        """,
        start_new_session=True,
    )
    assert out == "ended\n"
    assert "still there\n" in err


def test_where_the_sieve_dies_stderr_goes_on():
    _, err = run("""
        started = []
        real = subprocess.Popen
        class Remembered(real):
            def __init__(self, *words, **more):
                super().__init__(*words, **more)
                started.append(self)
        subprocess.Popen = Remembered
        where = os.fstat(2).st_ino
        with counting_tls_failures():
            assert os.fstat(2).st_ino != where
            started[0].kill()
            until(lambda: os.fstat(2).st_ino == where)
            os.write(2, b"said without it\\n")
    """)
    assert err == "said without it\n"


def test_a_child_that_keeps_stderr_open_does_not_hold_up_the_end():
    out, err = run("""
        import edgewise.peers.transport.tls_failures as module
        module.DRAINED = 0.5
        with counting_tls_failures():
            wait = ["sh", "-c", "read word; echo late >&2"]
            child = subprocess.Popen(wait, stdin=subprocess.PIPE)
        os.write(2, b"at once\\n")
        print(child.poll())
        child.stdin.close()
        child.wait()
    """)
    assert out == "None\n"
    assert err == "at once\nlate\n"


def test_grpc_is_made_to_speak(monkeypatch):
    monkeypatch.setenv("GRPC_VERBOSITY", "error")
    out, _ = run("""
        with counting_tls_failures():
            print(os.environ.get("GRPC_VERBOSITY"))
    """)
    assert out == "None\n"


CALLER = """
import socket, ssl, sys
context = ssl.create_default_context(cafile="authority.pem")
context.check_hostname = False
context.set_alpn_protocols(["h2"])
if sys.argv[2] != "nobody":
    context.load_cert_chain(sys.argv[2] + ".pem", sys.argv[2] + ".key")
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60) as plain:
    try:
        with context.wrap_socket(plain) as wrapped:
            wrapped.recv(9)
    except OSError:
        pass
"""


def test_lines_as_grpc_itself_writes_them(tmp_path):
    pytest.importorskip("grpc", reason="peers need grpcio: pip install 'edgewise[peers]'")
    from edgewise.peers.config.certificates import issue, make_authority

    signer = make_authority()
    pairs = {
        "server": issue(*signer, "mesh", 0, 1),
        "other": issue(*make_authority(), "mesh", 1, 1),
        "good": issue(*signer, "mesh", 1, 1),
    }
    for name, (key, certificate) in pairs.items():
        (tmp_path / f"{name}.key").write_bytes(key)
        (tmp_path / f"{name}.pem").write_bytes(certificate)
    (tmp_path / "authority.pem").write_bytes(signer[1])
    (tmp_path / "caller.py").write_text(CALLER)
    out, _ = run(
        """
        with counting_tls_failures() as seen:
            import grpc
            from concurrent.futures import ThreadPoolExecutor
            key, certificate, authority = (
                open(name, "rb").read() for name in ("server.key", "server.pem", "authority.pem")
            )
            server = grpc.server(ThreadPoolExecutor(1))
            credentials = grpc.ssl_server_credentials([(key, certificate)], authority, True)
            port = server.add_secure_port("127.0.0.1:0", credentials)
            server.start()
            for who, expected in {"good": 0, "nobody": 1, "other": 2}.items():
                subprocess.run([sys.executable, "caller.py", str(port), who], check=True)
                until(lambda: seen.count >= expected)
            server.stop(0).wait()
        print(seen.count)
        """,
        cwd=tmp_path,
    )
    assert out == "2\n"
