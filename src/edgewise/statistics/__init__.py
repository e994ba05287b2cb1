"""What is counted, not fitted: survival curves, tests, scores of models, from sums over nodes."""

import edgewise.statistics.metrics as metrics

__all__ = ["metrics"]
