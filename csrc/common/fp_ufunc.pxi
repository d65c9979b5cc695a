# Registration shared by the modules that offer ufuncs: include it, then call `registered(table, size, documentation)`.
cimport numpy as cnp

cdef extern from "common/fp_ufunc.h":
    ctypedef void fp_ufunc_function
    ctypedef struct fp_ufunc:
        const char *name
        int inputs
        const char *signature
        fp_ufunc_function *functions[1]
        void *data[1]
        char types[5]
    void fp_ufunc_prepare(fp_ufunc *ufunc, char type)
    const char *fp_isa_name()
    ctypedef int (*fp_interrupted)() noexcept nogil
    fp_interrupted fp_ufunc_interrupted

cdef extern from *:
    """
    static int fp_raised(void) { return PyErr_Occurred() ? 1 : PyErr_CheckSignals(); }
    """
    int fp_raised() noexcept

cdef int raised() noexcept nogil:
    """Whether an exception is pending, or a signal raises one, as Ctrl-C does; it stays pending."""
    with gil:
        return fp_raised()


cdef extern from "numpy/ufuncobject.h":
    object PyUFunc_FromFuncAndDataAndSignature(
        cnp.PyUFuncGenericFunction *functions, void **data, char *types, int ntypes, int nin, int nout, int identity,
        const char *name, const char *doc, int unused, const char *signature)

cnp.import_array()
cnp.import_umath()

_documentation = []  # NumPy keeps a pointer to the text


cdef dict registered(fp_ufunc *table, Py_ssize_t size, dict documentation):
    """The ufuncs of a table by name; `documentation` gives the docstring of each."""
    global fp_ufunc_interrupted
    cdef fp_ufunc *row
    cdef bytes text
    made = {}
    fp_ufunc_interrupted = raised
    for k in range(size):
        row = &table[k]
        name = row.name.decode()
        text = documentation[name].encode()
        _documentation.append(text)
        fp_ufunc_prepare(row, cnp.NPY_DOUBLE)
        made[name] = PyUFunc_FromFuncAndDataAndSignature(
            <cnp.PyUFuncGenericFunction *>row.functions, row.data, row.types, 1, row.inputs, 1, cnp.PyUFunc_None,
            row.name, text, 0, row.signature)
    return made
