"""The samples whose records are compared with each other, in no reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpseed.workflow.sheets import Places
from warpseed.workflow.unsearched import unsearched_samples

__all__ = ["compared_samples"]


def compared_samples(samples: Mapping[str, Mapping[str, Any]], places: Places) -> dict[str, dict[str, Any]]:
    """Return how the records of each sample of this system are compared: `reads`, `tree`, `normalise` and `facts`, as
    `warpseed.workflow.unsearched.unsearched_samples` has them."""
    return unsearched_samples(samples, places, "ebwt", ["tree", "normalise"], "its records are compared")
