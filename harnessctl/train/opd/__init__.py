"""OPD: the policy's own words on general prompts, drawn back to the base by full-vocabulary reverse KL [3.4, stage 2]."""
