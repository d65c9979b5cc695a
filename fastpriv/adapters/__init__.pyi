from .event_lists import composition_from_dp_events as composition_from_dp_events
from .event_lists import composition_from_opacus as composition_from_opacus
from .mixture_objects import mixture_from_scipy as mixture_from_scipy
from .mixture_objects import mixture_from_sklearn as mixture_from_sklearn
from .mixture_objects import scipy_from_mixture as scipy_from_mixture
from .mixture_objects import sklearn_from_mixture as sklearn_from_mixture
from .pld import PldCurve as PldCurve
from .pld import dp_accounting_pld as dp_accounting_pld
