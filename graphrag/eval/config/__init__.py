"""Defines, reads and checks the settings in eval_config.yaml."""
