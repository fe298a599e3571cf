"""Theory against samples on hidden Markov chains, from the studies of sampling."""

import numpy as np

from book.studies.sampling import run as sampling
from book.studies.verdicts.claims import Claims, pm
from book.studies.verdicts.rules import agree, bound, larger, unchecked, weakest

CLAIMS = Claims()

HOUR = 3600


def in_errors(one, other, key: str) -> float:
    """The largest difference between two parts, in their joint standard errors."""
    gap = np.abs(np.asarray(one[key]) - np.asarray(other[key]))
    return float(np.max(gap / np.hypot(one[f"{key}_mcse"], other[f"{key}_mcse"])))


def dots(problem, study, prefix: str, widths) -> tuple:
    """Accuracies of sampled weights beside the theory's and the Gaussian process's."""
    limit = problem.right(problem.gp()).mean()
    judged, rows = [], []
    for N in widths:
        part = study[f"{prefix}weights, N = {N}"]
        found, error, wanted = part["accuracy"], part["accuracy_mcse"], problem.solve(N)
        wanted = float(problem.right(wanted).mean())
        apart = abs(found - wanted)
        # an accuracy on 1000 chains moves in steps
        error = max(error, 0.5 / len(problem.test))
        nearer = (abs(found - limit) - apart) / error
        judged.append(agree(apart / error, nearer=nearer, many=True))
        rows.append(f"{N}: {found:.3f} ± {error:.3f} ({wanted:.3f})")
    return weakest(*judged), f"samples (theory), N = {', '.join(rows)}"


@CLAIMS.add(
    "1b",
    "Schematics",
    "Fig. 1b",
    "the order parameter is the overlap of effective weights",
    "fig-sampling-entries",
)
def _overlap_of_weights(see):
    weights, exact = (see.sampling[f"{way}, N = 10"] for way in ("weights", "exact"))
    apart = in_errors(weights, exact, "U")
    text = "overlaps of sampled weights, and samples of U itself, differ by at most "
    return agree(apart, many=True), text + f"{apart:.1f} standard errors in 10 entries"


@CLAIMS.add(
    "2c, sampled accuracy",
    "Chains",
    "Fig. 2c, top, dots",
    "accuracies of sampled networks lie on the theory's curve",
    "fig-sampling-accuracy",
)
def _sampled_accuracy(see):
    return dots(see.chains.four, see.sampling, "", sampling.WIDTHS)


@CLAIMS.add(
    "2c, sampled U",
    "Chains",
    "Fig. 2c, bottom, dots",
    "order parameters of sampled networks",
    "fig-sampling-dots",
)
def _authors_sampler(see):
    theirs, ours = see.sampling["authors"], see.sampling["weights, N = 10"]
    theirs = theirs | {"U_mcse": np.asarray(ours["U_sd"]) / np.sqrt(theirs["draws"])}
    apart = in_errors(ours, theirs, "U")
    text = f"N = 10, good path: {pm(ours['U'][0][0], ours['U_mcse'][0][0], 2)}, "
    text += f"authors' sampler {theirs['U'][0][0]:.2f}; "
    judged = agree(apart, many=True)
    return judged, text + f"at most {apart:.1f} standard errors apart in 10 entries"


@CLAIMS.add(
    "2e, sampled accuracy",
    "Chains",
    "Fig. 2e, dots",
    "two paths in strong noise: sampled networks lie on the theory's curve",
    "fig-sampling-pair",
)
def _sampled_pair(see):
    return dots(see.chains.pair, see.sampling, "pair ", sampling.PAIR_LENGTHS)


@CLAIMS.add(
    "agreement at N = 10, chains",
    "Chains",
    "Sec. 4.2, end",
    "theory and samples agree even at N = 10, in predictor and order parameter",
    "fig-sampling-predictors",
)
def _narrow_agreement(see):
    part, four = see.sampling["exact, N = 10"], see.chains.four
    saddle, limit = four.solve(10), four.gp()
    errors, ratios, nearer = [], [], []
    for key, wanted, gp in (
        ("U", saddle.U, limit.U),
        ("f", four.mean(saddle)[sampling.SHOWN], four.mean(limit)[sampling.SHOWN]),
    ):
        found, error = np.asarray(part[key]), np.asarray(part[f"{key}_mcse"])
        errors.append(np.max(np.abs(found - wanted) / error))
        to_theory, to_gp = (np.linalg.norm(found - np.asarray(each)) for each in (wanted, gp))
        ratios.append(to_theory / to_gp)
        nearer.append((to_gp - to_theory) / np.linalg.norm(error))
    text = f"U differs by {part['U_apart']:.1%} ± {part['U_apart_mcse']:.1%}, the predictor by "
    text += f"{part['f_apart']:.1%} ± {part['f_apart_mcse']:.2%}; largest difference of one entry "
    text += f"{errors[0]:.0f}, of one prediction {errors[1]:.0f} standard errors; distance to the "
    text += f"theory over that to the GP: {ratios[0]:.3f} for U, {ratios[1]:.3f} for the predictor"
    judged = [agree(e, nearer=n, many=True) for e, n in zip(errors, nearer, strict=True)]
    return weakest(*judged), text


@CLAIMS.add(
    "exact in the limit",
    "Chains",
    "Sec. 4.2, end",
    "the theory becomes exact as N and P grow together",
    "fig-sampling-growing",
)
def _limit(see):
    widths = sorted(
        int(part.rpartition(" ")[2]) for part in see.corrections if part.startswith("growing P")
    )
    judged, texts = [], []
    for key, name in (("U", "U"), ("f", "the predictor")):
        errors = np.array([see.corrections[f"growing P, N = {N}"][key] for N in widths])
        slopes = np.polyfit(np.log(widths), np.log(errors), 1)[0]
        slope, spread = slopes.mean(), slopes.std(ddof=1) / np.sqrt(len(slopes))
        judged.append(larger(-slope, spread))
        texts.append(f"of {name} as N to the power {pm(slope, spread, 2)}")
    of = f"Gaussian vectors, N = {widths[0]} to {widths[-1]}, {len(slopes)} draws"
    text = f"error {', '.join(texts)} ({of})"
    return weakest(*judged), text


@CLAIMS.add(
    "sampler settings",
    "Chains",
    "App. F",
    "10 chains of 1000 + 1000 steps, of which one in ten is kept: 1000 samples",
    "discrepancies",
)
def _settings(see):
    part = see.sampling["weights, N = 10"]
    drawn = part["chains"] * part["samples"]
    text = "about the authors' runs, whose code keeps every draw. Ours: "
    return (
        unchecked(),
        text + f"{drawn} draws of all weights, worth {part['ess']:.0f} independent ones",
    )


@CLAIMS.add(
    "sampling hours",
    "Costs",
    "App. F",
    "12 sampling runs, each below 12 hours of an A100",
    "sampling",
)
def _hours(see):
    runs = [f"weights, N = {N}" for N in sampling.WIDTHS]
    runs += [f"pair weights, N = {N}" for N in sampling.PAIR_LENGTHS]
    seconds = {run: see.sampling.provenance(run)["seconds"] for run in runs if see.sampling[run]}
    seconds |= {
        part: see.images[part]["seconds"] for part in see.images if part.endswith(": sampled")
    }
    longest = max(seconds.values())
    cores = see.sampling.provenance(runs[0])["cores"]
    text = f"{len(seconds)} runs on {cores} cores, the longest {longest / 60:.0f} minutes, "
    kept = [see.sampling[run]["chains"] * see.sampling[run]["samples"] for run in runs]
    text += f"together {sum(seconds.values()) / HOUR:.1f} hours; "
    text += f"{min(kept)} to {max(kept)} draws of all weights, where the paper has 1000; "
    text += "those of images are of the order parameter"
    return bound(longest, 12 * HOUR), text
