"""Who the policy talks to: conversations, tasks, simulated users and the interaction contract."""
