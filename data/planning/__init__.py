"""The family `planning`: vague requests to plan something, procedural, written for this project."""
