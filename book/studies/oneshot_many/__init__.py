"""One-shot images over many trained networks: theory, transfer and pruning, network by network."""
