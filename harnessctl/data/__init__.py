"""Data: trajectories and general tasks as token ids, masks and groups that a policy is trained from."""
