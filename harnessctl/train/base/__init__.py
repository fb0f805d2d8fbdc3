"""Base: a policy that can do the general tasks, made by cutting a larger model down and healing it."""
