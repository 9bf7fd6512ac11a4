"""The pytest plugin: specs as tests, and the fixture `rageval` for tests in code."""
