"""Reward models: sequence classifiers that give a conversation a number.

Promises: one finite number as the model gives it, or `ScorerFailed`. Knows nothing of ranges,
tasks or metrics.
"""
