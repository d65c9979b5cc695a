from .assess import assess as assess
from .result import Assessment as Assessment
from .result import Comparison as Comparison
