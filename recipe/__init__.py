"""Recipes for verl."""
