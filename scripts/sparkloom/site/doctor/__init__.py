"""Is everything as planned? What a dry run of the roles would change, and what their readers find amiss, as findings.

There is no second description of what a host should have: `playbooks/doctor.yml` runs the roles of site.yml in check
mode, a callback keeps what they said (`events.SEEN`), and the modules here turn that into findings.
"""

from __future__ import annotations

from sparkloom.site.doctor.verdict import Report, report

__all__ = ["Report", "report"]
