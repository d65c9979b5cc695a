from .runs import sweep as sweep
from .sweep_table import SweepTable as SweepTable
