"""Your own network, analysed: from a PyTorch model and labelled inputs to the theory's answer.

`analyse` records the model's attention, follows the paths through its heads and its skip
connections, chooses what is not given, solves, and gives a `Report`; `load` brings back what
`Report.save` wrote. Needs PyTorch: `pip install "attnpaths[torch]"`.
"""

from attnpaths.analysis.analyse import analyse
from attnpaths.analysis.plan import Plan
from attnpaths.analysis.report import Report, load

__all__ = ["Plan", "Report", "analyse", "load"]
