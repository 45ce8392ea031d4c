"""Everyday work in Python succeeds in a workspace, as root and as an ordinary user."""

# ruff: noqa: E501 -- a job reads best as a line

from __future__ import annotations

import pytest

from sandbox.test_jobs import USERS, Job, outcome_of

pytestmark = pytest.mark.timeout(180)

BACKEND = """\
mkdir -p pkg; cd pkg
cat >pyproject.toml <<'END'
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "thing"
version = "1.0"
END
echo 'WORD = "from the package"' >thing.py
cat >backend.py <<'END'
import os, tarfile, zipfile
META = "Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0\\n"
def wheel(folder, files):
    name = "thing-1.0-py3-none-any.whl"
    info = "thing-1.0.dist-info/"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as z:
        for path, text in files.items():
            z.writestr(path, text)
        z.writestr(info + "METADATA", META)
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        z.writestr(info + "RECORD", "".join(f"{p},,\\n" for p in [*files, info + "METADATA", info + "WHEEL", info + "RECORD"]))
    return name
def build_wheel(folder, config_settings=None, metadata_directory=None):
    return wheel(folder, {"thing.py": open("thing.py").read()})
def build_editable(folder, config_settings=None, metadata_directory=None):
    return wheel(folder, {"thing.pth": os.getcwd()})
def build_sdist(folder, config_settings=None):
    with tarfile.open(os.path.join(folder, "thing-1.0.tar.gz"), "w:gz") as t:
        for path in ("pyproject.toml", "backend.py", "thing.py"):
            t.add(path, "thing-1.0/" + path)
    return "thing-1.0.tar.gz"
END
cd ..
/usr/bin/python3 -m venv --without-pip v
pip() { quiet /usr/bin/python3 -m pip --python v/bin/python --disable-pip-version-check "$@"; }
"""
SHOW = "v/bin/python -c 'import thing; print(thing.WORD)'"


def script(code: str, run: str = "python3 code.py") -> str:
    """Return a command that puts Python code in a file and runs it."""
    return f"cat >code.py <<'END'\n{code}\nEND\n{run}"


def child(code: str, start: str) -> str:
    """Return a program that uses multiprocessing, started in one of its ways."""
    return script(
        "import multiprocessing as mp, os\nfrom multiprocessing import shared_memory\n"
        "def twice(x): return 2 * x\n"
        "def put(queue, x): queue.put(twice(x))\n"
        "def store(values, x): values[x] = twice(x)\n"
        "if __name__ == '__main__':\n"
        f"    mp.set_start_method({start!r})\n"
        + "".join(f"    {line}\n" for line in code.split("\n"))
    )


QUEUE = (
    "q = mp.Queue(); p = mp.Process(target=put, args=(q, 21)); p.start()\nprint(q.get()); p.join()"
)
POOL = "with mp.Pool(2) as pool: print(sum(pool.map(twice, range(10))))"
MANAGER = """\
with mp.Manager() as m:
    d = m.dict(); p = mp.Process(target=store, args=(d, 21)); p.start(); p.join()
    print(dict(d))"""
SHARED = "s = shared_memory.SharedMemory(create=True, size=64); s.buf[0] = 42\n" \
    "t = shared_memory.SharedMemory(s.name); print(t.buf[0]); t.close(); s.close(); s.unlink()\n" \
    "a = mp.Array('i', [1, 2]); l = mp.Lock(); l.acquire(); print(a[:])"  # fmt: skip

JOBS = (
    Job("venv", "python3 -m venv --without-pip v; . v/bin/activate; python -c 'import sys; print(sys.prefix != sys.base_prefix)'", "True"),
    Job("pip install of a wheel", BACKEND + "(cd pkg; python3 -c 'import backend; backend.build_wheel(\"..\")')\npip install --no-index ./thing-1.0-py3-none-any.whl\n" + SHOW, "from the package"),
    Job("pip install of an sdist", BACKEND + "(cd pkg; python3 -c 'import backend; backend.build_sdist(\"..\")')\npip install --no-index --no-build-isolation ./thing-1.0.tar.gz\n" + SHOW, "from the package"),
    Job("pip install of a folder, and uninstall", BACKEND + "pip install --no-index --no-build-isolation ./pkg\n" + SHOW + "\npip uninstall -y thing\n" + SHOW + " 2>/dev/null || echo gone", "from the package\ngone"),
    Job("pip install -e", BACKEND + "pip install --no-index --no-build-isolation -e ./pkg\necho 'WORD = \"edited\"' >pkg/thing.py\n" + SHOW, "edited"),
    Job("pip wheel and download", BACKEND + "quiet /usr/bin/python3 -m pip wheel --no-index --no-build-isolation -w out ./pkg; ls out", "thing-1.0-py3-none-any.whl"),
    Job("pytest", script(
        "import pytest\ndef test_it(tmp_path, monkeypatch): (tmp_path / 'x').write_text('x'); monkeypatch.chdir(tmp_path)\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n, capfd): assert n", "mv code.py test_code.py; PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONPATH=$TEST_SITE python3 -m pytest -q test_code.py >log || { cat log; exit 1; }; grep -o '3 passed' log; test -d .pytest_cache"), "3 passed", ("pytest",)),
    Job("unittest", script("import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.assertTrue(1)", "python3 -m unittest code 2>&1 | tail -n 1"), "OK"),
    Job("sqlite3", "sqlite3 a.db 'create table t(x); insert into t values(1),(2); select sum(x) from t; vacuum'; sqlite3 a.db .dump | sqlite3 b.db; sqlite3 b.db 'select count(*) from t'", "3\n2", ("sqlite3",)),
    Job("sqlite3 with a write-ahead log", script(
        "import sqlite3, os\na = sqlite3.connect('a.db'); print(a.execute('pragma journal_mode=wal').fetchone()[0])\n"
        "a.execute('create table t(x)'); a.commit(); b = sqlite3.connect('a.db')\n"
        "a.execute('insert into t values(7)'); a.commit(); print(b.execute('select x from t').fetchone()[0], os.path.exists('a.db-wal'))\n"
        "b.close(); a.close()"), "wal\n7 True"),
    Job("multiprocessing: a process and a queue", child(QUEUE, "fork"), "42"),
    Job("multiprocessing: a spawned process and a queue", child(QUEUE, "spawn"), "42"),
    Job("multiprocessing: a fork server", child(QUEUE, "forkserver"), "42"),
    Job("multiprocessing: a pool", child(POOL, "fork"), "90"),
    Job("multiprocessing: a spawned pool", child(POOL, "spawn"), "90"),
    Job("multiprocessing: a manager", child(MANAGER, "fork"), "{21: 42}"),
    Job("multiprocessing: shared memory", child(SHARED, "fork"), "42\n[1, 2]"),
    Job("concurrent.futures", script(
        "from concurrent.futures import *\nif __name__ == '__main__':\n    for kind in (ProcessPoolExecutor, ThreadPoolExecutor):\n"
        "        with kind(2) as pool: print(sum(pool.map(abs, [-1, -2, -3])))"), "6\n6"),
    Job("threads", script(
        "import threading, queue\nq = queue.Queue()\nts = [threading.Thread(target=q.put, args=(n,)) for n in range(50)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]; print(q.qsize())"), "50"),
    Job("asyncio with subprocesses", script(
        "import asyncio\nasync def main():\n    p = await asyncio.create_subprocess_shell('cat; exit 3', stdin=-1, stdout=-1)\n"
        "    print((await p.communicate(b'in'))[0], p.returncode)\n    print(await asyncio.to_thread(len, 'abc'))\nasyncio.run(main())"), "b'in' 3\n3"),
    Job("subprocess", script("import subprocess\nprint(subprocess.run(['tr', 'a', 'b'], input='aa', text=True, capture_output=True, cwd='/', start_new_session=True).stdout)"), "bb"),
    Job("a pair of sockets", script("import socket, os\na, b = socket.socketpair()\nif os.fork() == 0:\n    b.sendall(b'hi'); os._exit(0)\nprint(a.recv(9)); os.wait()"), "b'hi'"),
    Job("a unix socket server and its client", script(
        "import socket, socketserver, threading\nclass H(socketserver.StreamRequestHandler):\n    def handle(self): self.wfile.write(self.rfile.readline().upper())\n"
        "with socketserver.UnixStreamServer('s', H) as server:\n    threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "    c = socket.socket(socket.AF_UNIX); c.connect('s'); c.sendall(b'hello\\n'); print(c.recv(99)); server.shutdown()"), "b'HELLO\\n'"),
    Job("asyncio with a unix socket", script(
        "import asyncio\nasync def serve(r, w): w.write((await r.readline()).upper()); await w.drain(); w.close()\n"
        "async def main():\n    server = await asyncio.start_unix_server(serve, 's')\n    r, w = await asyncio.open_unix_connection('s')\n"
        "    w.write(b'hello\\n'); print(await r.read()); w.close(); server.close()\nasyncio.run(main())"), "b'HELLO\\n'"),
    Job("a unix socket that nobody listens on any more", script(
        "import socket\nsocket.socket(socket.AF_UNIX).bind('s')\ntry: socket.socket(socket.AF_UNIX).connect('s')\nexcept OSError as error: print(type(error).__name__)"), "ConnectionRefusedError"),
    Job("a web server and its client", script(
        "import http.server, threading, urllib.request\nserver = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\nprint(urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}/').status)", "python3 code.py 2>/dev/null"), "200", only_root=True),
    Job("a pseudo-terminal", script("import os, pty\nm, s = pty.openpty(); print(os.isatty(s)); os.write(s, b'x'); print(os.read(m, 9))"), "True\nb'x'", only_root=True),
    Job("a program in a pseudo-terminal", script("import pty\npty.spawn(['sh', '-c', 'test -t 0 && echo terminal'], lambda fd: __import__('os').read(fd, 99))") + " </dev/null | tr -d '\\r'", "terminal", only_root=True),
    Job("temporary files of Python", script(
        "import tempfile, os\nwith tempfile.NamedTemporaryFile('w+') as f, tempfile.TemporaryDirectory() as d, tempfile.TemporaryFile() as t:\n"
        "    f.write('x'); f.flush(); open(d + '/y', 'w').write(open(f.name).read()); t.write(b'z'); print(os.listdir(d), tempfile.gettempdir())"), "['y'] /tmp"),
    Job("maps and locks", script(
        "import mmap, fcntl, os\nf = open('f', 'w+b'); f.truncate(4096); m = mmap.mmap(f.fileno(), 0); m[:2] = b'hi'; m.flush()\n"
        "fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX); fd = os.memfd_create('x'); os.write(fd, b'x'); print(open('f', 'rb').read(2))"), "b'hi'"),
    Job("trees of files", script(
        "import shutil, os\nos.makedirs('a/b'); open('a/b/f', 'w').write('x'); os.chmod('a/b/f', 0o750); os.utime('a/b/f', (1, 1)); shutil.copytree('a', 'c')\n"
        "s = os.stat('c/b/f'); print(oct(s.st_mode), s.st_mtime); shutil.make_archive('z', 'gztar', 'a'); shutil.unpack_archive('z.tar.gz', 'u'); print(oct(os.stat('u/b/f').st_mode))\n"
        "shutil.move('u', 'w'); shutil.rmtree('w'); os.replace('c', 'd'); print(sorted(os.listdir()))"), "0o100750 1.0\n0o100750\n['a', 'code.py', 'd', 'z.tar.gz']"),
    Job("watching files", script(
        "import ctypes, os\nlibc = ctypes.CDLL(None); fd = libc.inotify_init1(0); assert libc.inotify_add_watch(fd, b'.', 0x100) > 0\n"
        "open('made', 'w').close(); print(os.read(fd, 999)[16:20])"), "b'made'"),
    Job("compiling to bytecode", "echo 'x = 1' >m.py; python3 -m compileall -q m.py; ls __pycache__ | wc -l; python3 -m zipapp --help >/dev/null; python3 -c 'import m; print(m.x)'", "1\n1"),
    Job("odds and ends", script(
        "import uuid, getpass, platform, socket, signal, time, random, secrets, logging.handlers, os\nuuid.uuid1(), uuid.uuid4(), platform.platform(), socket.gethostname(), secrets.token_hex()\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05); signal.signal(signal.SIGALRM, lambda *_: print('rang')); time.sleep(0.2)\n"
        "h = logging.handlers.RotatingFileHandler('l', maxBytes=10, backupCount=2); log = logging.getLogger(); log.addHandler(h)\n"
        "for n in range(5): log.warning('x' * 9)\nprint(sorted(n for n in os.listdir() if n[0] == 'l'))"), "rang\n['l', 'l.1', 'l.2']"),
)  # fmt: skip


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("job", JOBS, ids=[job.name for job in JOBS])
def test_python_works_in_a_workspace(job: Job, user: str) -> None:
    outcome = outcome_of(job, user, "workspace", JOBS)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.strip() == job.expected
