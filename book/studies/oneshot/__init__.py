"""One-shot images: theory, gradient descent and pruning of trained networks."""
