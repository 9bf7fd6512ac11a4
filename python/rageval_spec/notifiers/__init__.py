"""Plugins that tell people of alerts: one file for each value of `use:` under `notify:`."""
