"""The pages: a run, the runs, figures over time, labels; served or written as files."""
