"""What the authors' published code gives on the hidden Markov chain, run as it is.

In float64 at temperature 0.01, on their data with their heads. The order parameters are those
of their action, minimised until its gradient is below 1e-13, except in `STOPPED`. The numbers
stand in files beside this one, each of which says what it holds: `data.json`, `theory.json`,
`sampler.json`, and `oneshot.json` with what their plotting and pruning scripts say of images.
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def read(name: str) -> dict[str, Any]:
    """One of the files: `"data"`, `"theory"`, `"sampler"` or `"oneshot"`.

    >>> read("sampler")["draws"]
    300
    """
    path = HERE / f"{name}.json"
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}); restore it from the repository") from error


_DATA, _THEORY = read("data"), read("theory")
_STOPPED = _THEORY["four_paths"]["10"]


def _solved(found: dict) -> dict[str, Any]:
    """Accuracy, levels of the order parameter and ten predictions."""
    names = {"test_accuracy": "accuracy", "U1": "U", "U2": "U2", "U3": "U3"}
    names |= {"predictor_mean_first10": "mean"}
    return {ours: found[theirs] for theirs, ours in names.items() if theirs in found}


def _kernels(found: dict) -> dict[str, Any]:
    return {name: found[f"prekernel_{name}"] for name in ("trace", "sum", "00", "01")}


def _by_width(name: str) -> dict[int, dict]:
    return {int(N): _solved(found) for N, found in _THEORY[name].items()}


def _alone(found: dict) -> dict[int, float]:
    singles = found["isolated_or_subset_paths_gp_accuracy"]
    return {int(path): value for path, value in singles.items() if "+" not in path}


def _statistics(found: dict) -> dict[str, float]:
    kept = ("trace", "sum", "fro", "min", "max", "eig_max", "eig_2", "eig_min")
    return {name: found[name] for name in kept}


#: Sums over all entries of the inputs.
DATA = {
    name: {key: _DATA["data"][name]["x"][key] for key in ("sum", "sum_sq", "abs_sum")}
    for name in ("train", "test")
}
#: The theory of four paths by width: accuracy, levels of the order parameter, ten predictions.
FOUR = _by_width("four_paths")
#: The Gaussian process of all paths, of the good path, and of good and denoising.
FOUR_GP, GOOD_GP, GOOD_DENOISING_GP = (
    _solved(_THEORY[name]) for name in ("four_paths_gp", "gp_good_path", "gp_good_and_denoising")
)
#: Accuracy of the Gaussian process of one path, in the order of paths.
ALONE = _alone(_THEORY["four_paths_gp"])
#: Of the path–path kernels C: trace, sum, and two of their entries.
PATH_KERNELS = _kernels(_THEORY["four_paths_gp"])
#: The total kernel of the Gaussian process, and how its components align with the labels.
GP_KERNEL = _statistics(_THEORY["four_paths_gp"]["kernel_stats"])
GP_OVERLAPS = _THEORY["four_paths_gp"]["alignment_first30"]["overlaps"]
#: Where their Adam stopped at N = 10, and what their code made of that order parameter.
STOPPED = {
    "U": _STOPPED["U1_adam"],
    "overlaps": _STOPPED["alignment_first30_adam"],
    "kernel": _statistics(_STOPPED["kernel_adam"]),
}
#: Two paths in strong noise, with the uniform head.
UNIFORM = _by_width("two_paths_uniform_head_sigma_perp_5")
UNIFORM_GP = _solved(_THEORY["two_paths_gp"])
UNIFORM_ALONE = _alone(_THEORY["two_paths_gp"])
UNIFORM_PATH_KERNELS = _kernels(_THEORY["two_paths_gp"])

_ONESHOT = read("oneshot")
#: Fig. 3e: what each head costs, in ascending order of its score, and on how many sequences.
DROPS = [
    round((_ONESHOT["fig3e"]["base_accuracy_percent"] - left) / 100, 4)
    for left in _ONESHOT["fig3e"]["accuracy_without_one_head_percent_in_ascending_order_of_score"]
]
DROP_SEQUENCES = _ONESHOT["fig3e"]["test_sequences"]
