"""What the paper left open: skips, several outputs, nonlinear blocks."""
