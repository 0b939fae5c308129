"""The model seam: chat models and embedders by name, one place for calls and retries, `offline`."""
