"""What a peer is told before it starts."""
