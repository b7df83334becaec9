"""Others' recipes and command lines, read: one module per form, and `source`, which tells the forms apart."""
