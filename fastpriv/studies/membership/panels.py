"""A panel: binary attributes of people, eight to a byte.

Notation: D (K, m) is 1 where person k has attribute j. Row k of ``packed`` holds bit j in bit j % 8 (the least
significant first) of byte j // 8, as ``numpy.packbits(D, axis=1, bitorder="little")`` writes it; the last bits of the
last byte are 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base import parallel, validate
from ...base.errors import DomainError, ShapeError
from ...base.numerics import FloatArray, IndexArray, IntArray
from ...base.values import ValueObject, is_read_only
from ..kernels import _bit_matrix

ByteArray = NDArray[np.uint8]
StringArray = NDArray[np.str_]
_BLOCK_BYTES = 2**24  # of unpacked entries at a time
_PRODUCT_PEOPLE, _PRODUCT_COLUMNS = 2**12, 128  # people and columns of a block of D x, which threads share out
_COUNT_COLUMNS = 2**10  # attributes of a block of counts, a multiple of 8
_GRAM_ROWS = 64  # people of a block of the Gram matrix
_BRIEF = 2e6  # sums looked up, or words compared: some milliseconds


class PanelOverlap(NamedTuple):
    """Who is in two panels, by name and by attributes."""

    people: list[str]  # names in both
    rows: IndexArray  # (n, 2) person of the one and of the other whose attributes are the same


class Panel(ValueObject):
    """Binary attributes of people, such as carriers of alleles: a matrix of bits, which is kept packed.

    Parameters
    ----------
    values : array_like, shape (K, m)
        1 or True where person k has attribute j, 0 or False elsewhere.
    people : sequence of str, optional
        Names of the people, all different.
    attributes : sequence of str, optional
        Names of the attributes.

    Attributes
    ----------
    packed : ndarray of uint8, shape (K, ceil(m / 8))
        Attribute j is bit j % 8, counted from the least significant, of byte j // 8; bits beyond m are 0.
    n_people, n_attributes : int
        K and m, each at least 1.
    people, attributes : ndarray of str or None
        Names, where they are known.

    Raises
    ------
    DomainError
        For entries that are not 0 or 1, or missing; the error names the person, the attribute and the entry. For two
        people of one name.
    ShapeError
        For what is not a matrix with at least one row and one column, and for a wrong number of names.

    Examples
    --------
    >>> from fastpriv.membership import Panel
    >>> panel = Panel([[1, 0, 1], [0, 0, 1]], people=["a", "b"])
    >>> panel.counts([True, True])
    array([1, 0, 2])
    >>> panel.products([0.5, 0.25, 0.125])
    array([0.625, 0.125])
    """

    __slots__ = _fields = ("packed", "n_attributes", "people", "attributes")

    packed: ByteArray
    n_attributes: int
    people: StringArray | None
    attributes: StringArray | None

    def __init__(
        self, values: ArrayLike, *, people: Sequence[str] | None = None, attributes: Sequence[str] | None = None
    ) -> None:
        matrix = validate.array("values", values)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise ShapeError(
                f"values must be a matrix with one row a person and one column an attribute; got shape {matrix.shape}. "
                "A single person is a list of one row."
            )
        people_names = _names("people", people, len(matrix))
        attribute_names = _names("attributes", attributes, matrix.shape[1])
        packed = np.empty((len(matrix), -(-matrix.shape[1] // 8)), dtype=np.uint8)
        step = max(1, _BLOCK_BYTES // matrix.shape[1])
        for start in range(0, len(matrix), step):
            part = matrix[start : start + step]
            if part.dtype != np.bool_:
                part = _binary(part, start, people_names, attribute_names)
            packed[start : start + step] = np.packbits(part, axis=1, bitorder="little")
        self._set(packed=packed, n_attributes=matrix.shape[1], people=people_names, attributes=attribute_names)

    @classmethod
    def from_packed(
        cls, bits: ArrayLike, n_attributes: int, *, people: Sequence[str] | None = None,
        attributes: Sequence[str] | None = None,
    ) -> Panel:
        """A panel of bits that are packed already; a read-only array is kept as it is, without a copy.

        Parameters
        ----------
        bits : array_like of uint8, shape (K, ceil(n_attributes / 8))
            As in the attribute ``packed``: the least significant bit first, and 0 beyond the last attribute.
        n_attributes : int
            Number of attributes m.
        people, attributes : sequence of str, optional
            Names, as for ``Panel``.

        Examples
        --------
        >>> from fastpriv.membership import Panel
        >>> Panel.from_packed([[0b101], [0b100]], 3).to_array().astype(int)
        array([[1, 0, 1],
               [0, 0, 1]])
        """
        count = validate.count("n_attributes", n_attributes, 1, validate.MOST_ENTRIES)
        result = validate.array("bits", bits)
        if result.ndim != 2 or result.shape[0] == 0 or result.shape[1] != -(-count // 8):
            raise ShapeError(
                f"bits must have one row a person, of {-(-count // 8)} bytes for {count} attributes; got shape "
                f"{result.shape}. Pack with numpy.packbits(values, axis=1, bitorder='little')."
            )
        if result.dtype == np.uint8:
            packed = result if is_read_only(result) and result.flags.c_contiguous else np.array(result, order="C")
        else:
            packed = validate.integers("bits", result, 0, 255).astype(np.uint8)
        if count % 8 and (late := np.flatnonzero(packed[:, -1] >> (count % 8))).size:
            raise DomainError(
                f"bits must be 0 beyond the last of {count} attributes; got {int(packed[late[0], -1])} as last byte of "
                f"row {int(late[0])} ({late.size} of {len(packed)} rows). Pack with bitorder='little'."
            )
        return cls._of_checked(
            packed, count, _names("people", people, len(packed)), _names("attributes", attributes, count)
        )

    @classmethod
    def _of_checked(
        cls, packed: ByteArray, n_attributes: int, people: StringArray | None, attributes: StringArray | None
    ) -> Panel:
        self = object.__new__(cls)
        self._set(packed=packed, n_attributes=n_attributes, people=people, attributes=attributes)
        return self

    def __reduce__(self) -> Any:
        return Panel._of_checked, (self.packed, self.n_attributes, self.people, self.attributes)

    def __hash__(self) -> int:
        import hashlib  # slow to load, and rarely needed

        state = hashlib.blake2b(self.packed.reshape(-1).data, digest_size=8)
        names = (None if side is None else tuple(side.tolist()) for side in (self.people, self.attributes))
        return hash((state.digest(), self.n_attributes, *names))

    @property
    def n_people(self) -> int:
        """Number of people K."""
        return len(self.packed)

    def to_array(self) -> NDArray[np.bool_]:
        """The matrix of booleans, shape (K, m), a byte an entry."""
        validate.grid("the array", (self.n_people, self.n_attributes), 1)
        return self._unpacked(self.packed)

    def _unpacked(self, packed: ByteArray) -> NDArray[np.bool_]:
        return np.unpackbits(packed, axis=1, count=self.n_attributes, bitorder="little").view(np.bool_)

    def person(self, k: int) -> str:
        """The name of a person, or its number as text."""
        return str(k) if self.people is None else str(self.people[k])

    def attribute(self, j: int) -> str:
        """The name of an attribute, or its number as text."""
        return str(j) if self.attributes is None else str(self.attributes[j])

    def frequencies(self) -> FloatArray:
        """Fraction of the people who have each attribute, shape (m,)."""
        return self.counts(np.ones(self.n_people, dtype=np.bool_)) / self.n_people

    def overlap(self, references: Panel) -> PanelOverlap:
        """People who are in both panels, by name and by their attributes.

        Parameters
        ----------
        references : Panel
            A panel of the same attributes, which should hold other people.

        Returns
        -------
        PanelOverlap
            Names in both, and pairs of identical rows: a person of this panel and the first such one of the other.

        Raises
        ------
        ShapeError, DomainError
            For other attributes: another number, or other names where both have names.

        Examples
        --------
        >>> from fastpriv.membership import Panel
        >>> found = Panel([[1, 0, 1], [0, 0, 1]]).overlap(Panel([[1, 1, 1], [0, 0, 1]]))
        >>> found.rows
        array([[1, 1]])
        """
        validate.instance("references", references, Panel)
        if references.n_attributes != self.n_attributes:
            raise ShapeError(
                f"references must have the {self.n_attributes} attributes of the panel; got {references.n_attributes}. "
                "Select those that both have."
            )
        if self.attributes is not None and references.attributes is not None:
            different = np.flatnonzero(self.attributes != references.attributes)
            if different.size:
                j = int(different[0])
                raise DomainError(
                    f"references must have the attributes of the panel, in its order; got {references.attribute(j)!r} "
                    f"instead of {self.attribute(j)!r} at {j} ({different.size} of {self.n_attributes} attributes). "
                    "Select them by name."
                )
        both: list[str] = []
        if self.people is not None and references.people is not None:
            both = np.intersect1d(self.people, references.people).tolist()
        first = {references.packed[i].tobytes(): i for i in reversed(range(references.n_people))}
        pairs = [(k, first[row.tobytes()]) for k, row in enumerate(self.packed) if row.tobytes() in first]
        return PanelOverlap(both, np.array(pairs, dtype=np.intp).reshape(-1, 2))

    def require_disjoint(self, references: Panel, *, same_rows: bool = False) -> None:
        """Raise ``DomainError`` if somebody of this panel is among the references.

        Parameters
        ----------
        references : Panel
            People of the same population who are known not to be members.
        same_rows : bool, default False
            Whether identical rows are allowed: with few attributes different people have them by chance.
        """
        result = self.overlap(references)
        if result.people:
            raise DomainError(
                f"references must be other people than those of the panel; got {result.people[0]!r} in both "
                f"({len(result.people)} of {references.n_people} references). Leave them out of the references."
            )
        if len(result.rows) and not validate.flag("same_rows", same_rows):
            k, i = result.rows[0].tolist()
            raise DomainError(
                f"references must be other people than those of the panel; got identical rows, of person "
                f"{self.person(k)!r} and of reference {references.person(i)!r} ({len(result.rows)} of {self.n_people} "
                "people). Leave them out, or pass same_rows=True if they are alike by chance."
            )

    def select(self, *, people: Any = None, attributes: Any = None) -> Panel:
        """The panel of some people and some attributes, in the order in which they are named.

        Parameters
        ----------
        people, attributes : sequence of int, bool or str, or slice, optional
            Numbers, a mask, names, or a slice; None for all.

        Raises
        ------
        DomainError
            For unknown and repeated ones, numbers out of range, an empty choice, and names where the panel has none.

        Examples
        --------
        >>> from fastpriv.membership import Panel
        >>> panel = Panel([[1, 0, 1], [0, 0, 1]], people=["a", "b"])
        >>> panel.select(people=["b"], attributes=[2, 0]).to_array()
        array([[ True, False]])
        """
        packed, names, labels, count = self.packed, self.people, self.attributes, self.n_attributes
        if people is not None:
            index = _positions("people", people, self.people, self.n_people)
            packed, names = packed[index], None if names is None else names[index]
        if attributes is not None:
            index = _positions("attributes", attributes, self.attributes, self.n_attributes)
            count, labels = index.size, None if labels is None else labels[index]
            chosen = np.empty((len(packed), -(-count // 8)), dtype=np.uint8)
            step = max(1, _BLOCK_BYTES // self.n_attributes)
            for start in range(0, len(packed), step):
                values = self._unpacked(packed[start : start + step])[:, index]
                chosen[start : start + step] = np.packbits(values, axis=1, bitorder="little")
            packed = chosen
        return Panel._of_checked(packed, count, names, labels)

    def gram(self, *, n_jobs: int | None = None) -> IntArray:
        """The integers D D^T, shape (K, K): how many attributes each pair of people has in common.

        Parameters
        ----------
        n_jobs : int, optional
            Threads; None for what ``joblib.parallel_config`` says, -1 for all cores.

        Examples
        --------
        >>> from fastpriv.membership import Panel
        >>> Panel([[1, 0, 1], [0, 0, 1]]).gram()
        array([[2, 1],
               [1, 1]])
        """
        validate.grid("the Gram matrix", (self.n_people, self.n_people), 16)
        out = np.zeros((self.n_people, self.n_people), dtype=np.int64)

        def block(rows: slice) -> None:
            _bit_matrix.add_gram(self.packed, out, rows.start, rows.stop)

        words = self.n_people * self.n_people * self.packed.shape[1] / 16
        _run(block, parallel.blocks(self.n_people, _GRAM_ROWS), words, n_jobs)
        upper = np.triu_indices(self.n_people, 1)
        out[upper] = out.T[upper]
        return out

    def products(self, x: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """D x: sums over the attributes of each person.

        Parameters
        ----------
        x : array_like, shape (m,) or (m, R)
            Finite weights of the attributes, one column a product. The transpose of an array with one row a product
            is read as it lies, without a copy.
        n_jobs : int, optional
            Threads; None for what ``joblib.parallel_config`` says, -1 for all cores. The bits do not depend on it.

        Returns
        -------
        ndarray, shape (K,) or (K, R)

        Notes
        -----
        **Accuracy**: errors are below (m / 32 + 10) 2^-53 times the sum of the sizes of what is added;
        tests/kernels/test_bit_matrix.py.
        """
        plain = type(x) is np.ndarray and x.dtype == np.float64 and x.flags.aligned
        weights = validate.array("x", x) if plain else validate.real("x", x, "finite numbers", np.isfinite)
        if weights.ndim not in (1, 2) or len(weights) != self.n_attributes:
            raise ShapeError(
                f"x must have one row an attribute, here {self.n_attributes}; got shape {weights.shape}. "
                "Transpose what has one row a release."
            )
        columns = weights.reshape(len(weights), -1)
        out = np.zeros((self.n_people, columns.shape[1]))
        row_blocks = parallel.blocks(self.n_people, _PRODUCT_PEOPLE)
        tasks = [(k, r) for k in row_blocks for r in parallel.blocks(columns.shape[1], _PRODUCT_COLUMNS)]

        def block(task: tuple[slice, slice]) -> None:
            k, r = task
            if not np.isfinite(columns[:, r]).all():
                validate.real("x", weights, "finite numbers", np.isfinite)
            _bit_matrix.add_products(self.packed, self.n_attributes, columns, out, k.start, k.stop, r.start, r.stop)

        lookups = self.packed.size * columns.shape[1] / 4
        _run(block, tasks, lookups, n_jobs)
        return out.reshape(self.n_people, *weights.shape[1:])

    def counts(self, membership: ArrayLike, *, n_jobs: int | None = None) -> IntArray:
        """D^T b: how many members have each attribute, exactly.

        Parameters
        ----------
        membership : array_like of bool or of 0 and 1, shape (K,) or (R, K)
            Who is a member.
        n_jobs : int, optional
            Threads; None for what ``joblib.parallel_config`` says, -1 for all cores.

        Returns
        -------
        ndarray of int64, shape (m,) or (R, m)
        """
        members = membership_array("membership", membership, self.n_people)
        if members.ndim > 2:
            raise ShapeError(
                f"membership must have at most two axes; got shape {members.shape}. Flatten all but the last."
            )
        packed = np.packbits(np.atleast_2d(members), axis=1, bitorder="little")
        out = np.empty((len(packed), self.n_attributes), dtype=np.int64)

        def block(columns: slice) -> None:
            _bit_matrix.counts(packed, self.packed, self.n_attributes, out, columns.start, columns.stop)

        tasks = parallel.blocks(self.n_attributes, _COUNT_COLUMNS)
        lookups = (len(packed) + 256) * packed.shape[1] * self.n_attributes / 64
        _run(block, tasks, lookups, n_jobs)
        return out.reshape(*members.shape[:-1], self.n_attributes)

    def __repr__(self) -> str:
        return f"<Panel of {self.n_people} people, {self.n_attributes} attributes>"


def membership_array(name: str, value: Any, n_people: int) -> NDArray[np.bool_]:
    """Booleans of shape (..., K) of an argument that says who is a member."""
    result = validate.array(name, value)
    if result.ndim == 0 or result.shape[-1] != n_people:
        raise ShapeError(
            f"{name} must have one entry a person, here {n_people}; got shape {result.shape}. The last axis is that of "
            "the people."
        )
    if result.dtype != np.bool_:
        result = validate.integers(name, result, 0, 1, constraint="0 or 1, or True or False").astype(np.bool_)
    return np.asarray(result)


def released_array(released: Any, n_attributes: int, name: str = "released", clip: bool = False) -> FloatArray:
    """Releases of shape (..., m) with finite entries, in [0, 1] if they are clipped."""
    constraint = "between 0 and 1, as the model clips" if clip else "finite numbers"
    valid = (lambda r: (r >= 0) & (r <= 1)) if clip else np.isfinite
    result = validate.real(name, released, constraint, valid, answer=False)
    if result.ndim == 0 or result.shape[-1] != n_attributes:
        raise ShapeError(
            f"{name} must have one entry an attribute, here {n_attributes}; got shape {result.shape}. The last axis "
            "is that of the attributes."
        )
    return result


def member_frequencies(panel: Panel, membership: NDArray[np.bool_]) -> FloatArray:
    """Frequencies of the attributes among the members of each of R memberships, shape (R, m)."""
    return np.asarray(panel.counts(membership) / membership.sum(axis=-1, keepdims=True))


def _run(block: Callable[[Any], None], tasks: Sequence[Any], steps: float, n_jobs: int | None) -> None:
    """Compute blocks of one product, on threads where it takes more than some milliseconds."""
    done = parallel.ordered_map(block, tasks, n_jobs=n_jobs, brief=steps < _BRIEF, shared=True)
    deque(done, maxlen=0)


def _binary(
    part: NDArray[Any], start: int, people: StringArray | None, attributes: StringArray | None
) -> NDArray[np.bool_]:
    """The booleans of rows of numbers; ``start`` is the number of the first person."""
    if part.dtype.kind not in "iuf":
        part = validate.real("values", part)
    wrong = (part != 0) & (part != 1)
    if wrong.any():
        k, j = (int(i) for i in np.argwhere(wrong)[0])
        person = f"person {start + k}" if people is None else f"person {str(people[start + k])!r}"
        attribute = f"attribute {j}" if attributes is None else f"attribute {str(attributes[j])!r}"
        entry = part[k, j].item()
        remedy = "Say which genotypes count as 1: values >= 1 for carriers of the allele, values == 2 for two copies."
        if entry != entry:
            remedy = "Missing entries have no place in a panel: leave out the attribute or the person, or fill them in."
        raise DomainError(
            f"values must be binary, 0 or 1; got {entry!r} for {person} at {attribute} ({int(wrong.sum())} entries of "
            f"these rows). {remedy}"
        )
    return np.asarray(part.astype(np.bool_))


def _names(name: str, value: Any, count: int) -> StringArray | None:
    """Names of people or attributes as an array of text."""
    if value is None:
        return None
    values: StringArray = value
    if not (isinstance(value, np.ndarray) and value.dtype.kind == "U" and value.ndim == 1):
        values = np.array([str(item) for item in validate.sequence(name, value, "names")], dtype=np.str_)
    if values.size != count:
        raise ShapeError(f"{name} must be {count} names, one for each; got {values.size}. Leave them out if unknown.")
    if name == "people":
        ordered = np.sort(values)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if twice.size:
            raise DomainError(
                f"people must have different names; got {str(twice[0])!r} more than once ({twice.size} repeats among "
                f"{count} people). Leave out the copies of a person."
            )
    return values if is_read_only(values) else values.copy()


def _positions(name: str, chosen: Any, names: StringArray | None, count: int) -> IndexArray:
    """Positions of people or attributes that are given as numbers, a mask, names or a slice."""
    if isinstance(chosen, slice):
        result = np.arange(count)[chosen]
    else:
        values = validate.array(name, chosen)
        if values.ndim != 1:
            raise ShapeError(f"{name} must be a flat sequence; got shape {values.shape}. Put a single one in a list.")
        if values.dtype.kind == "U":
            if names is None:
                raise DomainError(
                    f"{name} must be numbers, as the panel has no names of its {name}; got {str(values[0])!r}. Pass "
                    "positions, or name them when the panel is made."
                )
            indices: dict[str, list[int]] = {}
            for position, label in enumerate(names.tolist()):
                indices.setdefault(label, []).append(position)
            absent = [label for label in values.tolist() if label not in indices]
            if absent:
                raise DomainError(
                    f"{name} must be names of the panel; got {absent[0]!r} ({len(absent)} of {values.size} are "
                    "unknown). Compare with those of the panel."
                )
            double = [label for label in values.tolist() if len(indices[label]) > 1]
            if double:
                raise DomainError(
                    f"{name} must be names that stand for one each; got {double[0]!r}, which several {name} of "
                    "the panel have. Pass positions."
                )
            result = np.array([indices[label][0] for label in values.tolist()])
        elif values.dtype == np.bool_:
            if values.size != count:
                raise ShapeError(f"{name} must be a mask of {count} entries; got {values.size}. One for each.")
            result = np.flatnonzero(values)
        else:
            result = validate.integers(name, values, 0, count - 1)
    if result.size == 0:
        raise DomainError(f"{name} must be at least one; got an empty choice. Leave the argument out for all.")
    if np.unique(result).size != result.size:
        raise DomainError(f"{name} must be different ones; got a repeated one among {result.size}. Name each once.")
    return np.asarray(result, dtype=np.intp)
