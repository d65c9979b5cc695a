cdef extern from *:
    """
    static int fp_pending_exception(void) { return PyErr_Occurred() ? -1 : 0; }
    """
    int PyErr_CheckSignals() noexcept
    int fp_pending_exception() except -1

cdef int interrupted() noexcept nogil:
    """Whether Python heard a signal that raises, as Ctrl-C does; the exception stays pending."""
    with gil:
        return PyErr_CheckSignals()


cdef int finished(int status, str advice) except -1:
    """The pending exception, or the one for short memory."""
    if status == -2:
        fp_pending_exception()
    if status:
        raise MemoryError(f"not enough memory for the pieces of the likelihood ratio; use fewer {advice}")
    return 0
