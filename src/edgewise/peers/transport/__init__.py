"""Messages between peers: frames, streams, certificates."""
