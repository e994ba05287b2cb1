"""What a running peer tells Prometheus."""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from edgewise.errors import InputError
from edgewise.peers.config.addresses import host_of, is_loopback, port_of
from edgewise.peers.operations.expiry import expires
from edgewise.peers.operations.health import with_health

try:
    from prometheus_client import CollectorRegistry, make_wsgi_app, start_http_server
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ImportError as missing:
    raise InputError(
        f"metrics need prometheus-client ({missing}): pip install 'edgewise[peers]', or write "
        "metrics = false"
    ) from missing

log = logging.getLogger("edgewise.peers")

Spec = tuple[type[CounterMetricFamily | GaugeMetricFamily], str, str, Callable[[Any], float]]

OF_A_PEER: tuple[Spec, ...] = (
    (CounterMetricFamily, "rounds", "Rounds of the fit so far.", lambda peer: peer.round),
    (
        GaugeMetricFamily,
        "residual",
        "How far this peer is from where it would stay; infinite until it was looked at.",
        lambda peer: peer.residual,
    ),
    (
        GaugeMetricFamily,
        "alarms",
        "That hold now: a neighbour pulls alone, on and on, or with all that its radius allows, "
        "messages are cut, or the model fits this peer's data far worse.",
        lambda peer: len(peer.alarms),
    ),
    (
        CounterMetricFamily,
        "refused",
        "Streams of strangers with a certificate of this mesh's authority.",
        lambda peer: peer.connections.refused,
    ),
    (
        CounterMetricFamily,
        "failed_handshakes",
        "Callers without a valid certificate of this mesh's authority.",
        lambda peer: peer.connections.failed_handshakes,
    ),
)
OF_A_LINK: tuple[Spec, ...] = (
    (
        GaugeMetricFamily,
        "connected",
        "1 while there is a stream, else 0.",
        lambda link: link.connected,
    ),
    (
        GaugeMetricFamily,
        "silent_seconds",
        "Since the neighbour was heard last.",
        lambda link: time.monotonic() - link.last_heard,
    ),
    (
        CounterMetricFamily,
        "sent_bytes",
        "To it, what TLS adds apart.",
        lambda link: link.bytes_sent,
    ),
    (
        CounterMetricFamily,
        "heard_bytes",
        "From it, what TLS adds apart.",
        lambda link: link.bytes_heard,
    ),
    (
        CounterMetricFamily,
        "reconnects",
        "Streams after the first.",
        lambda link: max(link.streams - 1, 0),
    ),
    (
        GaugeMetricFamily,
        "stale_rounds",
        "Steps taken with its last message since that came.",
        lambda link: link.stale_rounds,
    ),
    (
        CounterMetricFamily,
        "protocol_errors",
        "Times it was cut off for what it sent.",
        lambda link: link.protocol_errors,
    ),
)


OF_AN_EDGE: tuple[tuple[str, str, Callable[[Any], dict[int, float]]], ...] = (
    ("pull", "How hard its edge pulled at the model at the last look.", lambda peer: peer.pulls),
    (
        "pull_moved",
        "How far the dual of its edge moved between the last two looks.",
        lambda peer: peer.edge_watch.moved,
    ),
)


class Metrics(Collector):
    """The numbers of a peer at the moment they are asked for, over HTTP at `config.metrics`; and
    whether it is well (`health`)."""

    def __init__(self, peer: Any) -> None:
        self.peer = peer
        self.server: Any = None

    def open(self) -> int | None:
        """The port, or None where the configuration wants no metrics."""
        at = self.peer.config.metrics
        if at is None:
            return None
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self.server, self.thread = start_http_server(
                port_of(at), host_of(at).strip("[]"), registry
            )
        except OSError as problem:
            raise InputError(
                f"{self.peer.config.path}: nothing can listen at peer.metrics, {at} "
                f"({problem.strerror}): give a port that is free, or port 0 for any"
            ) from None
        self.server.set_app(with_health(self.peer, make_wsgi_app(registry)))
        if not is_loopback(host_of(at)):
            log.warning(
                "its metrics, at %s, have no password: whoever reaches that port reads rounds, "
                "bytes and who its neighbours are. Give a loopback address, or set up a firewall",
                at,
            )
        port: int = self.server.server_port
        return port

    def close(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()
            self.server = None

    def collect(self) -> Iterator[Metric]:
        """Counts and links come into being when the fit begins; there is nothing to tell before."""
        own, links = str(self.peer.config.id), getattr(self.peer, "links", None)
        if links is None or getattr(self.peer, "connections", None) is None:
            return
        for kind, name, what, value in OF_A_PEER:
            family = kind(f"edgewise_{name}", what, labels=["peer"])
            family.add_metric([own], float(value(self.peer)))
            yield family
        ends = expires(self.peer.config)
        if ends is not None:
            family = GaugeMetricFamily(
                "edgewise_certificate_expiry_timestamp_seconds",
                "When this peer's certificate ends, in seconds since 1970.",
                labels=["peer"],
            )
            family.add_metric([own], ends.timestamp())
            yield family
        around = list(links.items())
        for kind, name, what, value in OF_A_LINK:
            family = kind(f"edgewise_neighbour_{name}", what, labels=["peer", "neighbour"])
            for other, link in around:
                family.add_metric([own, str(other)], float(value(link)))
            yield family
        for name, what, of in OF_AN_EDGE:
            labels = ["peer", "neighbour"]
            family = GaugeMetricFamily(f"edgewise_neighbour_{name}", what, labels=labels)
            for other, number in of(self.peer).items():
                family.add_metric([own, str(other)], number)
            yield family
