"""What is minimised: losses, penalties, samples of a block of nodes, smoothness."""
