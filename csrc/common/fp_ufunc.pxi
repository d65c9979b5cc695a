# Registration shared by the modules that offer ufuncs: include it, then call `registered(table, size, documentation)`.
cdef extern from "common/fp_ufunc.h":
    ctypedef void fp_ufunc_function
    ctypedef struct fp_ufunc:
        const char *name
        int inputs, outputs
        const char *signature
        fp_ufunc_function *functions[1]
        void *data[1]
        char types[1]
        void *scalar
        void *bounds
    const char *fp_ufunc_signatures[5]
    const char *fp_bounds_signature
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
    """Whether an exception is pending, or a signal raises one, as Ctrl-C does; the exception stays pending."""
    with gil:
        return fp_raised()


# These few declarations stand in place of `cimport numpy`, which takes a second to compile in each module.
cdef extern from "numpy/arrayobject.h":
    int NPY_DOUBLE
    int _import_array() except -1

cdef extern from "numpy/ufuncobject.h":
    int PyUFunc_None
    int _import_umath() except -1
    object PyUFunc_FromFuncAndDataAndSignature(
        fp_ufunc_function **functions, void **data, char *types, int ntypes, int nin, int nout, int identity,
        const char *name, const char *doc, int unused, const char *signature)

_import_array()
_import_umath()

cdef extern from "Python.h":
    object PyCapsule_New(void *pointer, const char *name, void *destructor)

#: the functions of single numbers as capsules, named by their signatures, as Cython exports functions
capsules = {}
_documentation = []  # NumPy keeps a pointer to the text


cdef dict registered(fp_ufunc *table, Py_ssize_t size, dict documentation):
    """The ufuncs of a table by name; `documentation` gives the docstring of each."""
    global fp_ufunc_interrupted
    cdef fp_ufunc *row
    cdef bytes text
    ufuncs = {}
    fp_ufunc_interrupted = raised
    for k in range(size):
        row = &table[k]
        name = row.name.decode()
        text = documentation[name].encode()
        _documentation.append(text)
        fp_ufunc_prepare(row, NPY_DOUBLE)
        ufuncs[name] = PyUFunc_FromFuncAndDataAndSignature(
            row.functions, row.data, row.types, 1, row.inputs, row.outputs, PyUFunc_None, row.name, text, 0,
            row.signature)
        if row.scalar:
            capsules[name] = PyCapsule_New(row.scalar, fp_ufunc_signatures[row.inputs], NULL)
        if row.bounds:
            capsules[name + "_bounds"] = PyCapsule_New(row.bounds, fp_bounds_signature, NULL)
    return ufuncs
