"""The files in examples/, as modules."""

import importlib.util
from types import ModuleType

from paths import ROOT

EXAMPLES = ROOT / "examples"
DATA = {"power_cases.py"}  # what an example reads, and none itself


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
