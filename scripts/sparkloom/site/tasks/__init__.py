"""What a task of a role asks of the package: a function each, whose parameters are the task's arguments."""
