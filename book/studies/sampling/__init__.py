"""Theory against sampling on the hidden Markov chain."""
