"""Is this output text, or garbage that benchmarks well?

`Guard` watches one stream while it runs; `judge_stream` judges a recorded one; `judge_batch` looks
across the requests of one level. Characters and tokens are judged, never words alone: a stream of
exclamation marks has no words.
"""

from sparkloom.measure.guard.batch import judge_batch, judge_batch_file
from sparkloom.measure.guard.record import judge_file, judge_stream
from sparkloom.measure.guard.stream import Guard
from sparkloom.measure.guard.verdict import Verdict

__all__ = ["Guard", "Verdict", "judge_batch", "judge_batch_file", "judge_file", "judge_stream"]
