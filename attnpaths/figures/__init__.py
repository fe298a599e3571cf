"""Plotly figures: one function per picture, data in, `go.Figure` out.

The page lends a figure its own ink and background, in light and in dark, so colours set here
are seen on both. Every figure says in `layout.meta["alt"]` what it shows. Needs Plotly:
`pip install "attnpaths[figures]"`.
"""

from attnpaths import _extras

_extras.require("plotly", "figures", "attnpaths.figures")

from attnpaths.figures.model import attention_maps, chain, one_path, path_count, path_tokens  # noqa: E402
from attnpaths.figures.style import PATH_COLOURS, with_choice, with_slider  # noqa: E402
from attnpaths.figures.theory import accuracy_against_width, order_parameters  # noqa: E402

__all__ = [
    "PATH_COLOURS",
    "accuracy_against_width",
    "attention_maps",
    "chain",
    "one_path",
    "order_parameters",
    "path_count",
    "path_tokens",
    "with_choice",
    "with_slider",
]
