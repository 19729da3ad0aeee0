"""The samples whose k-mers are counted, in no reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpseed.workflow.sheets import Places
from warpseed.workflow.unsearched import unsearched_samples

__all__ = ["counted_samples"]


def counted_samples(samples: Mapping[str, Mapping[str, Any]], places: Places) -> dict[str, dict[str, Any]]:
    """Return how the k-mers of each sample of this system are counted: `reads`, `k` and `facts`, as
    `warpseed.workflow.unsearched.unsearched_samples` has them."""
    return unsearched_samples(samples, places, "tree_bitmap", ["k"], "its k-mers are counted")
