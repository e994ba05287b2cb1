"""The command line, for `mpi_launch` to start."""

from edgewise.cli import main

main()
