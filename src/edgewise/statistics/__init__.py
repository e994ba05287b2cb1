"""What is counted, not fitted: survival curves, tests, scores of models, from sums over nodes."""

import lazy_loader  # type: ignore[import-untyped]

# peers, who count, need not import what curves and tests take
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["metrics"])
