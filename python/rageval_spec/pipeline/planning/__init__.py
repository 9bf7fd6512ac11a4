"""From a spec to a plan: its plugins, its checks, the questions that are meant, and the steps with their keys."""
