from .pld import PldCurve as PldCurve
from .pld import composed_delta as composed_delta
from .pld import composed_hockey_stick_divergence as composed_hockey_stick_divergence
from .pld import dp_accounting_pld as dp_accounting_pld
from .trade_off import TradeOffCurve as TradeOffCurve
from .trade_off import trade_off_curve as trade_off_curve
