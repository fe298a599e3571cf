"""Measurements of the library, each table from one run: `make bench`."""
