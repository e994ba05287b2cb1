"""A line between a peer that dials and its neighbour, on loopback, that can be made bad.

Bytes pass as they are, so that TLS between the ends does not notice. What does not pass stays with
its sender, but for small buffers: the sender's own system tells it to wait.
"""

import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace

PIECE = 1 << 14
BUFFER = 1 << 16


class Line:
    """Listens at `address`, and passes on whatever comes to the one at `to`, and back.

    pace: bytes/s towards that one at most, or None; it may be set at any time
    """

    def __init__(self, to):
        host, port = to.rsplit(":", 1)
        self.to, self.pace = (host, int(port)), None
        self.calls = self.passed = 0  # connections; bytes towards `to`
        self.flows = threading.Event()
        self.flows.set()
        self.ends = []
        self.closed = False
        self.door = socket.create_server(("127.0.0.1", 0))
        self.door.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self.address = f"127.0.0.1:{self.door.getsockname()[1]}"
        threading.Thread(target=self.answer, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True
        self.flows.set()
        self.door.shutdown(socket.SHUT_RDWR)  # wakes who waits for a call; closing does not
        self.door.close()
        self.cut()

    def answer(self):
        while not self.closed:
            with suppress(OSError):  # of the door, when it is closed
                caller, _ = self.door.accept()
                self.connect(caller)

    def connect(self, caller):
        called = socket.socket()
        called.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        self.ends += [caller, called]
        try:
            called.connect(self.to)
        except OSError:  # nobody is there yet
            caller.close()
            called.close()
            return
        self.calls += 1
        for ends in ((caller, called), (called, caller)):
            threading.Thread(target=self.pass_on, args=ends, daemon=True).start()

    def pass_on(self, source, target):
        with suppress(OSError):  # either may have hung up
            forward = target.getpeername() == self.to
            while data := source.recv(PIECE):
                self.flows.wait()
                target.sendall(data)
                if forward:
                    self.passed += len(data)
                    if self.pace is not None:
                        time.sleep(len(data) / self.pace)
        self.flows.wait()  # a dead line does not bring the end of a call either
        hang_up(source, target)

    @contextmanager
    def held(self):
        """Nothing passes, either way, and neither end is told."""
        self.flows.clear()
        try:
            yield
        finally:
            self.flows.set()

    def cut(self):
        """Both ends of every call learn at once that it is over; they may call again."""
        ends, self.ends = self.ends, []
        hang_up(*ends)
        for end in ends:
            end.close()


def hang_up(*ends):
    for end in ends:
        with suppress(OSError):  # it may have hung up by itself
            end.shutdown(socket.SHUT_RDWR)


def lay(peers, i, j):
    """A line between peer i, who dials, and peer j; before i starts."""
    assert i < j
    line = Line(peers.addresses[j])
    config = peers.configs[i]
    around = [replace(n, address=line.address) if n.id == j else n for n in config.neighbours]
    peers.change(replace(config, neighbours=tuple(around)))
    return line
