"""SFT: a teacher's accepted trajectories on the harness and on variants of it, learnt by cross-entropy [3.4, stage 1]."""
