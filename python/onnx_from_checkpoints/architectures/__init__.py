"""The architectures whose graphs can be built: one module a family; `model_graph` has their `model_type`s."""
