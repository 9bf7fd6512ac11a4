"""The architectures whose graphs can be built: one module a family, found by its `MODEL_TYPES`."""
