"""How a rail's function is told to answer for its own address alone, on the node and in a pod.

Both halves of a port are on one wire, and without it each answers for the other's address too. RDMA then goes to a
function that has not that GID, whichever answer came first.
"""

from __future__ import annotations

SETTINGS = {"arp_ignore": "1", "arp_announce": "2"}
