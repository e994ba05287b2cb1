"""What an operator sees and does: meshes, logs, metrics, status, signals."""
