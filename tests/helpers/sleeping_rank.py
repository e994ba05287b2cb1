"""A rank that never ends by itself, for test_end_with_parent.py: it leaves its process id in a
folder."""

import os
import sys
import time
from pathlib import Path

(Path(sys.argv[1]) / str(os.getpid())).touch()
time.sleep(3600)
