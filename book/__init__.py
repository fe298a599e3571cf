"""The book: chapters, the studies behind them, and the machinery that makes pages of both."""
