"""Where tokens come from: the embedded CPU engine, the embedded model, and verl on a CPU."""
