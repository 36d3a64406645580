"""The metrics, one short file each; reward/registry.py finds them by name."""
