"""hydra's files; a package, so that hydra finds them wherever the project is installed."""
