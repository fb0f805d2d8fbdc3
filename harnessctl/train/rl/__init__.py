"""The stage rl: reinforcement learning in the simulator, on the harness and its variants (HSA-RL) [3.4, stage 3]."""
