"""Where things are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"  # real data sets; tests that want them are skipped without
HELPERS = Path(__file__).resolve().parent
