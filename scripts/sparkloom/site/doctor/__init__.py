"""Is everything as planned? What a dry run of the roles' tasks would change or judges amiss, as findings.

There is no second description of what a host should have: `asking` takes the tasks from the roles' files (`roles`)
that `parts` names, `site/tasks/node.py` asks each machine all of its own in one go, `site/tasks/doctor.py` asks the
cluster and judges, and `events`, `drift` and `verdict` turn what was said into findings.
"""

from __future__ import annotations

from sparkloom.site.doctor.verdict import Report, report

__all__ = ["Report", "report"]
