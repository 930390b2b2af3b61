"""Asks OpenAI-compatible services by HTTP, without litellm in between."""
