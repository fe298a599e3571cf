"""Pruning, from the one-shot study: Figs. 3e, 3f and 7, and what the text says about them."""

import numpy as np

from book.studies.oneshot.panels import NAMES, trained_for
from book.studies.verdicts.claims import Claims, pm
from book.studies.verdicts.rules import larger, marginal, number, stated, weakest

CLAIMS = Claims()

SHAPES = {"2_4": "L = 2, H = 4", "2_8": "L = 2, H = 8"}


def by_score(see, key: str) -> tuple:
    """Whether heads with low scores are those that matter little (rank correlation)."""
    rho = see.images[f"pruning_{key}"]["rank_correlation"]["omniglot"]["theory"]
    text = f"rank correlation of score and drop {pm(rho['value'], rho['standard_error'], 2)}, "
    text += f"p = {rho['p_value']:.3f}; full: p < 0.05, in kind: positive"
    return stated(rho["value"] > 0 and rho["p_value"] < 0.05, rho["value"] > 0), text


def lowest(see, key: str) -> tuple:
    """What each of the lowest heads costs when it alone is pruned."""
    part = see.images[f"pruning_{key}"]
    whole = part["whole"]["omniglot"]["mean"]
    drops, errors = (part[name]["omniglot"] for name in ("drop", "drop_error"))
    found = []
    for head in part["orders"]["theory"][: part["quarter"]]:
        i = part["heads"].index(head)
        found.append((head, drops[i], errors[i]))
    judged = [marginal(d, e, whole=whole, random=np.mean(drops)) for _, d, e in found]
    text = ", ".join(f"{layer}.{head}: {pm(d, e)}" for (layer, head), d, e in found)
    return weakest(*judged), f"drop without head {text}; mean of all heads {np.mean(drops):.3f}"


def quarter(see, key: str) -> tuple:
    """What the first quarter of the heads costs in distribution."""
    part = see.images[f"pruning_{key}"]
    change, random = (part["first"]["omniglot"][way] for way in ("theory", "random"))
    judged = marginal(
        -change["mean"],
        change["standard_error"],
        whole=part["whole"]["omniglot"]["mean"],
        random=-random["mean"],
    )
    text = f"{part['quarter']} of {len(part['heads'])} heads: "
    text += f"{part['whole']['omniglot']['mean']:.3f} before, "
    text += f"{change['mean']:+.3f} ± {change['standard_error']:.3f} after; "
    text += (
        f"at random {random['mean']:+.3f}, with a spread of {random['deviation']:.3f} over orders; "
    )
    ahead = change["mean"] - random["mean"]
    return judged, text + f"better than the mean of random orders by {ahead:.3f}"


def _panels(id, place, key, scores, curve):
    group = "Fig. 3" if place.startswith("Fig. 3") else "Appendix figures"
    first, second = place.split(" | ")
    shape = SHAPES[key]

    @CLAIMS.add(
        id[0], group, first, f"{shape}: the drop in accuracy is in line with the scores", scores
    )
    def _scores(see):
        judged, text = by_score(see, key)
        return judged, text + trained_for(see, key)

    @CLAIMS.add(
        id[1], group, second, f"{shape}: a quarter of the heads goes at a marginal loss", curve
    )
    def _curve(see):
        judged, text = quarter(see, key)
        return judged, text + trained_for(see, key)


_panels(("3e", "3f"), "Fig. 3e | Fig. 3f", "2_4", "fig-pruning-scores", "fig-pruning-slider")
_panels(("7a", "7b"), "Fig. 7a | Fig. 7b", "2_4", "fig-pruning-scores", "fig-pruning-orders")
_panels(("7c", "7d"), "Fig. 7c | Fig. 7d", "2_8", "fig-pruning-eight-scores", "fig-pruning-eight")


@CLAIMS.add(
    "two lowest heads",
    "Text, images",
    "Sec. 4.2, pruning",
    "each of the two heads with the lowest scores causes only a marginal drop",
    "fig-pruning-scores",
)
def _two_lowest(see):
    return lowest(see, "2_4")


@CLAIMS.add(
    "OOD improves",
    "Text, images",
    "Sec. 4.2, pruning",
    "pruning two heads even improves the accuracy on FashionMNIST",
    "fig-pruning-slider",
)
def _improves(see):
    change = see.images["pruning_2_4"]["first"]["fashion_mnist"]["theory"]
    return larger(change["mean"], change["standard_error"]), (
        f"change {change['mean']:+.3f} ± {change['standard_error']:.3f}"
    )


def _share_of_parameters(key: str, place: str, says: str, label: str):
    @CLAIMS.add(f"25 %, {key}", "Text, images", place, says, label)
    def _find(see):
        part = see.images[f"pruning_{key}"]
        sizes, gone = part["sizes"], part["quarter"]
        all_, heads = (
            1 - sizes[name][gone] / sizes[name][0] for name in ("parameters", "head_parameters")
        )
        text = f"{all_:.1%} of all parameters, {heads:.1%} of those in heads"
        return number(all_, 0, 0.25, unit=0.01, holds=abs(heads - 0.25) < 0.005), text


_share_of_parameters(
    "2_4",
    "Sec. 4.2, pruning",
    "two of eight heads are 25 % of the parameters",
    "fig-pruning-orders",
)
_share_of_parameters(
    "2_8", "App. H.2", "four of sixteen heads are 25 % of the network", "fig-pruning-eight-orders"
)


@CLAIMS.add(
    "identical drop",
    "Text, images",
    "App. H.2",
    "four heads of sixteen cost exactly as much as two of eight",
    "fig-pruning-eight-orders",
)
def _identical(see):
    small, large = (
        see.images[f"pruning_{key}"]["first"]["omniglot"]["theory"] for key in ("2_4", "2_8")
    )
    gap = large["mean"] - small["mean"]
    error = np.hypot(large["standard_error"], small["standard_error"])
    both = [quarter(see, key)[0].verdict for key in SHAPES]
    text = f"{large['mean']:+.3f} against {small['mean']:+.3f}, difference {pm(gap, error)}"
    judged = number(gap, error, 0, unit=0, holds=both == ["reproduced"] * 2)
    return judged, text + trained_for(see, "2_8")


@CLAIMS.add(
    "three heads of sixteen",
    "Text, images",
    "App. H.2",
    "pruning up to three heads of sixteen improves the accuracy on FashionMNIST",
    "fig-pruning-eight",
)
def _three(see):
    part = see.images["pruning_2_8"]
    curve = part["curves"]["fashion_mnist"]["theory"]
    whole = part["whole"]["fashion_mnist"]
    gain = curve[3] - curve[0]
    # as if the sequences before and after were not the same: rather too large
    error = np.sqrt(2) * whole["standard_error"]
    text = f"{NAMES['fashion_mnist']} after 0 to 3 heads: "
    text += ", ".join(f"{value:.3f}" for value in curve[:4])
    judged = weakest(larger(gain, error), stated(min(curve[1:4]) > curve[0], gain > 0))
    return judged, text + trained_for(see, "2_8")
