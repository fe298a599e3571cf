"""Every panel and claim of the paper, what we find, and a verdict by rule."""
