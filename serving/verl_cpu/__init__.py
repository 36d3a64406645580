"""verl on a machine without a GPU: a platform, a training engine and a rollout backend.

Everything here goes through verl 0.9.1's plug-in points; the one patch is in `plugin.py`.
Nothing is imported unless `VERL_PLATFORM=cpu`.
"""
