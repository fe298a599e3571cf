"""The paper's theory: the order parameter U that minimises the action, and what it predicts.

`solve` answers one setting, `sweep` a whole grid of widths and temperatures, `gp_limit` the
limit of infinite width; `solve_adam` is the paper's own recipe, kept to compare with. All give a
`Theory`; that of a grid is a `Sweep`. `load` brings back what `Theory.save` wrote.
"""

from attnpaths.theory.adam import solve_adam
from attnpaths.theory.grid import Sweep, load, sweep
from attnpaths.theory.solution import Theory
from attnpaths.theory.solver import gp_limit, solve

__all__ = ["Sweep", "Theory", "gp_limit", "load", "solve", "solve_adam", "sweep"]
