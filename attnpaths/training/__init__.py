"""Gradient descent on all weights of the one-shot network, in PyTorch.

    python -m attnpaths.training --layers 2 --heads 4 --key-dim 128 --width 512 \\
        --source omniglot --epochs 10 --out FOLDER

trains, keeps the weights that are best on the validation classes, and writes them to
FOLDER/weights.npz with their history in FOLDER/weights.json. The same command goes on where an
interrupted one stopped. Needs PyTorch: `pip install "attnpaths[torch]"`.
"""

from attnpaths import _extras

_extras.require("torch", "torch", "attnpaths.training")

from attnpaths.training.batches import batches_per_epoch, epoch  # noqa: E402
from attnpaths.training.files import Trained, load_weights, save_weights  # noqa: E402
from attnpaths.training.loop import Settings, accuracy, train  # noqa: E402
from attnpaths.training.model import Model  # noqa: E402

__all__ = ["Model", "Settings", "Trained", "accuracy", "batches_per_epoch", "epoch"]
__all__ += ["load_weights", "save_weights", "train"]
