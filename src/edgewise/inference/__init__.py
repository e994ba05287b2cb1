"""After a fit: standard errors, tests and tables, from sums over the nodes."""
