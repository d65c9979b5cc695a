"""Mutated files for every reader of fastpriv, for a time: python tools/campaign/fuzz_readers.py SECONDS [SEED]

Whole files of each format are cut, spliced with each other, and changed in bytes, tokens, numbers and, in archives, in
their members. A reader may answer, or refuse the file by an error of the package. Anything else fails the run: another
exception, an end of the process, or a file that takes longer than 30 seconds. The file is then kept in the folder
``fuzz-failures`` of the working directory. Each process reads 200 files, or fewer where one of them ends it. Under
AddressSanitizer: ``tools/sanitize PYTHON tools/campaign/fuzz_readers.py SECONDS``.
"""

import contextlib
import faulthandler
import gzip
import importlib.util
import io
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "contracts")]

import test_damaged_formats as seeds  # noqa: E402

import fastpriv as fp  # noqa: E402
from fastpriv import DomainError, cli  # noqa: E402
from fastpriv.base.errors import ShapeError  # noqa: E402

FILES_PER_PROCESS = 200
SECONDS_PER_FILE = 30
TOKENS = [b"nan", b"inf", b"-inf", b"1e999", b"-1", b"0", b"-0.0", b"5e-324", b"9" * 400, b"1e308", b"2147483648",
          b"18446744073709551616", b"null", b"true", b"[]", b"{}", b'""', b'"', b"'", b",", b";", b"\t", b"\n", b"\r\n",
          b"\0", b"\xff", b"\xef\xbb\xbf",
          b"[", b"]", b"{", b"}", b"=", b"#", b"NaN", b"Infinity", b"1_0", b"0x1p-1074"]
EVENTS = {"class_name": "ComposedDpEvent", "events": [
    {"class_name": "SelfComposedDpEvent", "count": 10, "event": {
        "class_name": "PoissonSampledDpEvent", "sampling_probability": 0.01,
        "event": {"class_name": "GaussianDpEvent", "noise_multiplier": 1.5}}},
    {"class_name": "LaplaceDpEvent", "noise_multiplier": 2.0}]}
GRID = {"quantity": "gaussian_delta", "grid": {"sigma": [1.0, 2.0], "epsilon": [0.5, 1.0]}}


def workbook(*lines):
    """The bytes of a workbook with these lines."""
    import openpyxl

    book, stream = openpyxl.Workbook(), io.BytesIO()
    for line in lines:
        book.active.append(line)
    book.save(stream)
    return stream.getvalue()


def written(run):
    """The bytes of the only file that a run writes to a path, or into a folder at it."""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(InterruptedError):
            run(Path(folder) / "store")
        (file,) = [path for path in Path(folder).rglob("*") if path.is_file() and path.stat().st_size]
        return file.read_bytes(), file.relative_to(folder).as_posix()


def sweep_again(path):
    """Resume a sweep."""
    return fp.sweep(**GRID, store=path)


def assess_again(path):
    """Resume an assessment."""
    return fp.assess([31, 40, 40, 58], sigma="10,100", epsilon=[0.5], checkpoint=path, resume=True)


def interrupted_assess(path):
    """Leave a checkpoint: a run that is whole removes its own."""
    def stop(done, total):
        raise InterruptedError

    fp.assess([31, 40, 40, 58], sigma="10,100", epsilon=[0.5], checkpoint=path, progress=stop)


def posterior_again(path):
    """Resume a posterior in shards."""
    return fp.posterior(fp.channels.ShardedLikelihood(np.arange(5.0), shards=2), store=path)


def composed(path):
    """The command: it catches errors of the package, and nothing else."""
    status = cli.main(["compose", str(path), "--epsilon", "1"])
    if status == 2:
        raise DomainError("refused by the command")
    return status


def checker():
    """The checker of certificates, which is no package: it refuses a file by the status 1."""
    sys.path.append(str(ROOT / "tools" / "checker"))
    spec = importlib.util.spec_from_file_location("checker_program", ROOT / "tools" / "checker" / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def check(path):
        if module.main(path):
            raise DomainError("refused by the checker")

    return check


def targets():
    """Name of a file, its content, and who reads the path that is the first part of the name."""
    for name, (content, read) in {**seeds.TEXTS, **seeds.PACKED}.items():
        yield name, content() if callable(content) else content, read
    yield "column.xlsx", workbook(["age", "income"], [36, 100.5], [41, 200.25], [28, 50]), seeds.column
    yield "steps.xlsx", workbook(["kind", "sigma", "count"], ["gaussian", 2.0, 100]), seeds.read_steps
    yield "categories.csv", b"job,age\nnurse,36\nclerk,41\nnurse,28\n", lambda path: fp.read_categories(path, "job")
    yield "events.json", json.dumps(EVENTS).encode(), composed
    yield "history.json", json.dumps([[1.0, 0.01, 100], [1.5, 0.02, 50]]).encode(), composed
    pairs = (sweep_again, sweep_again), (interrupted_assess, assess_again), (posterior_again, posterior_again)
    for run, again in pairs:
        content, name = written(run)
        yield f"{again.__name__}/{name}", content, again
    mixtures = fp.GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0), fp.GaussianMixture([1.0], [0.5], 1.25)
    for name, statement in {
        "divergence": fp.certificate(fp.hockey_stick_divergence, *mixtures, 0.5),
        "capacity": fp.certificate(fp.channel_capacity, [[0.75, 0.25], [0.125, 0.875]]),
    }.items():
        yield f"{name}.certificate", json.dumps(statement).encode(), checker()


def mutated(content, others, chance):
    """A copy with one to eight changes."""
    out = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        at, end = sorted(chance.randrange(len(out) + 1) for _ in range(2))
        kind = chance.randrange(9)
        if kind <= 2 and out:
            out[at - 1] = chance.choice((chance.randrange(256), out[at - 1] ^ (1 << chance.randrange(8)), 0, 255))
        elif kind == 3:
            out[at:at] = chance.choice(TOKENS)
        elif kind == 4:
            del out[at : min(end, at + chance.choice((1, 4, 64, 4096)))]
        elif kind == 5:
            out[at:at] = out[at : min(end, at + 256)] * chance.choice((1, 2, 50))
        elif kind == 6:
            other = chance.choice(others)
            begin = chance.randrange(len(other) + 1)
            out[at:end] = other[begin : begin + chance.choice((8, 64, 1024))]
        elif kind == 7:
            digits = [index for index, byte in enumerate(out[:4096]) if 48 <= byte < 58]
            if digits:
                at = chance.choice(digits)
                out[at : at + 1] = chance.choice(TOKENS)
        elif chance.random() < 0.3:
            del out[at:]
    return bytes(out)


def repacked(content, name, others, chance):
    """A mutated copy; of what is packed, often of a member, packed again."""
    if chance.random() < 0.3:
        return mutated(content, others, chance)
    if name.endswith("gz"):
        return gzip.compress(mutated(gzip.decompress(content), others, chance), 1)
    if name.endswith(("xlsx", "npz")):
        stream = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(stream, "w") as target:
            members = source.namelist()
            chosen = chance.choice(members)
            for member in members:
                data = source.read(member)
                target.writestr(member, mutated(data, others, chance) if member == chosen else data)
        return stream.getvalue()
    return mutated(content, others, chance)


def outcome(read, path):
    """ok, refused, or the traceback of what no reader may raise."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(
                io.StringIO()):
            warnings.simplefilter("ignore")
            read(path)
    except (DomainError, ShapeError, FileNotFoundError, MemoryError):  # a specification may name another file
        return "refused"
    except BaseException:
        return traceback.format_exc()
    return "ok"


def run_batch(table, seed, count, folder, results):
    """Read ``count`` files in this process; a file is named in ``results`` before it is read."""
    chance = random.Random(seed)
    others = [content for _, content, _ in table]
    for _ in range(count):
        name, content, read = chance.choice(table)
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = repacked(content, name, others, chance)
        path.write_bytes(data)
        results.send((name, data, None))
        faulthandler.dump_traceback_later(SECONDS_PER_FILE, exit=True)
        result = outcome(read, path if "/" not in name else Path(folder) / name.split("/")[0] / "store")
        faulthandler.cancel_dump_traceback_later()
        results.send((name, None, result))
    results.close()


def main(seconds, seed):
    """Print what became of the files of each reader, and each distinct failure; True if there is one."""
    table, counts, failures = list(targets()), Counter(), []
    context, deadline = multiprocessing.get_context("fork"), time.monotonic() + seconds
    batch = 0
    while time.monotonic() < deadline:
        receiver, sender = context.Pipe(duplex=False)
        with tempfile.TemporaryDirectory() as folder:
            process = context.Process(
                target=run_batch, args=(table, f"{seed}-{batch}", FILES_PER_PROCESS, folder, sender))
            process.start()
            sender.close()
            name, data, finished = "", b"", True
            with contextlib.suppress(EOFError):
                while True:
                    name, content, result = receiver.recv()
                    finished = content is None
                    if not finished:
                        data = content
                        continue
                    counts[name, result if result in ("ok", "refused") else "failed"] += 1
                    if result not in ("ok", "refused"):
                        failures.append((name, data, result))
            process.join()
            if process.exitcode:
                counts[name, "ended the process"] += 1
                failures.append((name, data, f"the process ended with {process.exitcode}, finished: {finished}"))
        batch += 1
    for name, _, _ in table:
        print(f"{name:40}", {kind: number for (one, kind), number in counts.items() if one == name})
    print(f"{sum(counts.values())} files, {len(failures)} failures")
    distinct = {}
    for name, data, text in failures:
        distinct.setdefault((name, text.splitlines()[-1][:100]), (data, text))
    for index, ((name, _), (data, text)) in enumerate(distinct.items()):
        target = Path("fuzz-failures") / f"{index}-{name.replace('/', '-')}"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
        print(f"--- {target}\n{text}")
    return bool(failures)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main(float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "1"))
