"""What makes JAX compile quickly: compiling is most of the time that tests take.

Programs are not optimised, and they are kept in .pytest_cache/programs for other tests, workers and
processes, and for the next run. JAX finds one again by all that went into it (the program, the
versions, the flags), so that none is stale.
"""

import platform

from paths import ROOT

SETTINGS = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false",
    # compiled for a machine's own instructions
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache" / "programs" / platform.node()),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
