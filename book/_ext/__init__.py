"""How all this enters pages that ask nothing of other servers: extensions of Sphinx."""
