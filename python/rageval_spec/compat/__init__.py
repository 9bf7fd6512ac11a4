"""The interfaces of other evaluation libraries, served by our kernels."""
