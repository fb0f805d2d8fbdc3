"""mtp-adapt: a draft head learns to follow the policy that it stands beside [5.5]."""
