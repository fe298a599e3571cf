"""The hidden Markov chains of the paper: what the claims about them rest on."""
