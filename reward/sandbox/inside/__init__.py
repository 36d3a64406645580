"""What runs in the sandbox's own processes.

Promises: nothing but the standard library, little of it, since it starts once a run; relative
imports only, since it runs without the rest of the project. Knows nothing of asyncio, metrics
or whether a result is good.
"""
