from .result import Assessment as Assessment
from .result import Comparison as Comparison
