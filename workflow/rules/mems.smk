# Paper 002: maximal exact matches of long reads, found for the user's samples.
#
# Needs: the configuration's `samples`.
# Makes: nothing of its own; samples.smk finds the matches.

from warpseed.workflow.mems_samples import sample_mem_searches

SEARCHES |= sample_mem_searches(SAMPLES)
