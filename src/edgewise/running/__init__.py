"""One run: solve, the loop, what is measured, kept and shown of it."""
