from .mixture_objects import mixture_from_scipy as mixture_from_scipy
from .mixture_objects import mixture_from_sklearn as mixture_from_sklearn
from .mixture_objects import scipy_from_mixture as scipy_from_mixture
from .mixture_objects import sklearn_from_mixture as sklearn_from_mixture
from .pld import PldCurve as PldCurve
from .pld import composed_delta as composed_delta
from .pld import composed_hockey_stick_divergence as composed_hockey_stick_divergence
from .pld import dp_accounting_pld as dp_accounting_pld
