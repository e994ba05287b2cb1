"""How an outbox becomes an inbox: in one process, over devices, over MPI ranks, under faults."""
