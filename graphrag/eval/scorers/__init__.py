"""What a response is scored by: a judge's verdicts, and measures computed without one."""
