"""What the paper claims about images and pruning, and how each claim will be judged.

This list was written before anything was run on the networks. A claim is about one number for
each trained network of a shape; `measured` says which, `rule` and `limit` what decides. Limits of
accuracies are in points over 100, so that 0.01 is one point.
"""

from typing import NamedTuple

#: The networks of the paper, layers and heads in each.
SMALL, DEEP, LARGE = (4, 4), (3, 3, 3), (8, 8)


class Rule(NamedTuple):
    """One claim, what is measured of every network, and the rule with its limit.

    `rule` is "positive", "below" the limit, or "comparable": smaller than the limit either way.
    """

    id: str
    group: str
    place: str
    says: str
    heads: tuple[int, ...]
    measured: str
    rule: str
    limit: float = 0.0


def _pruned(id, group, place, says, heads, measured, rule, limit=0.0) -> tuple[Rule, Rule]:
    """A claim on pruning twice: by the score of the authors' code, which made their figures, and
    by that of the text."""
    return (
        Rule(id, group, place, says, heads, f"{measured}; by the code's score", rule, limit),
        Rule(f"{id}, text", group, place, f"{says} (by the text's score)", heads,
             f"{measured}; by the text's score", rule, limit),
    )  # fmt: skip


_RHO = "Spearman's ρ of score and drop "
_GAIN = "accuracy at N = 10 minus that of the GP, each at its best temperature in distribution, "
_GAIN += "the GP's among ten, mean over draws of the 600 examples"

RULES = (
    Rule("gain", "Images", "Fig. 3b", "narrow networks are better than the Gaussian process",
         SMALL, _GAIN, "positive"),
    Rule("gain, deep", "Images", "Fig. 6a", "so are narrow networks of three layers",
         DEEP, _GAIN, "positive"),
    Rule("sampled accuracy", "Images", "Fig. 3b, dots",
         "sampled networks are as accurate as the theory says", SMALL,
         "accuracy of exact samples minus the theory's at N = 10", "comparable", 0.01),
    Rule("sampled U", "Images", "Fig. 3c", "theory and samples agree on the order parameter, at "
         "N = 10 units for 136 entries", SMALL,
         "‖samples − theory‖ over ‖samples − GP‖", "below", 0.25),
    Rule("ties", "Images", "Fig. 3c", "the order parameter has strong entries off the diagonal",
         SMALL, "largest |U_ππ'|/√(U_ππ U_π'π') at N = 10, minus 1/2", "positive"),
    Rule("ties, deep", "Images", "Fig. 6b", "it has them with three layers, too",
         DEEP, "largest |U_ππ'|/√(U_ππ U_π'π') at N = 10, minus 1/2", "positive"),
    Rule("weighting", "Images", "Sec. 4.2", "certain paths weigh more than others",
         SMALL, "ln of the largest over the smallest U_ππ, minus ln 2", "positive"),
    Rule("blocks", "Images", "Sec. 4.2", "correlations mostly occur between paths that share h₁",
         SMALL, "their share of Σ|U_ππ'| off the diagonal, minus 1/2", "positive"),
    Rule("first head", "Images", "Sec. 4.2", "h₁ determines which paths are enhanced", SMALL,
         "share of the variance of U_ππ that h₁ explains, minus 1/2", "positive"),
    Rule("descent, blocks", "Images", "Fig. 3c, gradient descent",
         "gradient descent preserves the block structure", SMALL,
         "ln of mean |U| of paths that share h₁ over that of others, trained network", "positive"),
    Rule("descent, signs", "Images", "Fig. 3c, gradient descent",
         "gradient descent preserves the signs", SMALL,
         "share of equal signs off the diagonal, minus its mean over all renamings of heads",
         "positive"),
    Rule("alignment, overlap", "Images", "Fig. 3d", "components overlap more with the labels than "
         "in the GP limit", SMALL, "largest squared overlap at N = 10 minus the GP's", "positive"),
    Rule("alignment, rank", "Images", "Fig. 3d", "aligned components are of higher rank",
         SMALL, "squared overlaps of the first ten components minus the GP's", "positive"),
    Rule("temperature grows", "Images", "App. H.2", "the best temperature grows as N gets smaller",
         SMALL, "minus the slope of ln 𝒯 on ln N over ten widths, mean over draws", "positive"),
    Rule("temperatures", "Images", "App. H.2", "the best temperatures are 0.5, … 0.075", SMALL,
         "mean over widths of |log₂| of the best temperature (geometric mean over draws) over the "
         "paper's: at most one factor of two", "below", 1.0),
    Rule("magnitude", "Images", "App. H.2", "the order parameter grows as N gets smaller", SMALL,
         "ln of tr U at N = 10 over that at N = 10,000, each at its best temperature", "positive"),
    Rule("gain, FashionMNIST", "Out of distribution", "Fig. 3b", "the improvement over the GP is "
         "preserved on FashionMNIST", SMALL, _GAIN + "; the authors' set", "positive"),
    Rule("gain, MNIST", "Out of distribution", "Fig. 6a", "on MNIST the two are comparable", SMALL,
         _GAIN + "; the authors' set", "comparable", 0.01),
    Rule("gain, MNIST, deep", "Out of distribution", "Fig. 6a", "with three layers the improvement "
         "is preserved on MNIST", DEEP, _GAIN + "; the authors' set", "positive"),
    Rule("gain, FashionMNIST, deep", "Out of distribution", "Fig. 6a", "and on FashionMNIST the "
         "two are comparable", DEEP, _GAIN + "; the authors' set", "comparable", 0.01),
    *_pruned("pruned, FashionMNIST", "Out of distribution", "Fig. 3f", "pruning two heads improves "
             "the accuracy on FashionMNIST", SMALL,
             "accuracy without the two heads of lowest score minus before; the authors' set",
             "positive"),
    *_pruned("pruned, FashionMNIST, large", "Out of distribution", "Fig. 7d", "pruning up to three "
             "of sixteen heads improves it", LARGE,
             "smallest change of accuracy without one, two, three heads; the authors' set",
             "positive"),
    *_pruned("score", "Pruning", "Fig. 3e", "the drops are in line with the scores", SMALL,
             f"{_RHO}within layers, mean over layers", "positive"),
    *_pruned("score, pooled", "Pruning", "Fig. 3e", "the same, over both layers together", SMALL,
             f"{_RHO}over all heads; the authors' own is .857", "positive"),
    *_pruned("score, large", "Pruning", "Fig. 7c", "so they are with eight heads", LARGE,
             f"{_RHO}within layers, mean over layers", "positive"),
    *_pruned("two lowest", "Pruning", "Fig. 3e", "each of the two lowest heads costs little", SMALL,
             "the larger of their two drops; the authors' own are 0.8 and 2.0 points, each ± 0.9",
             "below", 0.03),
    *_pruned("a quarter", "Pruning", "Fig. 3f", "two of eight heads go at a marginal loss", SMALL,
             "accuracy before minus without the two heads of lowest score", "below", 0.05),
    *_pruned("a quarter, large", "Pruning", "Fig. 7d", "four of sixteen heads go at a marginal "
             "loss", LARGE, "accuracy before minus without the four heads of lowest score", "below",
             0.05),
    *_pruned("identical", "Pruning", "App. H.2", "that loss is identical to that of two of eight",
             LARGE, "loss of each large network minus the mean loss of the small ones",
             "comparable", 0.02),
)  # fmt: skip
