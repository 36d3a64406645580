"""Is the trained model a better collaborator, and how sure are we?"""
