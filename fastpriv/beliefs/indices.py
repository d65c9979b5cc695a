"""x"""
def evaluated(x): raise
