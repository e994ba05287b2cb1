"""How messages travel: within a process, between devices, between the ranks of a cluster."""
