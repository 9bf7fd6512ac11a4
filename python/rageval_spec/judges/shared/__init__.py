"""What the judges share: chat models, judges made of judges, and stages."""
