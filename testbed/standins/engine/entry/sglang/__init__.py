"""Entry point of the stand-in under the package name that commands call; standin/judge.py asks the real package."""
