"""What peers that run would have written, and metrics that one elsewhere would tell."""

import http.server
import json
import os
import threading
import time
from contextlib import contextmanager

from trace_rows import write_trace

from edgewise.cli.dashboard.overview import Overview
from edgewise.cli.dashboard.sources import sources_of
from edgewise.peers.operations import mesh

BAD = "<img src=x onerror='window.entered=1'>"
SCRIPT = "</script><script>window.entered=1</script>"


def write_status(config, **changes):
    around = {
        str(n.id): {
            "connected": True,
            "silent_seconds": 0.2,
            "streams": 2,
            "protocol_errors": 0,
            "bytes_sent": 1e6,
            "bytes_heard": 2e6,
            "behind": 0,
            "part": True,
        }
        for n in config.neighbours
    }
    said = {"peer": config.id, "state": "running", "pid": os.getpid(), "time": time.time()}
    said |= {"rounds": 400, "residual": 1e-3, "bytes_sent": 2e6, "refused": 0, "handshakes": 0}
    config.out.mkdir(exist_ok=True)
    told = json.dumps(said | {"neighbours": around} | changes)
    (config.out / "status.json").write_text(told)
    write_trace(config.out / "trace.csv", [0.5**k for k in range(40)])


def peers_in(folder):
    return list(mesh.read_mesh(folder).peers.values())


@contextmanager
def metrics_of(text, reason="takes part"):
    """Where a peer elsewhere tells these."""

    class Told(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            ready = self.path == "/readyz"
            answer = json.dumps({"ok": True, "reason": reason}) if ready else text
            self.send_response(200 if reason == "takes part" or not ready else 503)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Told) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def told(*sources):
    """What the page is given to show of them."""
    overview = Overview(sources_of(map(str, sources)))
    overview.refresh()
    overview.pool.shutdown()
    return json.loads(overview.text)
