"""What is counted, not fitted: survival curves, tests, scores of models, from sums over nodes."""
