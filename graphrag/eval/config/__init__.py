"""What eval_config.yaml holds."""
