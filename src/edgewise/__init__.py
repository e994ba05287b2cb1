"""Edgewise: fit models across machines that keep their own data, with no coordinator.

What there is to import is listed in `__init__.pyi`. A name's module is imported when the name is
first used, so that `import edgewise` is quick, and `Peer` needs its extra only where it is used.
"""

from importlib.metadata import PackageNotFoundError, version

import lazy_loader

try:
    __version__ = version("edgewise")
except PackageNotFoundError:  # a source tree on PYTHONPATH
    __version__ = "0+unknown"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
