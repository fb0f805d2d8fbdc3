"""Train: the stages base, sft, opd, rl and mtp-adapt [3.4, 5.5]."""
