"""Is a peer alive, and does it take part: /healthz and /readyz, beside the metrics.

For service managers and Kubernetes. The answer is 200 or 503, with a reason in JSON; neither tells
anything of data or models.
"""

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

STUCK_AFTER = 60.0  # seconds without a turn of the event loop, which has one twice a second
TAKES_PART = ("running", "scoring", "lingering")
Answer = tuple[bool, str]
App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def alive(peer: Any) -> Answer:
    """Whether its event loop turns. One that waits for neighbours is alive."""
    beat = getattr(peer, "beat", None)
    silent = 0.0 if beat is None else time.monotonic() - beat
    if silent > STUCK_AFTER:
        return False, f"its event loop has not turned for {silent:.0f} s"
    return True, "alive"


def ready(peer: Any) -> Answer:
    """Whether it fits with somebody."""
    well, why = alive(peer)
    if not well:
        return well, why
    state, links = getattr(peer, "state", "starting"), getattr(peer, "links", {})
    if state not in TAKES_PART:
        return False, f"it is {state}"
    if links and not any(link.connected for link in list(links.values())):
        return False, "no neighbour is connected"
    return True, "takes part"


QUESTIONS = {"/healthz": alive, "/readyz": ready}


def with_health(peer: Any, metrics: App) -> App:
    """The application of the metrics, and the two answers."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        asked = QUESTIONS.get(environ.get("PATH_INFO", ""))
        if asked is None:
            return metrics(environ, start)
        well, why = asked(peer)
        told = {"peer": peer.config.id, "ok": well, "reason": why}
        start(
            "200 OK" if well else "503 Service Unavailable", [("Content-Type", "application/json")]
        )
        return [json.dumps(told).encode()]

    return answer
