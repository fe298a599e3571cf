"""Studies that take longer than a page may, their stored results, and the claims judged by them.

Each folder is one study: `run` computes `results.json`, `figures` draw it, `claims` judge what
the paper says. `engine` keeps what was computed, `statistics` is what several studies count
with, and `verdicts` turns claims into the table of the status page.
"""
