"""Checks that compute something: a rule's file names its function here as `computed: MODULE.FUNCTION`."""
