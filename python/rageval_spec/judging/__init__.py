"""What judges share: prompts, repaired replies, conversations, claims."""
