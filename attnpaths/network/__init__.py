"""The network: fixed attention, weights that are learned, and its two forms.

`Network.apply` follows the layers, `Network.apply_paths` sums over attention paths: they agree to
rounding, from which the whole theory starts. `Attended` is attention from elsewhere.
"""

from attnpaths.network.attended import Attended
from attnpaths.network.model import Network
from attnpaths.network.weights import (
    Weights,
    effective_weights,
    empirical_order_parameter,
    path_outputs,
)

__all__ = [
    "Attended", "Network", "Weights", "effective_weights", "empirical_order_parameter",
    "path_outputs",
]  # fmt: skip
