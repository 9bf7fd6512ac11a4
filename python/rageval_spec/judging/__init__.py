"""What judges share, whatever their method: prompts, templates, claims, refusals, calibration."""
