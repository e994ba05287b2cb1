"""An emulated network: hosts that are network namespaces, and a switch that delays and loses.

Each host has one TUN device. A thread reads packets from all of them and hands each to the host it
is for after a delay; some, at random, to nobody. Namespaces and devices are held by open files of
this process alone and have no names anywhere, so that they go with it, however it ends.
"""

import ctypes
import fcntl
import heapq
import itertools
import os
import random
import selectors
import shutil
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TUN = Path("/dev/net/tun")
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
DEVICE = "line"
LONGEST_PACKET = 65536
DESTINATION = slice(16, 20)  # in the head of an IPv4 packet


def why_not():
    """What is missing here for an emulated network, or nothing."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    if not TUN.exists():
        return f"there is no {TUN}"
    if shutil.which("ip") is None:
        return "there is no `ip` command"
    try:
        TunNetwork(1, 0.0, 0.0, 0).close()
    except PermissionError as refused:
        return f"root may not make network namespaces or TUN devices here: {refused}"
    return ""


def system(call, *args):
    if getattr(LIBC, call)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


LIBC = ctypes.CDLL(None, use_errno=True)


class TunNetwork:
    """`hosts` namespaces; packets take `delay` seconds one way, and the part `loss` never comes."""

    def __init__(self, hosts, delay, loss, seed):
        self.delay, self.loss, self.random = delay, loss, random.Random(seed)
        self.carried = self.lost = 0
        self.namespaces, self.devices = [], []
        self.awake, self.waker = os.pipe()
        self.switch = threading.Thread(target=self.carry, daemon=True)
        try:
            for host in range(hosts):
                self.aside(self.add, host)
        except BaseException:
            self.close()
            raise
        self.switch.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.close(self.waker)
        if self.switch.is_alive():
            self.switch.join()
        for file in (*self.devices, *self.namespaces, self.awake):
            os.close(file)

    # --- hosts ------------------------------------------------------------------------------------

    @staticmethod
    def address(host):
        return f"10.77.{host // 250}.{host % 250 + 1}"

    @staticmethod
    def aside(call, *args):
        """In a thread of its own: a thread that has changed its namespace is good for no more."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(call, *args).result()

    def add(self, host):
        system("unshare", CLONE_NEWNET)
        self.namespaces.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
        device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
        self.devices.append(device)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
        for words in (
            "link set lo up",
            f"address add {self.address(host)}/16 dev {DEVICE}",
            f"link set {DEVICE} up",
        ):
            subprocess.run(["ip", *words.split()], check=True)

    def inside(self, host, call, *args):
        """call(*args) at that host: sockets that it opens and processes that it starts stay."""

        def there():
            system("setns", self.namespaces[host], CLONE_NEWNET)
            return call(*args)

        return self.aside(there)

    # --- the switch -------------------------------------------------------------------------------

    def carry(self):
        to = {
            bytes(map(int, self.address(host).split("."))): device
            for host, device in enumerate(self.devices)
        }
        under_way, order = [], itertools.count()
        with selectors.DefaultSelector() as ready:
            for file in (self.awake, *self.devices):
                ready.register(file, selectors.EVENT_READ)
            while True:
                left = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
                for key, _ in ready.select(left):
                    if key.fd == self.awake:
                        return
                    for packet in waiting_at(key.fd):
                        device = to.get(packet[DESTINATION])
                        if device is None:
                            continue  # IPv6 looks for neighbours, which nobody answers
                        self.carried += 1
                        if self.random.random() < self.loss:
                            self.lost += 1
                            continue
                        due = time.monotonic() + self.delay
                        heapq.heappush(under_way, (due, next(order), device, packet))
                while under_way and under_way[0][0] <= time.monotonic():
                    *_, device, packet = heapq.heappop(under_way)
                    os.write(device, packet)


def waiting_at(device):
    while True:
        try:
            yield os.read(device, LONGEST_PACKET)
        except BlockingIOError:
            return
