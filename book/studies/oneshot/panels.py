"""Panels on one-shot images, from the one-shot study: Figs. 3a to 3d and Fig. 6."""

import numpy as np

from attnpaths.tasks import images, oneshot
from book.studies.oneshot import run as study
from book.studies.verdicts.claims import Claims, pm
from book.studies.verdicts.rules import agree, larger, no_worse, stated, weakest

CLAIMS = Claims()

NAMES = {"omniglot": "Omniglot", "mnist": "MNIST", "fashion_mnist": "FashionMNIST"}
NARROW = study.NARROW


def gain_of_draws(see, source: str) -> tuple[float, float, str]:
    """How much better than the GP a network with N = 10 is, over draws of the data."""
    part = see.images["draws_2_4"]
    at = part["widths"].index(NARROW)
    ways = {way: part[way]["gain"][source] for way in ("best", "held_out")}
    gain, error = (ways["best"][key][at] for key in ("mean", "standard_error"))
    accuracy = np.mean(part["best"]["accuracy"][source], axis=0)[at]
    text = f"N = 10 {accuracy:.3f}, gain over the GP {pm(gain, error)} over {len(part['seeds'])} "
    text += "draws; temperatures chosen on other draws: "
    text += pm(*(ways["held_out"][key][at] for key in ("mean", "standard_error")))
    return gain, error, text


def gain_of_sweep(see, key: str, source: str) -> tuple[float, float, str]:
    """The same of a network with one draw; the error is over its test sequences."""
    part = see.images[f"sweep_{key}"]
    at = part["widths"].index(NARROW)
    chosen = part["temperatures"].index(part["best_temperature"][at])
    limit = part["temperatures"].index(part["gp_best_temperature"])
    ours, gp = part["accuracy"][source][at][chosen], part["gp_accuracy"][source][limit]
    # as if the sequences were not the same: rather too large
    error = np.sqrt((ours * (1 - ours) + gp * (1 - gp)) / part["test_examples"])
    text = f"N = 10 {ours:.3f}, GP {gp:.3f}, gain {pm(ours - gp, error)}, one draw"
    return ours - gp, float(error), text + trained_for(see, key)


def trained_for(see, key: str) -> str:
    """A remark on a network that was trained for less than the paper's ten epochs."""
    epochs = see.images.trained(key).record["settings"]["epochs"]
    return "" if epochs == 10 else f" (heads trained for {epochs:g} epochs, not 10)"


@CLAIMS.add(
    "3a",
    "Fig. 3",
    "Fig. 3a",
    "the task: which of two images is like the third?",
    "fig-oneshot-task",
)
def _task(see):
    glyphs = images.load("glyphs", classes=20, progress=False)
    drawn = oneshot.draw(glyphs, 100, seed=0)
    tokens = oneshot.Encoder(glyphs, oneshot.label_vectors())(drawn[:2]).shape
    classes = glyphs.labels[drawn.images]
    match = np.where(classes[:, 2] == classes[:, 0], drawn.signs, -drawn.signs)
    distinct = np.all(classes[:, 0] != classes[:, 1])
    text = f"100 sequences of glyphs: {tokens[1]} tokens of {tokens[2]} numbers, the label is "
    return (
        stated(np.all(match == drawn.y) and distinct and tokens[1] % 3 == 0),
        text + f"that of the matching image in {np.mean(match == drawn.y):.0%}",
    )


@CLAIMS.add(
    "3b, Omniglot",
    "Fig. 3",
    "Fig. 3b",
    "in distribution, narrow networks are better than the Gaussian process",
    "fig-oneshot-accuracy",
)
def _in_distribution(see):
    gain, error, text = gain_of_draws(see, "omniglot")
    return larger(gain, error), text


@CLAIMS.add(
    "3b, FashionMNIST",
    "Fig. 3",
    "Fig. 3b",
    "the improvement is preserved out of distribution, on FashionMNIST",
    "fig-oneshot-accuracy",
)
def _out_of_distribution(see):
    gain, error, text = gain_of_draws(see, "fashion_mnist")
    return larger(gain, error), text


@CLAIMS.add(
    "3b, sampled",
    "Fig. 3",
    "Fig. 3b, dots",
    "accuracies of sampled networks lie on the theory's curve",
    "fig-oneshot-accuracy",
)
def _sampled_accuracy(see):
    sweep = see.images["sweep_2_4"]
    errors, to_theory, to_gp, texts = [], [], [], []
    for part in (see.images["sampled_2_4"], *see.images["wider_2_4"]["runs"]):
        row, column = (sweep[f"{key}s"].index(part[key]) for key in ("width", "temperature"))
        own = []
        for source in ("omniglot", "fashion_mnist"):
            theory, gp = (
                sweep["accuracy"][source][row][column],
                sweep["gp_accuracy"][source][column],
            )
            found = part["accuracy"][source]
            error = max(part["accuracy_mcse"][source], 0.5 / sweep["test_examples"])
            errors.append(abs(found - theory) / error)
            to_theory.append(abs(found - theory))
            to_gp.append(abs(found - gp))
            own.append(f"{NAMES[source]} {pm(found, error)}, theory {theory:.3f}, GP {gp:.3f}")
        texts.append(f"N = {part['width']}: {', '.join(own)}")
    judged = agree(max(errors), nearer=sum(to_theory) < sum(to_gp), many=True)
    return judged, "; ".join(texts) + f"; largest difference {max(errors):.1f} standard errors"


@CLAIMS.add(
    "3c, theory and samples",
    "Fig. 3",
    "Fig. 3c, theory, sampled",
    "the order parameter at N = 10 is the same from theory and from samples, far from the identity",
    "fig-oneshot-U",
)
def _sampled_order_parameter(see):
    part, U = see.images["sampled_2_4"], np.asarray(see.images["theory_2_4"]["U"])
    found, error = np.asarray(part["U"]), np.asarray(part["mcse"])
    apart, far = (np.linalg.norm(found - each) / np.linalg.norm(U) for each in (U, np.eye(len(U))))
    z = np.max(np.abs(found - U) / error)
    text = f"‖samples − theory‖ is {apart:.0%} of ‖U‖, ‖samples − identity‖ {far:.0%}; entries "
    text += f"correlate with {part['agreement']['theory']['correlation']:.2f}; largest "
    text += f"difference {z:.1f} standard errors; R-hat up to {part['largest_rhat']:.2f}; "
    text += f"distance to the theory over that to the GP: {apart / far:.2f}"
    return agree(z, nearer=apart < far, many=True), text


@CLAIMS.add(
    "3c, gradient descent",
    "Fig. 3",
    "Fig. 3c, gradient descent",
    "block structure and signs are preserved in the network trained by gradient descent",
    "fig-oneshot-entries",
)
def _gradient_descent(see):
    part, own = see.images["theory_2_4"], see.images["trained_2_4"]
    found = part["agreement"]["gradient_descent"]
    pairs = len(part["U"]) * (len(part["U"]) - 1) // 2
    # what networks with the same blocks, but other heads, would share
    luck = study.against_renamed(part["U"], own["U"], (4, 4))["signs"]
    signs = larger(found["signs"] - luck.mean(), luck.std())
    blocks = stated(own["block_ratio"] > 1 and part["block_ratio"] > 1)
    text = f"equal signs in {found['signs']:.0%} of {pairs} entries ({found['weighted_signs']:.0%} "
    text += f"by size), with renamed heads {luck.mean():.0%} ± {luck.std():.0%}; "
    text += f"correlation {found['correlation']:.2f}; entries of paths that share h₁ are "
    text += f"{own['block_ratio']:.1f} times the others (theory {part['block_ratio']:.1f})"
    return weakest(signs, blocks), text


@CLAIMS.add(
    "3d",
    "Fig. 3",
    "Fig. 3d",
    "components aligned with the labels overlap more and rank higher than in the GP limit",
    "fig-oneshot-alignment",
)
def _alignment(see):
    part = see.images["theory_2_4"]
    ours, gp = (np.square(part[key]) for key in ("alignment", "gp_alignment"))
    largest = ours.max() > gp.max()
    first = ours[:10].sum() > gp[:10].sum()
    text = f"largest overlap {np.sqrt(ours.max()):.2f} at component {ours.argmax() + 1}, GP "
    text += f"{np.sqrt(gp.max()):.2f} at {gp.argmax() + 1}; the first 10 carry "
    text += f"{ours[:10].sum():.0%} of the labels, GP {gp[:10].sum():.0%}; in kind: one of the two"
    return stated(largest and first, largest or first), text


def _deeper_and_not(key: str, source: str):
    """The six curves of Fig. 6a; for two of them the paper only says *comparable*."""
    shape = "L = 2, H = 4" if key == "2_4" else "L = 3, H = 3"
    comparable = (key, source) in (("2_4", "mnist"), ("3_3", "fashion_mnist"))
    what = (
        "comparable to the Gaussian process" if comparable else "better than the Gaussian process"
    )
    label = "fig-oneshot-accuracy" if key == "2_4" else "fig-oneshot-deeper"
    place = f"Fig. 6a, {shape}, {NAMES[source]}"

    @CLAIMS.add(
        f"6a, {key}, {source}", "Appendix figures", place, f"narrow networks are {what}", label
    )
    def _find(see):
        if key == "2_4":
            gain, error, text = gain_of_draws(see, source)
        else:
            gain, error, text = gain_of_sweep(see, key, source)
        return (no_worse if comparable else larger)(gain, error), text


for _key in ("2_4", "3_3"):
    for _source in NAMES:
        _deeper_and_not(_key, _source)


@CLAIMS.add(
    "6b",
    "Appendix figures",
    "Fig. 6b",
    "L = 3, H = 3 at N = 10: strong entries off the diagonal",
    "fig-oneshot-deeper-U",
)
def _deeper_order_parameter(see):
    U = np.asarray(see.images["theory_3_3"]["U"])
    strength = np.sqrt(np.diag(U))
    r = np.abs(U / np.outer(strength, strength))[np.triu_indices(len(U), 1)]
    text = f"as correlations up to {r.max():.2f}, on average {r.mean():.2f}; full: one above 0.5, "
    return stated(r.max() > 0.5, r.max() > 0.1), text + "in kind: 0.1" + trained_for(see, "3_3")
