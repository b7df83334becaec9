"""What a task of a role asks of a node: a module each, whose `main` takes the task's options."""
