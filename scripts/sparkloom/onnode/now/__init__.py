"""What a site is now, by its cluster, its supervisors and its engines: for `sparkloom status` and for the page.

The standard library alone, as the page's program runs in a pod. Objects come as the Kubernetes client gives them, or as
the API's own JSON in `seen.Seen`, which is asked the same way.
"""
