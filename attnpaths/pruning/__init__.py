"""Pruning: which attention heads matter, and what is left of a network without the others."""

from attnpaths.network import path_outputs
from attnpaths.pruning.heads import (
    all_heads,
    check_heads,
    curve,
    each_head,
    one_by_one,
    order_by_score,
    prune,
    pruned_outputs,
    random_order,
)
from attnpaths.pruning.scores import (
    attention_focus,
    gradient_importance,
    head_scores,
    head_sizes,
    kernel_sizes,
    order_by_norm,
    theory_outputs,
    value_norms,
)
from attnpaths.pruning.subsets import best_subsets, shapley_values, subset_accuracies

__all__ = [
    "all_heads", "attention_focus", "best_subsets", "check_heads", "curve", "each_head",
    "gradient_importance", "head_scores", "head_sizes", "kernel_sizes", "one_by_one",
    "order_by_norm", "order_by_score", "path_outputs", "prune", "pruned_outputs", "random_order",
    "shapley_values", "subset_accuracies", "theory_outputs", "value_norms",
]  # fmt: skip
