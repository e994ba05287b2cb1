"""The network: who may talk to whom, and how much they weigh each other."""
