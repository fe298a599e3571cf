"""A grid of solutions is chosen from, counted, written down and shown as NumPy's would be."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import theory
from attnpaths.theory import gp_limit, solve, sweep

HEADS, WIDTHS, TEMPERATURES = (2, 3), [5, 20, 80, 1000], [0.1, 1.0, 0.02]


def problem(seed=7, examples=15):
    rng = np.random.default_rng(seed)
    xi = rng.standard_normal((examples, 6, 4))
    return xi, np.sign(xi[:, 0, 0] + 0.3 * rng.standard_normal(examples))


@pytest.fixture(scope="module")
def grid():
    xi, y = problem()
    return sweep(xi, y, heads=HEADS, widths=WIDTHS, temperatures=TEMPERATURES, progress=False)


INDICES = {
    "a row": 1,
    "the last row": -1,
    "a column": np.s_[:, 0],
    "the last column": np.s_[:, -1],
    "part of a column": np.s_[1:, 1],
    "a block": np.s_[1:3, :2],
    "backwards": np.s_[::-1],
    "chosen rows": np.s_[[2, 0]],
    "chosen columns": np.s_[:, [2, 0]],
    "all": np.s_[...],
    "a mask of rows": np.array([True, False, False, True]),
    "one row, kept": np.s_[1:2],
    "an index of NumPy": np.int64(2),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_chosen_as_numpy_would(grid, index):
    chosen = grid[index]
    for name in ("U", "action", "converged", "evaluations", "width", "gradient_norm"):
        np.testing.assert_array_equal(getattr(chosen, name), np.asarray(getattr(grid, name))[index])
    np.testing.assert_array_equal(chosen.temperature, np.asarray(grid.temperature)[index])
    for i, level in enumerate(chosen.levels):
        np.testing.assert_array_equal(level, np.asarray(grid.levels[i])[index])
    assert isinstance(chosen, theory.Sweep)
    assert set(chosen.widths) == set(np.ravel(chosen.width).tolist())
    assert set(chosen.temperatures) == set(np.ravel(chosen.temperature).tolist())
    assert len(chosen) == len(np.asarray(grid.action)[index])
    xi, _ = problem()
    whole = np.asarray(grid.predict(xi[:3]).mean)
    np.testing.assert_allclose(chosen.predict(xi[:3]).mean, whole[index], rtol=1e-12)


def test_widths_and_temperatures_follow_the_choice(grid):
    assert grid[:, 0].widths == tuple(map(float, WIDTHS)) and grid[:, 0].temperatures == (0.1,)
    assert grid[2].widths == (80.0,) and grid[2].temperatures == tuple(TEMPERATURES)
    assert grid[::-1, [2, 0]].widths == tuple(map(float, WIDTHS[::-1]))
    assert grid[::-1, [2, 0]].temperatures == (0.02, 0.1)


def test_an_ellipsis_stands_for_axes_of_the_grid(grid):
    np.testing.assert_array_equal(grid[..., 1].U, grid.U[:, 1])
    np.testing.assert_array_equal(grid[0, ..., 1].U, grid.U[0, 1])


def test_points_rows_and_iteration(grid):
    point = grid[3, 1]
    assert type(point) is theory.Theory and point.U.shape == (6, 6)
    assert float(point.width) == 1000 and float(point.temperature) == 1.0
    np.testing.assert_array_equal(grid[3][1].U, point.U)
    np.testing.assert_array_equal(grid[:, 1][3].U, point.U)
    assert len(grid) == 4 and len(grid[0]) == 3 and len(grid[:, 0]) == 4
    rows = list(grid)
    assert len(rows) == 4
    np.testing.assert_array_equal([[p.action for p in row] for row in rows], grid.action)


@pytest.mark.parametrize("index", [4, -5, (0, 3), (0, 0, 0), "a", 1.5, (slice(None), 9)])
def test_what_is_not_there_is_refused(grid, index):
    with pytest.raises(IndexError):
        grid[index]


def test_as_an_xarray(grid):
    data = grid.to_xarray()
    assert dict(data.sizes) == {"width": 4, "temperature": 3, "path": 6, "other_path": 6}
    found = data.sel(width=80, temperature=0.02)
    np.testing.assert_array_equal(found["U"], grid[2, 2].U)
    assert float(found["action"]) == float(grid[2, 2].action)
    assert data.attrs["heads"] == list(HEADS) and data.attrs["examples"] == 15
    # points that are no grid, some of them as many as one
    for index in ([0, 0], ([0, 1], [0, 1]), ([0, 0, 1, 1], [0, 1, 1, 0])):
        with pytest.raises(
            ValueError, match=r"points are no grid of \d widths and \d temperatures"
        ):
            grid[index].to_xarray()
        assert "Sweep" in grid[index]._repr_html_()
    column = grid[1:, 0].to_xarray()
    assert dict(column.sizes)["width"] == 3 and float(column["temperature"][0]) == 0.1
    np.testing.assert_array_equal(column["U"][:, 0], grid.U[1:, 0])


def test_saved_and_loaded(grid, tmp_path):
    xi, y = problem()
    one = solve(xi, y, heads=HEADS, width=(5, 6, 7), temperature=0.1)
    for name, result in {"grid": grid, "row": grid[1], "one": one, "point": grid[0, 0]}.items():
        path = tmp_path / f"{name}.npz"
        result.save(path)
        again = theory.load(path)
        assert type(again) is type(result) and repr(again) == repr(result)
        for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(result), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(again.predict(xi).mean, result.predict(xi).mean)
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".npz"] * 4


def test_bad_files_are_refused(tmp_path):
    xi, y = problem()
    limit = gp_limit(xi, y, heads=HEADS, temperature=0.1)
    with pytest.raises(ValueError, match=r"path must end in \.npz"):
        limit.save(tmp_path / "it.json")
    with pytest.raises(FileNotFoundError, match="no folder"):
        limit.save(tmp_path / "nowhere" / "it.npz")
    path = tmp_path / "it.npz"
    with pytest.raises(FileNotFoundError, match="no file"):
        theory.load(path)
    limit.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"it\.npz is damaged, or holds no"):
        theory.load(path)
    np.savez(path, U=np.eye(2))
    with pytest.raises(ValueError, match=r"it\.npz is damaged, or holds no"):
        theory.load(path)
    np.savez(path, U=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"it\.npz is damaged"):
        theory.load(path)


def test_shown_in_a_notebook(grid):
    assert "N = 80" in grid._repr_html_() and "12 of 12" in grid._repr_html_()
    point = grid[0, 0]
    assert "order parameter U" in point._repr_html_() and "(1,2)" in point._repr_html_()
    assert f"{float(point.U[0, 0]):.4g}" in point._repr_html_()
    assert "widths=(5, 20, 80, 1000)" in repr(grid)
    large = gp_limit(np.ones((3, 20, 2)), np.array([1, 1, -1]), heads=(20,), temperature=1)
    assert "20 × 20" in large._repr_html_() and large._repr_html_().count("<td") < 10


SETTING = {"heads": HEADS, "temperature": 0.1}


def test_equal_widths_are_one_width():
    xi, y = problem()
    one, three = (solve(xi, y, width=w, **SETTING) for w in (10, (10, 10, 10)))
    np.testing.assert_allclose(three.U, one.U, rtol=1e-10)
    for name in ("action", "energy", "entropy"):
        assert float(getattr(three, name)) == pytest.approx(float(getattr(one, name)), rel=1e-12)
    assert "width=(10, 10, 10)" in repr(three) and "(10, 10, 10)" in three._repr_html_()


def test_unequal_widths_minimise_their_own_action():
    """The action as the paper prints it, each level by its own width."""
    xi, y = problem()
    widths, variance = np.array([4.0, 9.0, 30.0]), 0.8
    found = solve(xi, y, width=tuple(widths), prior_variance=variance, **SETTING)
    assert found.converged
    flat = xi.reshape(len(xi), -1)

    def action(levels):
        total, upper = 0.0, np.ones((1, 1))
        for level, width in zip(reversed(levels), widths[::-1], strict=True):
            level = np.atleast_2d(level)
            M = level @ np.linalg.inv(np.kron(np.eye(len(level) // len(upper)), upper))
            total += width * (np.trace(M) / variance - np.linalg.slogdet(M)[1])
            upper = level
        mixed = np.einsum("pq,bqi->bpi", levels[0], xi).reshape(len(xi), -1)
        K = variance * flat @ mixed.T / 24 + 0.1 * np.eye(len(y))
        return (total + np.linalg.slogdet(K)[1] + y @ np.linalg.solve(K, y)) / widths.mean()

    levels = [np.asarray(level) for level in found.levels]
    least = action(levels)
    assert float(found.action) == pytest.approx(least, rel=1e-10)
    rng = np.random.default_rng(0)
    for which in range(3):
        for _ in range(5):
            shaken = [np.atleast_2d(level).copy() for level in levels]
            root = np.eye(len(shaken[which])) + 1e-3 * rng.normal(size=shaken[which].shape)
            shaken[which] = root @ shaken[which] @ root.T
            assert action(shaken) > least
    with pytest.raises(ValueError, match=r"width must be a single number at least 1, or 3 of them"):
        solve(xi, y, width=(10, 10), **SETTING)
    with pytest.raises(ValueError, match=r"width\[1\] must be at least 1 and finite; got inf"):
        solve(xi, y, width=(10, np.inf, 10), **SETTING)


@pytest.mark.parametrize(
    "bad",
    [{"width": 0.0}, {"width": 0.5}, {"width": -3.0}, {"width": np.nan}]
    + [{"temperature": t} for t in (0.0, -0.1, np.nan, np.inf)]
    + [{"prior_variance": v} for v in (0.0, -1.0, np.nan)],
    ids=str,
)
def test_bad_values_give_no_answer_where_they_cannot_be_refused(bad):
    xi, y = problem()
    name, value = next(iter(bad.items()))
    good = {"width": 10.0, "temperature": 0.1, "prior_variance": 1.0}

    def answer(number):
        return solve(xi, y, heads=HEADS, **(good | {name: number}))

    both = jax.vmap(answer)(jnp.array([good[name], value]))
    assert both.converged.tolist() == [True, False]
    assert np.isnan(both.U[1]).all() and np.isnan(both.action[1]) and np.isnan(both.energy[1])
    np.testing.assert_allclose(both.U[0], answer(good[name]).U, rtol=1e-8)
    assert not jax.jit(answer)(value).converged


@pytest.mark.parametrize("where", ["xi", "y"])
def test_nan_data_give_no_answer_where_they_cannot_be_refused(where):
    xi, y = map(jnp.asarray, problem())
    data = {"xi": jnp.stack([xi, xi]), "y": jnp.stack([y, y])}
    data[where] = data[where].at[1, 0].set(jnp.nan)
    both = jax.vmap(lambda xi, y: solve(xi, y, width=10, **SETTING))(data["xi"], data["y"])
    assert both.converged.tolist() == [True, False] and np.isnan(both.U[1]).all()


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2, 3, 4], [1, 2]], ids=str)
def test_labels_that_look_like_names_are_noticed(labels):
    xi, _ = problem()
    y = np.resize(labels, len(xi))
    with pytest.warns(UserWarning, match="look like names of classes"):
        solve(xi, y, width=10, **SETTING)


@pytest.mark.parametrize("y", [[1, -1], [1.0], [0.0], [0.5, 1.5], [-1, 0, 1]], ids=str)
def test_other_labels_are_taken_without_a_word(y):
    xi, _ = problem()
    gp_limit(xi, np.resize(y, len(xi)), **SETTING)


def test_a_mapped_theory_says_what_it_cannot_do(grid):
    xi, y = problem()
    both = jax.vmap(lambda t: gp_limit(xi, y, heads=HEADS, temperature=t))(jnp.array([0.1, 1.0]))
    with pytest.raises(ValueError, match="kernel needs one solution"):
        both.kernel()
    assert "batch=(2,)" in repr(both)
    assert dataclasses.is_dataclass(grid)


def test_a_grid_that_memory_does_not_hold_is_refused():
    xi, y = np.ones((3, 4, 2)), np.array([1.0, -1.0, 1.0])
    grid = {"widths": range(1, 30_001), "temperatures": range(1, 30_001)}
    with pytest.raises(ValueError, match="30000 widths and 30000 temperatures would need"):
        sweep(xi, y, heads=(2, 2), progress=False, **grid)
