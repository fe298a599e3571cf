"""Networks of PyTorch, as the library sees them: by their weights, or by their attention.

By weights (`network_from_torch`, `weights_from_torch`) is exact where all layers attend to the bare
tokens, as in the paper. By attention: `record_attention` runs a standard transformer and keeps what
it attends to, for `Network.from_attention`; `without_heads` prunes it for a while, `gated_heads`
weighs its heads. Needs PyTorch: `pip install "attnpaths[torch]"`.
"""

from attnpaths import _extras

_extras.require("torch", "torch", "attnpaths.adapters")

from attnpaths.adapters.attention import (  # noqa: E402
    Recording,
    gated_heads,
    keys_first,
    record_attention,
    without_heads,
)
from attnpaths.adapters.layers import Layer, network_from_torch, weights_from_torch  # noqa: E402

__all__ = [
    "Layer", "Recording", "gated_heads", "keys_first", "network_from_torch", "record_attention",
    "weights_from_torch", "without_heads",
]  # fmt: skip
