"""One peer: its steps, its neighbours, when it ends, what it keeps."""
