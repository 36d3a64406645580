"""CollabLLM for verl 0.9.1: reinforcement learning on multiturn-aware rewards."""
