"""From YAML text with positions to a validated, frozen `Spec`, or every diagnostic at once."""
