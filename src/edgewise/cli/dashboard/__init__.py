"""`edgewise network ui`: a page about the peers of a network, served on this machine alone."""
