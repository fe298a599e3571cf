"""Three ways to sample the posterior: all tokens, all weights, the order parameter alone.

The first is a NumPyro model as the paper describes the network: every token goes through every
layer. It is the density of `sample_weights` in the same coordinates, so that its chains take as
many leapfrogs to a draw; what it would need to mix is beyond patience, so its rate is bounded
from above: each of its draws counts as independent.
"""

import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import initialize_model

from attnpaths import posterior
from attnpaths.posterior import densities
from attnpaths.posterior.draws import judged
from attnpaths.problem import Problem
from attnpaths.tasks import markov
from benchmarks.timing import milliseconds, table

WIDTH, TEMPERATURE = 10, 0.01
WIDTHS = (WIDTH,) * 3
TESTS = 100
# steps of a bounded walk with all tokens: 2^6 − 1 leapfrogs each
STEPS, DEPTH = 4, 6


def all_tokens(x, attention, y, readout):
    """The paper's network as a probabilistic model, with attention computed once."""
    layers = len(attention)

    def normal(name, *shape):
        return numpyro.sample(name, dist.Normal(jnp.zeros(shape), 1).to_event(len(shape)))

    state = x @ normal("V0", WIDTH, x.shape[2]).T / np.sqrt(x.shape[2])
    for i in range(layers):
        heads = attention[i].shape[1]
        attended = jnp.einsum("phst,psn->phtn", attention[i], state)
        state = jnp.einsum("hmn,phtn->ptm", normal(f"V{i + 1}", heads, WIDTH, WIDTH), attended)
        state = state / np.sqrt(WIDTH * heads)
    f = state[:, readout] @ normal("a", WIDTH) / np.sqrt(WIDTH)
    numpyro.sample("y", dist.Normal(f, np.sqrt(TEMPERATURE)), obs=y)


def gradient(potential, z):
    """Milliseconds for a value with its gradient."""
    both = jax.jit(jax.value_and_grad(potential))
    return milliseconds(lambda: both(z), repeats=31)


def with_tokens(task):
    """Milliseconds per gradient alone, and per leapfrog inside the sampler, with all tokens."""
    arguments = (task.train.x, task.network.attention(task.train.x), task.train.y)
    arguments += (task.network.readout,)
    start, potential, *_ = initialize_model(jax.random.key(0), all_tokens, model_args=arguments)
    _same_density(task, potential, start.z)
    _, alone, _ = gradient(potential, start.z)
    kernel = NUTS(
        all_tokens,
        step_size=1e-4,
        adapt_step_size=False,
        adapt_mass_matrix=False,
        max_tree_depth=DEPTH,
    )
    walk = MCMC(kernel, num_warmup=1, num_samples=STEPS, progress_bar=False)
    walk.run(jax.random.key(0), *arguments)  # compiles
    begin = time.perf_counter()
    walk.run(jax.random.key(1), *arguments, extra_fields=("num_steps",))
    taken = int(walk.get_extra_fields()["num_steps"].sum()) * (STEPS + 1) / STEPS
    return alone, 1e3 * (time.perf_counter() - begin) / taken


def _same_density(task, potential, z):
    """The model with tokens and `sample_weights` have the same gradient, or nothing compares."""
    density, data = weights_density(task)
    flat = jnp.concatenate([z[name].ravel() for name in ("V0", "V1", "V2", "a")])
    ours = jax.grad(density, argnums=1)(data, flat)
    theirs = jax.grad(potential)(z)
    theirs = np.concatenate([np.ravel(theirs[name]) for name in ("V0", "V1", "V2", "a")])
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


def weights_density(task):
    """What `sample_weights` samples, with its data."""
    density = densities.AllWeights(task.network.head_counts, WIDTHS, task.network.dim)
    return density, density.data(problem(task))


def problem(task):
    """The checked training set."""
    xi = task.network.features(task.train.x)
    heads = task.network.head_counts
    return Problem.of(xi, task.train.y, heads=heads, temperature=TEMPERATURE)


def run(sample, test):
    """Seconds from the call to the answer, its fewest effective draws of U and of f, and it."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        # the rate of draws is asked for here, not their number
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        result = jax.block_until_ready(sample())
    took = time.perf_counter() - begin
    f = np.asarray(result.predict(test).draws)
    return (
        took,
        float(np.min(result.ess_bulk)),
        float(np.min(judged("ess", f, method="bulk"))),
        result,
    )


def report():
    """Cost of a gradient, and effective draws per second, of the three ways."""
    task = markov.paper_task()
    setting = {"temperature": TEMPERATURE, "seed": 0, "progress": False}
    test = task.network.features(task.test.x[:TESTS])
    tokens, inside = with_tokens(task)

    density, data = weights_density(task)
    z = density.starts(jax.random.key(0), 1)[0]
    _, by_weights, _ = gradient(lambda z: density(data, z), z)
    seconds, U_draws, f_draws, result = run(
        lambda: posterior.sample_weights(
            task.network,
            task.train.x,
            task.train.y,
            width=WIDTH,
            chains=2,
            warmup=200,
            samples=200,
            **setting,
        ),
        test,
    )
    leapfrogs = float(np.mean(result.leapfrogs))
    at_most = 1e3 / (leapfrogs * inside) * result.at_a_time
    rows = [
        ["(i) all tokens", f"{tokens:.2f} ms", f"{leapfrogs:.0f}", *[f"< {at_most:.3f}"] * 2],
        _row("(ii) `sample_weights`", by_weights, leapfrogs, U_draws / seconds, f_draws / seconds),
    ]

    xi, y = problem(task)[:2]
    order = densities.OrderParameter(task.network.head_counts, WIDTHS)
    kernels = order.data(problem(task))
    z = order.starts(jax.random.key(0), 1)[0]
    _, by_order, _ = gradient(lambda z: order(kernels, z), z)

    def sampled(width):
        heads = task.network.head_counts
        return posterior.sample_order_parameter(xi, y, heads=heads, width=width, **setting)

    seconds, U_draws, f_draws, result = run(lambda: sampled(WIDTH), test)
    leapfrogs = float(np.mean(result.leapfrogs))
    rows.append(
        _row(
            "(iii) `sample_order_parameter`",
            by_order,
            leapfrogs,
            U_draws / seconds,
            f_draws / seconds,
        )
    )
    finished, draws, _, wide = run(lambda: sampled(100), test)
    head = ["way", "gradient", "leapfrogs", "draws of U per second", "of the predictor"]
    return (
        f"**Sampling the posterior** of the paper's task, N = {WIDTH}: effective draws per second "
        f"from the call to the answer, compiling and warm-up included, of the slowest entry of U "
        f"and of the slowest of {TESTS} test examples. Draws of (i) count as independent, and its "
        "compiling and warm-up as nothing\n\n"
        + table(head, rows)
        + f"\n\n(iii) gives at least {U_draws / seconds / at_most:.0f} times the draws of U of "
        f"(i), and {f_draws / seconds / at_most:.0f} times those of the predictor. A gradient of "
        f"(ii) is {tokens / by_weights:.0f} times cheaper than one of (i). At N = 100, (iii) is "
        f"finished in {finished:.0f} s: R-hat {float(np.max(wide.rhat)):.4f}, "
        f"{int(wide.divergences.sum())} divergences, {draws:.0f} effective draws."
    )


def _row(name, cost, leapfrogs, *rates):
    return [name, f"{cost:.2f} ms", f"{leapfrogs:.0f}", *(f"{rate:.3g}" for rate in rates)]


if __name__ == "__main__":
    print(report())
