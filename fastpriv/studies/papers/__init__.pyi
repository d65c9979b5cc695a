from .accounting import accounting_statements as accounting_statements
from .false_statements import PaperStatement as PaperStatement
from .false_statements import PaperStatements as PaperStatements
from .false_statements import paper_statements as paper_statements
from .paper_data import PaperFigure as PaperFigure
from .paper_panels import paper_panel as paper_panel
from .paper_report import Paper as Paper
from .paper_report import paper as paper
