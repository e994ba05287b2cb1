"""Many runs: sweeps, tuning, comparisons, theory."""
