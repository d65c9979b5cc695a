from . import assessment as assessment
from . import auditing as auditing
from . import datasets as datasets
from . import leakage as leakage
from . import membership as membership
from . import papers as papers
